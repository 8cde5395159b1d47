"""Batch is private: it shows nothing and goes nowhere. Decisions are for their owner."""

import copy
import pickle

import numpy as np
import pytest

from discreet import PrivateData
from discreet.actions.decisions import Decisions
from discreet.batch import Batch
from wording import refused

MARKER = 0.123456789


@pytest.fixture
def batch():
    return Batch(np.full((3, 2), MARKER), np.full((3, 4), MARKER), np.ones((3, 4), dtype=bool))


def test_a_batch_shows_its_public_sizes_and_no_values(batch):
    assert {repr(batch), str(batch), f"{batch}"} == {"Batch(private)"}
    assert (batch.records, batch.n_actions) == (3, 4)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_batch_is_never_pickled(batch, protocol):
    with refused(PrivateData, "Batch", "Learner.save"):
        pickle.dumps(batch, protocol=protocol)


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_a_batch_is_never_copied_by_accident(batch, copier):
    with refused(PrivateData):
        copier(batch)


def test_propensities_are_computed_once_and_on_demand():
    calls = []

    def probabilities():
        calls.append(1)
        return np.array([[0.25, 0.75], [0.5, 0.5]])

    index = np.array([1, 0])
    stored = np.array([True, True])
    many = Decisions(np.array([0, 1]), np.array(["b", "a"]), stored, index, probabilities)
    assert not calls
    for _ in range(2):
        np.testing.assert_array_equal(many.propensity, [0.75, 0.5])
    assert len(calls) == 1
    one = Decisions(0, "b", True, 1, lambda: np.array([[0.25, 0.75]]))
    assert one.propensity == 0.75
    assert type(one.propensity) is float
