"""Draws of AdaptivePO from published numbers: propensities that are named are those that are kept.

Off-policy estimates and lifts divide by them. The uniforms of a draw lie on a grid, not at random.
"""

import numpy as np
import pytest

import discreet as dc
from discreet.policies import one_row
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics

STEPS = 400
WEIGHTS = np.array([[[0.2, 0.6], [0.5, 0.0], [0.9, -0.3]], [[0.6, -0.4], [0.4, 0.3], [0.3, 0.1]]])


def history(clear):
    """Two releases that disagree, so that both rules of the policy differ; λ is in the second."""
    found = Released(3)
    for number, weights in enumerate(WEIGHTS, start=1):
        signal = None if clear is None else np.array([clear, 0.3, 0.2, 0.4])
        sums = Statistics(np.eye(2)[None], np.zeros((3, 2)), 20, 1.0, signal=signal)
        predictor = Predictor(weights, "identity")
        found = found.add(Release(number, 20, predictor, statistics=sums))
    return found


@pytest.mark.parametrize("clear", [None, 0.0, 0.3, 0.8, 1.0])
def test_actions_have_the_probabilities_that_are_named(clear):
    released, policy = history(clear), dc.AdaptivePO(learning_rate=1.0, bonus=0.3, scale=0.5)
    ends = (np.arange(STEPS) + 0.5) / STEPS
    uniforms = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)
    for context in ([0.7, 0.1], [0.7, -0.6]):
        row = np.array([context])
        named = policy.probabilities(released, row)[0]
        drawn = policy.sample(released, np.repeat(row, len(uniforms), axis=0), uniforms)
        shares = np.bincount(drawn, minlength=3) / len(uniforms)
        np.testing.assert_allclose(shares, named, atol=3.0 / STEPS)
        assert sorted(named)[1] > 10.0 / STEPS
        alone = policy.for_one_row(released)
        np.testing.assert_allclose(alone.probabilities(row), named, rtol=1e-12)
        some = uniforms[::97]
        singly = [alone.sample(row, *map(float, each)) for each in some]
        np.testing.assert_array_equal(singly, drawn[::97])


def test_the_signal_decides_between_rules_that_differ():
    row, policy = np.array([[0.7, -0.6]]), dc.AdaptivePO(learning_rate=1.0, bonus=0.3, scale=0.5)
    replay, gap, half = (policy.probabilities(history(clear), row)[0] for clear in (1.0, 0.0, 0.5))
    assert np.abs(replay - gap).max() > 0.1
    np.testing.assert_allclose(half, (replay + gap) / 2)
    assert isinstance(policy.for_one_row(history(0.5)), one_row.OneRow)
