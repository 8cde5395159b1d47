"""The attack as a library: any callable, any release."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.audit import FAILS, HOLDS, Rule, attack, numbers
from discreet.errors import InvalidInput
from discreet.releases.release import Fit, Gram, Predictor, Release
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics
from wording import refused

BUDGET = dc.Budget(1.0, 1e-5)
ZERO, ONE = np.zeros(4), np.eye(4)[0]


def noisy_sum(scale, rng):
    return lambda batch: batch.sum() + scale * rng.laplace()


@pytest.mark.parametrize(("scale", "verdict", "least"), [(1.0, HOLDS, 0.4), (1 / 3, FAILS, 1.0)])
def test_a_correct_mechanism_passes_and_a_third_of_its_noise_does_not(scale, verdict, least):
    """Laplace noise of scale 1 on a sum that moves by 1 is exactly 1-private."""
    rng = np.random.default_rng(0)
    finding = attack(noisy_sum(scale, rng), ZERO, ONE, dc.Budget(1.0), trials=3000)
    assert (finding.verdict, finding.trials) == (verdict, 3000)
    assert least < finding.measured <= 1.0 / scale


def test_a_given_rule_needs_no_pilot():
    calls = []

    def fit(batch):
        calls.append(1)
        return batch.sum()

    finding = attack(fit, ZERO, ONE, BUDGET, trials=50, rule=Rule(float, 0.5))
    assert len(calls) == 100
    assert finding.measured > 1.0


def test_a_release_without_noise_is_told_apart():
    finding = attack(lambda batch: batch, ZERO, ONE, BUDGET, trials=100)
    assert finding.verdict == FAILS


def test_a_branch_shows_through_its_zeros():
    """Zeros half of the time in one world alone, inside symmetric noise."""
    rng = np.random.default_rng(1)

    def fit(batch):
        gone = batch[0] and rng.random() < 0.5
        return np.zeros(3) if gone else rng.normal(size=3)

    assert attack(fit, ZERO, ONE, dc.Budget(1.0), trials=400).verdict == FAILS


def test_releases_of_all_kinds_become_numbers():
    predictor = Predictor(np.ones((2, 3)), "identity")
    gram = Gram(np.full((2, 3, 3), 2.0), dense=False, step=1.0)
    assert numbers(predictor).size == 2 * 6
    assert numbers(Fit(predictor, gram)).size == 2 * (6 + 18)
    pool = Statistics(np.ones((2, 3, 3)), np.ones((2, 3)), 1.0, 2.0)
    assert numbers(Fit(predictor, None, pool)).size == 2 * (6 + 18 + 6 + 2)
    pool = replace(pool, matrix=np.eye(3), following=np.eye(3), outcome_sums=np.zeros(6))
    assert pool.inverse is not None  # which is not published
    assert numbers(Fit(predictor, None, pool)).size == 2 * (6 + 18 + 6 + 2 + 9 + 9 + 6)
    release = Release(1, 1, predictor, gram)
    assert numbers(Released(2, items=(release, release))).size == 2 * 2 * 24
    assert numbers([1.0, np.arange(2.0)]).tolist() == [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    assert numbers([]).size == 0
    assert np.isfinite(numbers([np.nan, np.inf])).all()


def test_what_cannot_be_attacked_is_refused():
    with refused(InvalidInput, "trials", "at least 10"):
        attack(float, 0.0, 1.0, BUDGET, trials=3)
    with refused(InvalidInput, "epsilon"):
        attack(float, 0.0, 1.0, dc.Budget.none())
    with refused(InvalidInput, "delta", "a Gaussian claim"):
        attack(float, 0.0, 1.0, dc.Budget(1.0), gaussian=True)


@pytest.mark.parametrize("seed", range(3))
def test_false_alarms_are_as_rare_as_stated(seed):
    """The worst event of a 1-private coin: at most 14 of 300 attacks at 1 % fail (fixed seeds)."""
    rng = np.random.default_rng(seed)
    coin = np.exp(1.0) / (1 + np.exp(1.0))

    def fit(batch):
        return float((rng.random() < coin) == bool(batch))

    rule = Rule(float, 0.5)
    alarms = sum(
        attack(fit, 0, 1, dc.Budget(1.0), trials=60, rule=rule, false_alarm=0.01).failed
        for _ in range(300)
    )
    assert alarms <= 14
