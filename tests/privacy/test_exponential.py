"""The exponential mechanism: exact probabilities from the scores and scale that a fit uses."""

import itertools

import numpy as np
import pytest

from discreet.audit import Chosen, proof_facts
from discreet.audit.subjects import constants
from discreet.batch import Batch
from discreet.features.unit_ball import with_bias
from discreet.oracles import FiniteClass, Problem
from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.privacy.budget import Budget

ROUNDING = 1e-9


def log_probabilities(oracle, batch):
    asked = Chosen()
    oracle.fit(batch, asked)
    assert asked.scores.dtype == np.int64
    return proof_facts.log_probabilities(oracle, batch)


def record(context, losses, action, A=2):
    observed = np.zeros((1, A), dtype=bool)
    if action is not None:
        observed[0, action] = True
    return Batch(with_bias(np.array([[context]])), np.array([losses], dtype=float), observed)


def calibrated(weights, level, feedback="bandit"):
    return FiniteClass(weights).calibrate(
        Problem(weights.shape[1], weights.shape[2], feedback), Budget(level)
    )


@pytest.mark.parametrize("level", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_no_ratio_exceeds_epsilon(level, feedback):
    rng = np.random.default_rng(0)
    oracle = calibrated(rng.normal(size=(6, 2, 2)), level, feedback)
    actions = [slice(None), None] if feedback == "full" else [0, 1, None]
    losses = list(itertools.product((0.0, 0.37, 1.0), repeat=2))
    laws = [
        log_probabilities(oracle, record(context, pair, action))
        for context in (-1.0, 0.2, 1.0)
        for pair in losses
        for action in actions
    ]
    worst = max(float((one - two).max()) for one in laws for two in laws)
    assert 0.2 * level < worst <= level + ROUNDING


@pytest.mark.parametrize("level", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_epsilon_is_attained(level, feedback):
    """f ∈ {0, 1} and y = 0 against 1, with many copies of f = 1, which fix the normaliser."""
    oracle = calibrated(constants([0.0] + [1.0] * 20_000, 2, 2), level, feedback)
    action = slice(None) if feedback == "full" else 0
    zero = log_probabilities(oracle, record(0.0, (0.0, 0.0), action))
    one = log_probabilities(oracle, record(0.0, (1.0, 1.0), action))
    assert 0.995 * level <= float((zero - one)[0]) <= level + ROUNDING


def test_full_feedback_counts_every_action():
    """Sensitivity A: the summed loss of one record lies in [0, A]."""
    oracle = calibrated(constants([0.0, 1.0], 2, 2), 1.0, "full")
    noise = Chosen()
    oracle.fit(record(0.0, (1.0, 1.0), slice(None)), noise)
    assert noise.scores.tolist() == [2 * GRID, 0]
    assert noise.scale == 2 * 2 * GRID / 1.0


def test_losses_outside_the_range_are_clamped():
    oracle = calibrated(constants([0.0, 1.0], 2, 2), 1.0)
    noise = Chosen()
    for wild in (1e9, np.inf, np.nan):
        oracle.fit(record(0.0, (wild, wild), 0), noise)
        assert noise.scores.tolist() == [GRID, 0]
