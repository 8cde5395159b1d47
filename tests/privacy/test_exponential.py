"""The exponential mechanism: exact probabilities from the scores and scale that a fit uses."""

import numpy as np
import pytest

from discreet.audit import HOLDS, Chosen
from discreet.audit.proof_facts import exact_choice
from discreet.audit.subjects import Subject, constants
from discreet.oracles import FiniteClass
from discreet.oracles.mechanisms.legal_rows import GRID


@pytest.mark.parametrize("level", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_no_ratio_exceeds_epsilon(level, feedback):
    """And one attains it: f ∈ {0, 1} with many copies of f = 1, which fix the normaliser."""
    found = exact_choice(Subject("finite", feedback, "general", level))
    assert found.verdict == HOLDS
    assert 0.995 * level <= found.exact <= level + 1e-9


def choice_of(feedback, losses):
    """The choice between f = 0 and f = 1 that one record with these losses requests."""
    subject, noise = Subject("finite", feedback, "general", 1.0), Chosen()
    oracle = FiniteClass(constants([0.0, 1.0], 2, 2))
    oracle.calibrate(subject.problem, subject.budget).fit(subject.record([0.0], losses), noise)
    assert noise.scores.dtype == np.int64
    return noise


def test_full_feedback_counts_every_action():
    """Sensitivity A: the summed loss of one record lies in [0, A]."""
    noise = choice_of("full", 1.0)
    assert noise.scores.tolist() == [2 * GRID, 0]
    assert noise.scale == 2 * 2 * GRID / 1.0


@pytest.mark.parametrize("wild", [1e9, np.inf, np.nan])
def test_losses_outside_the_range_are_clamped(wild):
    assert choice_of("bandit", wild).scores.tolist() == [GRID, 0]
