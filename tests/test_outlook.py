"""What a plan says of its noise, against noise that was drawn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import discreet as dc
from discreet.outlook import HOPELESS, prediction_noise, too_noisy, warn_if_too_noisy
from discreet.privacy.noise import SeededNoise
from discreet.releases.released import Released
from discreet.simulate.played_batches import play

ROWS, COLUMNS, SEEDS = 3000, 4, 24


def plan(epsilon=1.0, horizon=ROWS, **rest):
    features = dc.UnitBall(COLUMNS)
    return dc.Plan(
        n_actions=2, features=features, budget=dc.Budget(epsilon, 1e-5), horizon=horizon, **rest
    )


def drawn_noise(made):
    """Standard deviation over seeds of the last predictor's losses, for rows that never differ."""
    rng = np.random.default_rng(0)
    rows = made.features.map(rng.normal(size=(ROWS, COLUMNS)) / 2)
    truth, u = rng.integers(2, size=ROWS), rng.random((ROWS, 2))
    scores = []
    for seed in range(SEEDS):
        released = Released(2, made.schedule)
        noise = SeededNoise(seed)
        *_, last, _ = play(made, released, rows, truth, u, noise)
        scores.append(last.release.predictor.scores(rows[:500]))
    return float(np.sqrt(np.var(scores, axis=0).mean()))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_noise_of_a_prediction_is_what_seeds_show(epsilon):
    """Within a third: actions draw on noise too, and the geometry is learned from noisy numbers."""
    made = plan(epsilon, policy=dc.Uniform())
    said = prediction_noise(made, len(made.schedule.lengths()))[-1]
    assert 0.75 * said < drawn_noise(made) < 1.33 * said


def test_full_feedback_hears_every_action():
    lengths = [100, 200]
    one = plan(horizon=None).mechanism.prediction_noise(lengths)
    full = plan(horizon=None, feedback="full", losses="general").mechanism
    assert full.prediction_noise(lengths)[-1] < one[-1]


def test_a_hopeless_plan_is_told_so_and_can_be_silenced():
    assert too_noisy(plan(8.0)) is None
    assert "unlikely to beat the best fixed action within 200 rounds" in too_noisy(plan(0.5, 200))
    assert "nothing is released" in too_noisy(plan(1.0, 10))
    with pytest.warns(dc.Advice, match=r"docs/warnings.md#too-much-noise"):
        warn_if_too_noisy(plan(0.5, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dc.Advice)
        warn_if_too_noisy(plan(0.5, 200))


def test_where_nothing_can_be_said():
    assert prediction_noise(plan(oracle=dc.Logistic()), 3) is None
    assert too_noisy(plan(float("inf"), 100)) is None
    assert too_noisy(plan(0.5, None)) is None
    assert prediction_noise(plan(0.5, 200), 7)[-1] > HOPELESS
