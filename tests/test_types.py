"""Batch is private: it shows nothing and goes nowhere. Decisions are for their owner."""

import copy
import json
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


def test_a_batch_shows_no_values(batch):
    for text in (repr(batch), str(batch), f"{batch}", f"{[batch]}"):
        assert "0.123" not in text
    assert repr(batch) == "Batch(private)"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_batch_is_never_pickled(batch, protocol):
    with refused(PrivateData, "Batch", "Learner.save"):
        pickle.dumps(batch, protocol=protocol)


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_a_batch_is_never_copied_by_accident(batch, copier):
    with refused(PrivateData):
        copier(batch)


def test_a_batch_is_not_json(batch):
    with pytest.raises(TypeError):
        json.dumps(batch)


def test_a_batch_knows_its_public_sizes(batch):
    assert (batch.records, batch.n_actions) == (3, 4)


def test_propensities_are_computed_once_and_on_demand():
    calls = []

    def probabilities():
        calls.append(1)
        return np.array([[0.25, 0.75], [0.5, 0.5]])

    index = np.array([1, 0])
    many = Decisions(
        np.array([0, 1]), np.array(["b", "a"]), np.array([True, True]), index, probabilities
    )
    assert not calls
    np.testing.assert_array_equal(many.propensity, [0.75, 0.5])
    np.testing.assert_array_equal(many.propensity, [0.75, 0.5])
    assert len(calls) == 1
    one = Decisions(0, "b", True, 1, lambda: np.array([[0.25, 0.75]]))
    assert one.propensity == 0.75
    assert type(one.propensity) is float
