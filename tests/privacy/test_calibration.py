"""From budget to noise and back, against dp_accounting and against numbers known elsewhere."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import expit, logsumexp
from scipy.stats import norm

from discreet.oracles import FiniteClass, Logistic, Problem, Ridge
from discreet.privacy import events
from discreet.privacy.accounting import epsilon, objective_renyi
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import smallest_scale

DELTA = 1e-5
LEVELS = (1.0, 2.0, 4.0, 8.0)


def calibrated(oracle, budget, *, feedback="bandit", losses="general", radii=False, A=3, p=11):
    return oracle.calibrate(Problem(A, p, feedback, losses, radii), budget)


GAUSSIAN_PLANS = [
    (Ridge(), {}),
    (Ridge(), {"feedback": "full"}),
    (Ridge(), {"feedback": "full", "losses": "one_label"}),
    (Logistic(noise="gaussian"), {}),
    (Logistic(noise="gaussian"), {"radii": True}),
    (Logistic(noise="gaussian"), {"feedback": "full", "A": 26}),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("oracle", "options"), GAUSSIAN_PLANS)
def test_cost_uses_the_budget_and_never_exceeds_it(oracle, options, level):
    event = calibrated(oracle, Budget(level, DELTA), **options).event
    assert 0.999 * level <= epsilon(event, DELTA) <= level


def test_pure_mechanisms_cost_exactly_their_epsilon():
    pure = Budget(2.0)
    for oracle in (Logistic(), Logistic(mechanism="paper"), FiniteClass(np.zeros((2, 3, 11)))):
        assert epsilon(calibrated(oracle, pure).event, 0.0) == 2.0


@pytest.mark.parametrize(
    ("level", "mu"), list(zip(LEVELS, (0.26805, 0.50155, 0.92493, 1.66603), strict=True))
)
def test_analytic_gaussian_multipliers(level, mu):
    """σ = Δ/μ: multipliers known to five digits, rounded down."""
    scales = calibrated(Ridge(), Budget(level, DELTA))
    assert 1.0 / scales.event.multiplier == pytest.approx(mu, abs=1.01e-5)
    assert scales.gram == pytest.approx(math.sqrt(81 / 32) / mu, rel=5e-5)


def test_ridge_scale_at_one():
    assert calibrated(Ridge(), Budget(1.0, DELTA)).gram == pytest.approx(5.936, abs=1e-3)
    paper = calibrated(Ridge(mechanism="paper"), Budget(1.0, DELTA)).gram
    assert paper == pytest.approx(9.80, abs=5e-3)


@pytest.mark.parametrize(
    ("level", "sigma"), list(zip(LEVELS, (8.79, 4.55, 2.41, 1.32), strict=True))
)
def test_gaussian_objective_scales_at_ridge_five(level, sigma):
    """Without the solver's share the scales are those known; with it, 0.5 % more at most."""
    kappa = math.log1p(0.25 / 5.0)

    def alone(scale):
        return events.ObjectivePerturbation("gaussian", kappa=kappa, shift=2.0 / scale)

    ideal = smallest_scale(alone, Budget(level, DELTA))
    assert ideal == pytest.approx(sigma, abs=0.01)
    scales = calibrated(Logistic(noise="gaussian"), Budget(level, DELTA))
    assert scales.least_ridge == 5.0
    assert ideal < scales.sigma < 1.005 * ideal


def test_gaussian_composition_is_the_root_of_squares():
    parts = (events.Gaussian(3.0, 1.0), events.Gaussian(5.0, 2.0), events.Gaussian(8.0, 0.1))
    cost = epsilon(events.compose(*parts), DELTA)
    single = sum(part.multiplier**-2 for part in parts) ** -0.5
    assert cost == epsilon(events.Gaussian(single, 1.0), DELTA)
    composed = pld.from_gaussian_mechanism(3.0)
    for part in parts[1:]:
        composed = composed.compose(pld.from_gaussian_mechanism(part.multiplier))
    assert cost == pytest.approx(composed.get_epsilon_for_delta(DELTA), abs=1e-3)


def test_pure_and_approximate_parts_add():
    gaussian = events.Gaussian(4.0, 1.0)
    both = events.compose(gaussian, events.ExponentialMechanism(0.7, 1.0))
    assert epsilon(both, DELTA) == pytest.approx(0.7 + epsilon(gaussian, DELTA))


def log_density(theta, x, y, sigma, ridge):
    """Of the minimiser for records (x, y) of one feature: log ν(b(θ)) + log J''(θ)."""
    mean = expit(np.outer(theta, x))
    b = -(mean - y) @ x - ridge * theta
    curvature = (mean * (1.0 - mean)) @ x**2 + ridge
    return norm.logpdf(b, scale=sigma) + np.log(curvature)


def largest_renyi(sigma, ridge, order):
    """D_α by integration over θ, for neighbours that differ in label, sign or presence."""
    reach = (14 * sigma + 4 * order + 3) / ridge
    theta = np.linspace(-reach, reach, 60_001)
    step = math.log(theta[1] - theta[0])
    worlds = [(1.0, 0.0), (1.0, 1.0), (-1.0, 0.0), (0.0, 0.0)]
    logs = [
        log_density(theta, np.array([0.6, x]), np.array([1.0, y]), sigma, ridge) for x, y in worlds
    ]
    for each in logs:
        assert logsumexp(each) + step == pytest.approx(0.0, abs=1e-9)
    return max(
        (logsumexp(order * one + (1.0 - order) * two) + step) / (order - 1.0)
        for one in logs
        for two in logs
    )


@pytest.mark.parametrize(("sigma", "ridge"), [(8.79, 5.0), (1.32, 5.0), (2.0, 0.25), (1.0, 1.0)])
@pytest.mark.parametrize("order", [1.05, 1.5, 2.0, 8.0, 20.0])
def test_renyi_curve_covers_the_integral_in_one_dimension(sigma, ridge, order):
    kappa = math.log1p(0.25 / ridge)
    found = largest_renyi(sigma, ridge, order)
    declared = events.ObjectivePerturbation("gaussian", kappa=kappa, shift=2 / sigma)
    assert 0.0 < found <= float(objective_renyi(declared, order))
