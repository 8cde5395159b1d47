"""The attacker's line, against integrals."""

import math
import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from discreet import Budget, Ledger
from discreet.client.label import label_document, label_page
from discreet.oracles import Logistic, Problem, Ridge
from discreet.privacy.accounting import objective_renyi
from discreet.privacy.attacker import (
    attacker,
    hundredths,
    mixed_variation,
    objective_divergence,
    pure_shift,
)
from discreet.privacy.budget import Participation
from discreet.privacy.events import (
    Composed,
    ExponentialMechanism,
    Gaussian,
    NonPrivate,
    ObjectivePerturbation,
    compose,
)
from tolerances import EXACT

DELTA = 1e-5


def decision():
    return Ridge().calibrate(Problem(3, 11), Budget(1.0, DELTA)).event


def test_one_decision_and_ten():
    """55 % for one record; 66 % for a person with one record in each of ten batches."""
    one = decision()
    assert attacker(one).success == pytest.approx(0.5533, abs=1e-4)
    ledger = Ledger(Budget(9.0, DELTA), unit="user", participation=Participation(10, 1))
    for number in range(12):
        ledger = ledger.charge(f"batch {number}", one)
    ten = attacker(ledger.cost_event())
    assert ten.success == pytest.approx(0.664, abs=1e-3)
    assert (hundredths(attacker(one).success, True), hundredths(ten.success, True)) == (55, 66)
    together = Ledger(Budget(99.0, DELTA), unit="user", participation=Participation(1, 10))
    assert hundredths(attacker(together.charge("batch 1", one).cost_event()).success, True) == 91


@pytest.mark.parametrize("mu", [0.05, 0.26805, 0.85, 3.0])
def test_a_gaussian_by_integration(mu):
    overlap, _ = quad(lambda x: min(norm.pdf(x), norm.pdf(x, loc=mu)), -12, 12 + mu, limit=300)
    found = attacker(Gaussian(1 / mu, 1.0))
    assert found.exact
    assert found.success == pytest.approx(1 - overlap / 2, abs=1e-7)
    assert found.mu == pytest.approx(mu, rel=EXACT)
    assert found.zcdp == pytest.approx(mu**2 / 2, rel=EXACT)


@pytest.mark.parametrize(("pure", "mu"), [(0.5, 0.3), (1.0, 1.0), (0.1, 2.0)])
def test_a_randomised_response_beside_a_gaussian_by_integration(pure, mu):
    q = math.exp(pure) / (1 + math.exp(pure))

    def density(x, answer, world):
        seen = q if answer == world else 1 - q
        return seen * norm.pdf(x, loc=mu * world)

    overlap = sum(
        quad(lambda x, a=a: min(density(x, a, 0), density(x, a, 1)), -10, 10 + mu, limit=300)[0]
        for a in (0, 1)
    )
    assert mixed_variation(pure, mu) == pytest.approx(1 - overlap, abs=1e-7)
    event = compose(ExponentialMechanism(pure, 1.0), Gaussian(1 / mu, 1.0))
    assert attacker(event).success == pytest.approx(1 - overlap / 2, abs=1e-7)
    assert not attacker(event).exact


@pytest.mark.parametrize("level", [0.1, 1.0, 3.0])
def test_pure_events(level):
    found = attacker(ExponentialMechanism(level, 1.0))
    assert found.success == pytest.approx(math.exp(level) / (1 + math.exp(level)), rel=EXACT)
    assert found.zcdp == pytest.approx(level**2 / 2)
    assert found.mu == pytest.approx(2 * norm.ppf(math.exp(level) / (1 + math.exp(level))))
    twice = attacker(compose(*[ExponentialMechanism(level / 2, 1.0)] * 2))
    assert twice.success == pytest.approx(found.success, rel=EXACT)
    assert twice.zcdp == pytest.approx(level**2 / 4)
    # Type II errors of the randomised response are never below those of the Gaussian.
    alpha = np.linspace(0.0, 1.0, 2001)
    pure = np.maximum.reduce(
        [np.zeros_like(alpha), 1 - math.exp(level) * alpha, math.exp(-level) * (1 - alpha)]
    )
    gaussian = norm.cdf(norm.ppf(1 - alpha) - pure_shift(level))
    assert np.all(gaussian <= pure + 1e-12)
    less = norm.cdf(norm.ppf(1 - alpha) - 0.99 * pure_shift(level))
    assert np.any(less > pure + 1e-6)  # it is the least


def test_objectives_are_bounded_by_every_means():
    event = Logistic(noise="gaussian").calibrate(Problem(3, 11), Budget(1.0, DELTA)).event
    found = attacker(event)
    assert not found.exact
    assert found.mu is None
    assert 0.55 < found.success <= math.exp(1) / (1 + math.exp(1)) + DELTA
    weaker = attacker(compose(event, ExponentialMechanism(0.5, 1.0)))
    assert found.success < weaker.success < 1.0


@pytest.mark.parametrize(("kappa", "shift"), [(0.0488, 0.2275), (0.001, 2.0), (1.0, 0.01)])
def test_rho_of_an_objective_covers_its_curve(kappa, shift):
    event = ObjectivePerturbation("gaussian", kappa=kappa, shift=shift, blocks=3)
    orders = 1 + np.geomspace(1e-6, 1e5, 400)
    rho = objective_divergence(event)
    assert np.all(objective_renyi(event, orders) <= rho * orders * (1 + 1e-9))
    assert objective_renyi(event, 1 + 1e-6) == pytest.approx(rho, rel=1e-5)
    assert attacker(event).zcdp == rho


def test_an_objective_in_one_dimension_stays_below_the_bound():
    """Total variation of two minimisers by integration, at the ridge of the proof."""
    sigma, ridge = 2.0, 1.0
    theta = np.linspace(-40, 40, 400_001)

    def density(y):
        mean = 1 / (1 + np.exp(-theta))
        b = -(mean - y) - ridge * theta
        return norm.pdf(b, scale=sigma) * (mean * (1 - mean) + ridge)

    step = theta[1] - theta[0]
    variation = 1 - np.minimum(density(0.0), density(1.0)).sum() * step
    event = ObjectivePerturbation("gaussian", kappa=math.log1p(0.25 / ridge), shift=2 / sigma)
    assert 0.1 < variation < 2 * attacker(event).success - 1


def test_nothing_and_everything():
    assert attacker(Composed(())).success == 0.5
    seen = attacker(compose(Gaussian(4.0, 1.0), NonPrivate("seeded")))
    assert (seen.success, seen.zcdp, seen.mu) == (1.0, math.inf, None)
    assert hundredths(1.0, True) == hundredths(1.0, False) == 100
    assert hundredths(1.0 - 1e-9, False) == 100
    huge = attacker(Gaussian(1e-3, 1.0, 1.0))
    assert huge.success == 1.0


def test_what_the_sentence_says():
    exact = attacker(decision()).sentence()
    assert "between two given records, both equally likely, is right 55 times in 100" in exact
    bounded = attacker(ExponentialMechanism(1.0, 1.0)).sentence("user")
    assert "two given histories of one user" in bounded
    assert "is right at most 74 times in 100" in bounded  # 73.1: a bound is rounded up


@pytest.mark.parametrize("level", [0.01, 0.5, 1.0, 2.0, 4.0, 9.0, 12.0, 30.0])
def test_no_printed_bound_is_below_what_it_bounds(level):
    found = attacker(ExponentialMechanism(level, 1.0))
    assert not found.exact
    printed = int(re.search(r"at most (\d+) times in 100", found.sentence())[1])
    assert 100 * found.success <= printed <= 100 * found.success + 1
    charged = Ledger(Budget(level, 0.0)).charge("batch 1", ExponentialMechanism(level, 1.0))
    document = label_document(charged, {}, made="2026-01-31")
    shown = int(re.search(r"attacker is right (\d+) times", label_page(document))[1])
    assert shown == printed
