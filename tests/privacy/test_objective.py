"""Objective perturbation: exact densities of the minimiser, compared between neighbours."""

from dataclasses import replace

import pytest

from discreet.audit.objective import exact_gaussian_objective, exact_pure
from discreet.audit.subjects import Subject
from discreet.oracles import Logistic

ROUNDING = 1e-9


def subject_of(mechanism, level, oracle):
    """The subject of the audit, with another oracle of its kind."""
    subject = Subject(mechanism, "bandit", "general", level)
    vars(subject)["calibrated"] = oracle.calibrate(subject.problem, subject.budget)
    return subject


@pytest.mark.parametrize("level", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("ridge", [1e-4, 1.0])
def test_pure_blocks_never_exceed_epsilon(level, ridge):
    found = exact_pure(subject_of("logistic-gamma", level, Logistic(ridge, noise="gamma")))
    assert found.exact <= level + ROUNDING
    if ridge < 0.1:
        assert found.exact > 0.8 * level  # and the noise is not wasted


@pytest.mark.parametrize("level", [0.5, 2.0])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_the_paper_mechanism_never_exceeds_epsilon(level, ridge):
    """One norm over all Ap coordinates: blocks are searched jointly when the action changes."""
    found = exact_pure(subject_of("logistic-paper", level, Logistic(ridge, mechanism="paper")))
    assert 0.3 * level < found.exact <= level + ROUNDING


@pytest.mark.parametrize("level", [1.0, 4.0])
@pytest.mark.parametrize("least", [1.0, 5.0])
def test_gaussian_blocks_keep_delta_and_a_third_of_the_noise_does_not(level, least):
    oracle = Logistic(1e-4, noise="gaussian", least_ridge=least)
    subject = subject_of("logistic-gaussian", level, oracle)
    made = subject.calibrated
    assert exact_gaussian_objective(subject).exact <= level
    vars(subject)["calibrated"] = replace(made, sigma=made.sigma / 3)
    assert exact_gaussian_objective(subject).exact > level
