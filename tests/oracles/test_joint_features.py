"""One block for all actions: exact sums, the sensitivity of one block, noise that does not grow."""

import numpy as np

import discreet as dc
from discreet.batch import Batch
from discreet.oracles.mechanisms.moments import NORMALISED
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics

BUDGET = dc.Budget(2.0, 1e-5)
P = 5


def test_a_linear_truth_is_found_whatever_the_matrix(monkeypatch):
    """Rows and losses shortened by one factor are least squares with other weights: no bias."""
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
    # Rows that are normalised, next to losses that are not shortened, have a bias.
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
