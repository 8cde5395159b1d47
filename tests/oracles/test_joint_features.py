"""One block for all actions: exact sums, the sensitivity of one block, noise that does not grow."""

import numpy as np
import pytest

import discreet as dc
from discreet.batch import Batch
from discreet.oracles.mechanisms.geometry import publishable
from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.oracles.mechanisms.moments import NORMALISED, exact_moments, floating_moments
from discreet.oracles.mechanisms.pooled_statistics import SHORTENED, PooledStatistics
from discreet.privacy.sensitivities import ridge_sensitivity

BUDGET = dc.Budget(2.0, 1e-5)
P = 5


def joint_batch(rows, seed=0):
    rng = np.random.default_rng(seed)
    x = dc.UnitBall(P - 1).map(rng.normal(size=(rows, P - 1)) * 0.6)
    return Batch(x, rng.random((rows, 1)), np.ones((rows, 1), dtype=bool))


def matrix(seed=0, spread=3.0):
    rng = np.random.default_rng([9, seed])
    return publishable(rng.normal(size=(P, P)) * np.exp2(rng.uniform(-spread, spread, P)))


@pytest.mark.parametrize("seed", range(4))
def test_exact_sums_are_the_floating_ones(seed):
    batch, M = joint_batch(300, seed), matrix(seed)
    exact = exact_moments(batch, "bandit", "general", M, SHORTENED)
    floats = floating_moments(batch, "bandit", 0.5, M, SHORTENED)
    near = 300 * 8.0 / GRID
    np.testing.assert_allclose(exact.gram * exact.gram_unit, floats.gram, atol=near)
    np.testing.assert_allclose(exact.response * exact.response_unit, floats.response, atol=near)
    np.testing.assert_allclose(exact.outcome_sums * exact.gram_unit, floats.outcome_sums, atol=near)


def test_no_pair_of_records_moves_more_than_the_sensitivity():
    """Over rows of every length, losses and matrices; and some pair nearly attains it."""
    rng, most = np.random.default_rng(0), 0.0
    bound = ridge_sensitivity("bandit", 1, weight=2.0, normalised=True)
    flat = np.diag([2.0**-8, *[np.sqrt(2.0)] * (P - 1)])
    for trial in range(3000):
        M = publishable(flat) if trial % 2 else matrix(trial, 2.0)
        c = rng.normal(size=(2, P - 1))
        c[1] = 0.5 * c[0] + 0.9 * c[1] if trial % 3 else -c[0]
        x = dc.UnitBall(P - 1).map(c * 10.0 ** rng.uniform(-1, 1))
        ends = [
            exact_moments(
                Batch(row[None], np.full((1, 1), loss), np.ones((1, 1), bool)),
                *("bandit", "general", M, SHORTENED),
            )
            for row, loss in zip(x, (0.0, 1.0), strict=True)
        ]
        one, two = (
            np.concatenate(
                [
                    (each.gram * each.gram_unit).ravel(),
                    2.0 * (each.response * each.response_unit).ravel(),
                    each.outcome_sums * each.gram_unit,
                ]
            )
            for each in ends
        )
        most = max(most, float(np.linalg.norm(one - two)))
    assert most <= bound
    assert most > 0.97 * bound


def test_a_linear_truth_is_found_whatever_the_matrix(monkeypatch):
    """Rows and losses shortened alike are least squares with other weights: no bias."""
    rng = np.random.default_rng(0)
    x = dc.UnitBall(P - 1).map(rng.normal(size=(4000, P - 1)) * 0.5)
    theta = np.array([0.7, 0.3, -0.2, 0.1, 0.05])
    losses = (x @ theta)[:, None]
    batch = Batch(x, losses, np.ones((4000, 1), dtype=bool))
    problem = dc.Problem(1, P, joint=True)
    mechanism = dc.PooledRidge().calibrate(problem, dc.Budget(1e6, 1e-5))
    fit = mechanism.fit(batch, dc.SeededNoise(0))
    for _ in range(3):
        fit = mechanism.fit(batch, dc.SeededNoise(1), [fit.statistics])
    predicted = fit.predictor.scores(x)
    assert np.abs(predicted - losses).max() < 0.02
    # Rows that are normalised, beside losses that are not shortened, have a bias.
    monkeypatch.setattr(PooledStatistics, "row_bounds", lambda *_: NORMALISED)
    biased = mechanism.fit(batch, dc.SeededNoise(0))
    for _ in range(3):
        biased = mechanism.fit(batch, dc.SeededNoise(1), [biased.statistics])
    assert np.abs(biased.predictor.scores(x) - losses).max() > 0.02


def test_the_noise_does_not_know_how_many_items_there_are():
    def of(count):
        items = {f"i{number}": [0.1] for number in range(count)}
        return dc.Plan(
            actions=dc.Catalogue(dc.UnitBall(1), items), features=dc.UnitBall(2), budget=BUDGET
        ).mechanism

    few, many = of(2), of(3000)
    assert (few.gram, few.response, few.event) == (many.gram, many.response, many.event)
    assert few.prediction_noise([1000]) == many.prediction_noise([1000])
