"""The search for the smallest scale: the same bits as a plain bisection, for far fewer prices."""

import math

import pytest

from discreet.errors import InvalidInput
from discreet.lab.rivals import rival_contract
from discreet.oracles.contract import Problem
from discreet.oracles.mechanisms import logistic as mechanism
from discreet.oracles.mechanisms import loss_sums, perturb
from discreet.privacy import calibration
from discreet.privacy.accounting import epsilon, person_event
from discreet.privacy.budget import ONCE, Budget, Participation
from discreet.privacy.events import Gaussian, ObjectivePerturbation, fast_sampled

CALLERS = (mechanism, perturb, loss_sums, rival_contract)
FEW = 14
"""Prices from the first guesses that mechanisms have; bisection asks for up to 46."""


def bisection(event_at, budget, guess=1.0, participation=ONCE):
    """A scale on which every step of widening and bisecting was priced."""

    def affordable(scale):
        event = person_event(event_at(scale), participation)
        taken = calibration._taken_by_fast_sampler(event, budget)
        event = fast_sampled(event) if taken <= budget.delta / 2 else event
        return epsilon(event, budget.delta) <= budget.epsilon

    low, high, widening = guess, guess, 1.0 + 1e-7
    if affordable(guess):
        while affordable(low := high / widening):
            high, widening = low, widening**2
    else:
        while not affordable(high := low * widening):
            low, widening = high, widening**2
    while high / low > 1.0 + 1e-7:
        middle = (high * low) ** 0.5
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return high * (1.0 + 1e-6)


def sums(budget, often):
    fit = Gaussian(1.05 * calibration.gaussian_multiplier(budget, often), 1.0)
    return loss_sums._calibrated.__wrapped__(fit, budget, often)


def logistic(budget, often, least=5.0, **facts):
    problem = Problem(3, 11, participation=often, **facts)
    return mechanism.gaussian_objective.__wrapped__(problem, budget, least)


def ridge(budget, often, **facts):
    problem = Problem(3, 11, participation=often, **facts)
    return perturb.structured_scales.__wrapped__(problem, budget)


MANY = Participation(batches=4, records=1)
CALIBRATIONS = {
    "logistic": lambda budget: logistic(budget, ONCE),
    "logistic with radii": lambda budget: logistic(budget, ONCE, radii=True),
    "logistic, full": lambda budget: logistic(budget, ONCE, feedback="full"),
    "logistic for users": lambda budget: logistic(budget, MANY, 0.3, radii=True),
    "ridge": lambda budget: ridge(budget, ONCE),
    "ridge, full": lambda budget: ridge(budget, ONCE, feedback="full", losses="one_label"),
    "ridge for users": lambda budget: ridge(budget, Participation(batches=4, records=3)),
    "loss sums": lambda budget: sums(budget, ONCE),
    "loss sums for users": lambda budget: sums(budget, MANY),
    "rival": lambda budget: rival_contract.noise_multiplier.__wrapped__(budget),
}
BUDGETS = [Budget(0.05, 1e-7), Budget(0.7, 1e-6), Budget(1.0, 1e-5), Budget(8.0, 1e-5)]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.text)
@pytest.mark.parametrize("calibrated", CALIBRATIONS.values(), ids=CALIBRATIONS)
def test_every_calibration_has_the_bits_of_a_bisection(calibrated, budget, monkeypatch):
    """And asks for few prices."""
    priced = []

    def counted(event, delta):
        priced.append(event)
        return epsilon(event, delta)

    with monkeypatch.context() as patch:
        patch.setattr(calibration, "epsilon", counted)
        found = calibrated(budget)
    assert len(priced) <= FEW
    for caller in CALLERS:
        monkeypatch.setattr(caller, "smallest_scale", bisection)
    assert calibrated(budget) == found


def test_prices_that_rounding_makes_rise_are_all_asked_for(monkeypatch):
    """For a small ε the accountant's tolerance moves prices by more than the last steps do."""

    def cost(event, _delta):
        return 1e-6 * (3.0 / event.multiplier) * (1.0 + 1e-6 * math.sin(1e9 * event.multiplier))

    monkeypatch.setattr(calibration, "epsilon", cost)
    monkeypatch.setitem(bisection.__globals__, "epsilon", cost)
    for guess in (0.1, 1.0, 2.0, 2.9, 3.1, 4.0, 5.0, 10.0):
        found = calibration.smallest_scale(lambda s: Gaussian(s, 1.0), Budget(1e-6, 1e-5), guess)
        assert found == bisection(lambda s: Gaussian(s, 1.0), Budget(1e-6, 1e-5), guess)


@pytest.mark.parametrize("guess", [1e-3, 0.4, 7.0, 9.5, 1e6])
def test_the_guess_may_be_far_off(guess):
    """Costs that are infinite, or zero, on the way: no slope leads to the root there."""
    budget = Budget(1.0, 1e-5)

    def event_at(scale):
        return ObjectivePerturbation("gaussian", kappa=0.05, shift=2.0 / scale)

    found = calibration.smallest_scale(event_at, budget, guess)
    assert found == bisection(event_at, budget, guess)


def test_what_no_noise_attains_is_refused_after_few_prices(monkeypatch):
    priced = []

    def never(event, _delta):
        priced.append(event)
        return math.inf if event.multiplier < 1e3 else 2.0

    monkeypatch.setattr(calibration, "epsilon", never)
    with pytest.raises(InvalidInput, match="attainable"):
        calibration.smallest_scale(lambda scale: Gaussian(scale, 1.0), Budget(1.0, 1e-5))
    assert len(priced) <= 12
