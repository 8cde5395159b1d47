"""The mean loss of a batch, read from what is published."""

import math

import numpy as np
import pytest

import discreet as dc
from discreet.releases.quality import Quality, quality

WEIGHT = dc.PooledRidge().response_weight


ORACLES = {"learned": dc.PooledRidge(), "plain": dc.PooledRidge(geometry="plain")}
GEOMETRIES = pytest.mark.parametrize("geometry", ORACLES)


class Silence(dc.SeededNoise):
    """No noise, on statistics that are stretched and published as those of a private plan."""

    def gaussian(self, name, shape, scale):
        return 0.0 * super().gaussian(name, shape, scale)


def play(budget, lengths, *, noise=None, oracle=None, silent=()):
    """A learner, and the mean of the losses that were observed in each batch."""
    plan = dc.Plan(
        n_actions=2,
        features=dc.UnitBall(2),
        budget=budget,
        first_batch=lengths[0],
        growth=2.0,
        oracle=oracle or dc.PooledRidge(),
    )
    rng = np.random.default_rng(4)
    learner = dc.Learner(plan, noise=noise, draws=np.random.default_rng(5))
    means = []
    for length in lengths:
        decisions = learner.decide(rng.normal(size=(length, 2)))
        losses = rng.random(length) ** 2
        answered = [i for i in range(length) if i % 7 not in silent]
        learner.observe(decisions.id[answered], losses[answered])
        learner.close() if silent else None
        means.append(losses[answered].mean())
    learner.release()
    return learner, means


def test_without_noise_it_is_the_mean_loss():
    learner, means = play(dc.Budget.none(), [8, 16, 32])
    found = quality(learner.released)
    assert [(each.number, each.records) for each in found] == [(1, 8), (2, 16), (3, 32)]
    assert [each.loss for each in found] == pytest.approx(means, abs=1e-5)
    assert all(each.standard_error == 0.0 for each in found)


@GEOMETRIES
def test_silent_slots_are_not_counted_with_a_budget_either(geometry):
    learner, means = play(
        dc.Budget(1.0, 1e-5),
        [8, 16, 32],
        noise=Silence(1),
        silent=(2, 5),
        oracle=ORACLES[geometry],
    )
    found = quality(learner.released)
    assert [each.records for each in found] == [8, 16, 32]
    assert [each.loss for each in found] == pytest.approx(means, abs=1e-5)


@GEOMETRIES
def test_the_standard_error_is_that_of_the_noise(geometry):
    """Over 300 seeds the scaled error has variance 1: chi-square bounds of 1e-6."""
    errors = []
    for seed in range(300):
        learner, means = play(
            dc.Budget(1.0, 1e-5), [4096], noise=dc.SeededNoise(seed), oracle=ORACLES[geometry]
        )
        [each] = quality(learner.released)
        errors.append((each.loss - means[0]) / each.standard_error)
    assert abs(np.mean(errors)) < 4.9 / math.sqrt(300)
    assert 0.63 < np.var(errors) < 1.45
    # Had the weight been forgotten, or that half of the sum is published.
    wrong = np.var(errors) * (WEIGHT if geometry == "plain" else 2.0) ** 2
    assert not 0.63 < wrong < 1.45


def test_other_oracles_publish_none():
    learner, _ = play(dc.Budget.none(), [8, 16], oracle=dc.Ridge())
    assert quality(learner.released) == []


def test_in_the_units_of_the_outcome():
    found = Quality(1, 100, 0.25, 0.01, dc.Reward(0, 50))
    assert (found.mean, found.mean_error) == pytest.approx((37.5, 0.5))
    assert found.text == "37.50 ± 0.50"
    assert Quality(1, 100, 0.25, 0.01).text == "0.250 ± 0.010"
    assert Quality(1, 100, 0.25, 0.01, dc.Loss(0, 2000)).text == "500 ± 20"
    assert Quality(1, 4, 0.25, 0.51, dc.Reward(0, 50)).text == "–"  # noise larger than any loss
