"""From budget to noise and back, against dp_accounting and against numbers known elsewhere."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.integrate import quad
from scipy.special import expit, logsumexp
from scipy.stats import norm

from discreet.errors import BudgetExceeded, InvalidInput
from discreet.oracles import FiniteClass, Logistic, Problem, Ridge
from discreet.privacy import events
from discreet.privacy.accounting import epsilon, objective_renyi
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import smallest_scale
from discreet.privacy.ledger import Ledger
from discreet.privacy.sensitivities import zcdp

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


@pytest.mark.parametrize("options", [{}, {"feedback": "full"}, {"radii": True}])
@pytest.mark.parametrize("oracle", [Ridge(mechanism="paper"), Logistic(mechanism="paper")])
def test_paper_mechanisms_stay_within_the_budget(oracle, options):
    for level in LEVELS:
        event = calibrated(oracle, Budget(level, DELTA), **options).event
        assert epsilon(event, DELTA) <= level * (1 + 1e-12)


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


def test_radii_share_one_budget():
    """Joint accounting against halves: Gram noise 1.56 times smaller, ‖b‖ about 92 at d = 55."""
    budget = Budget(1.0, DELTA)
    joint = calibrated(Logistic(), budget, radii=True, A=5)
    halves = calibrated(Logistic(mechanism="paper"), budget, radii=True, A=5)
    assert halves.gram / joint.gram == pytest.approx(1.56, abs=0.01)
    assert joint.sigma * math.sqrt(55) == pytest.approx(92, abs=1)
    assert joint.gram == pytest.approx(joint.sigma / math.sqrt(2.0))
    # The paper's own noise has mean norm 2d/ε' with ε' below 1/2.
    assert 2 * 55 / 0.5 < 273 < 2 * 55 / 0.4


def test_paper_radii_with_full_feedback_cover_all_equal_blocks():
    """A equal blocks are noised independently, so Δ_G is √(2A), not √2."""
    budget = Budget(1.0, DELTA)
    for A in (2, 5):
        one = calibrated(Logistic(mechanism="paper"), budget, radii=True, A=A)
        full = calibrated(Logistic(mechanism="paper"), budget, radii=True, A=A, feedback="full")
        assert full.gram == pytest.approx(one.gram * math.sqrt(A))


def test_zcdp_inverts_its_conversion():
    for level in LEVELS:
        rho = zcdp(level, DELTA)
        assert rho + 2 * math.sqrt(rho * math.log(1 / DELTA)) == pytest.approx(level)


@pytest.mark.parametrize("level", LEVELS)
def test_gaussian_cost_against_privacy_loss_distributions(level):
    """Pessimistic PLD: at least the true cost, and within its discretisation of it."""
    multiplier = calibrated(Ridge(), Budget(level, DELTA)).event.multiplier
    cost = epsilon(events.Gaussian(multiplier, 1.0), DELTA)
    numeric = pld.from_gaussian_mechanism(multiplier).get_epsilon_for_delta(DELTA)
    assert cost == pytest.approx(numeric, abs=2e-4)
    assert cost <= numeric + 1e-9


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


def test_halving_the_noise_breaks_the_budget():
    for oracle, options in GAUSSIAN_PLANS:
        event = calibrated(oracle, Budget(1.0, DELTA), **options).event
        ledger = Ledger(Budget(1.0, DELTA))
        ledger.charge("batch 1", event)
        with pytest.raises(BudgetExceeded):
            ledger.charge("batch 1", halved(event))


def halved(event):
    if isinstance(event, events.Composed):
        return events.Composed(tuple(halved(part) for part in event.events))
    if isinstance(event, events.Gaussian):
        return events.Gaussian(event.multiplier / 2, event.sensitivity, event.sampler_distance)
    return events.ObjectivePerturbation(
        "gaussian", kappa=event.kappa, shift=event.shift * 2, blocks=event.blocks
    )


def test_a_slightly_smaller_scale_is_not_affordable():
    """The bisection stops at the edge: 0.01 % less noise already costs too much."""
    budget = Budget(1.0, DELTA)
    multiplier = calibrated(Ridge(), budget).event.multiplier
    assert epsilon(events.Gaussian(multiplier * 0.9999, 1.0), DELTA) > 1.0


def test_an_impossible_budget_is_refused():
    def never(_):
        return events.ObjectivePerturbation("gaussian", kappa=5.0, shift=1e-9)

    with pytest.raises(InvalidInput, match="attainable"):
        smallest_scale(never, Budget(1.0, DELTA))


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


@pytest.mark.parametrize(("sigma", "ridge"), [(8.79, 5.0), (1.32, 5.0), (1.0, 1.0)])
def test_sabotage_a_curve_for_a_third_of_the_shift_is_caught(sigma, ridge):
    """With one feature a gradient moves by 1 at most, half of what the curve allows for."""
    wrong = events.ObjectivePerturbation("gaussian", kappa=0.0, shift=2 / 3 / sigma)
    assert largest_renyi(sigma, ridge, 40.0) > float(objective_renyi(wrong, 40.0))


@pytest.mark.parametrize("r", [0.1, 1.0, 3.0])
def test_the_moment_in_the_renyi_curve(r):
    """E exp(r·|N|) = 2Φ(r)·exp(r²/2)."""
    integral, _ = quad(lambda x: 2 * math.exp(r * x) * norm.pdf(x), 0, 40)
    assert integral == pytest.approx(2 * norm.cdf(r) * math.exp(r**2 / 2), rel=1e-9)
