"""Offsets and units of losses: how much they may change predictors and decisions."""

import numpy as np
import pytest

import discreet as dc
from discreet.batch import Batch
from discreet.oracles.mechanisms.moments import NORMALISED
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics

ACTIONS, COLUMNS = 3, 3
SPACE = dc.UnitBall(COLUMNS)
PROBES = SPACE.map(np.random.default_rng(99).uniform(-0.5, 0.5, size=(200, COLUMNS)))
LENGTHS = (60, 100, 400, 900)
EXACT = 1e-9
"""Largest change where nothing but rounding may differ; in standard errors, or a probability."""
WEIGHED = 0.1
"""Where the offset changes how long the constant feature is, and so how rows are weighed, in
standard errors that the release publishes. Seeded; the largest that is found is half."""
# Without noise


def batches(shift=0.0, scale=1.0, effect=0.1, around=0.2):
    """Losses between 0 and 1 that differ with action and context, and by chance up to ``around``.

    Actions are played in other contexts each. ``scale`` is relative to the loss ½, before the
    shift.
    """
    rng, made = np.random.default_rng(0), []
    for n in LENGTHS:
        contexts = rng.uniform(-0.5, 0.5, size=(n, COLUMNS))
        x = SPACE.map(contexts)
        played = np.where(rng.random(n) < 0.5, contexts[:, 0] > 0, rng.integers(ACTIONS, size=n))
        own = effect * np.array([1.0, -1.0, 0.0])[played] * x[:, 1]
        losses = 0.5 + shift + scale * (own + rng.uniform(-around, around, size=n))
        assert ((losses >= 0.0) & (losses <= 1.0)).all()
        observed = np.eye(ACTIONS, dtype=bool)[played]
        made.append(Batch(x, np.where(observed, losses[:, None], 0.0), observed))
    return made


def chain(data):
    mechanism = dc.PooledRidge().calibrate(dc.Problem(ACTIONS, COLUMNS + 1), dc.Budget.none())
    earlier, fits = (), []
    for number, each in enumerate(data, start=1):
        fits.append(mechanism.fit(each, dc.SeededNoise(0, number), earlier))
        earlier = (*earlier, fits[-1].statistics)
    return fits


def differences(fits, scale=1.0):
    """Predicted losses (releases, rows, A) less the mean of all actions, in units of ``scale``."""
    predicted = np.array([fit.predictor.scores(PROBES) for fit in fits]) / scale
    return predicted - predicted.mean(axis=-1, keepdims=True)


CHANGES = [
    pytest.param({"shift": 0.15}, id="add 0.15"),
    pytest.param({"shift": -0.15}, id="subtract 0.15"),
    pytest.param({"scale": 0.1}, id="a tenth, around 0.5"),
    pytest.param({"scale": 0.1, "shift": 0.45}, id="a tenth, around 1"),
    pytest.param({"scale": 0.1, "shift": -0.45}, id="a tenth, around 0"),
]


def moved(effect, change):
    """Change of predicted differences after each release, in the errors that it publishes."""
    fits = chain(batches(effect=effect, around=0.05))
    found = differences(
        chain(batches(effect=effect, around=0.05, **change)), change.get("scale", 1.0)
    )
    errors = np.array([fit.statistics.signal[1:].max() for fit in fits])
    return np.abs(found - differences(fits)).max(axis=(1, 2)) / errors


@pytest.mark.parametrize("change", CHANGES)
def test_offset_and_unit_do_not_change_predicted_differences(change):
    """Adding a constant to all losses leaves them the same; a tenth of all losses is a tenth."""
    offset_in_units = change.get("shift", 0.0) / change.get("scale", 1.0)
    assert (moved(0.1, change) < (EXACT if abs(offset_in_units) < 1.0 else WEIGHED)).all()


# Clicks, of which 3 % of all people make one


CLICKS = 0.03


def error_of_differences():
    """Root mean squared error of predicted differences after 120,000 rows, without noise.

    Two actions differ by 0.01 at the most, with the context, and each is played more often where
    it is better.
    """
    rng = np.random.default_rng(7)
    mechanism = dc.PooledRidge().calibrate(dc.Problem(2, COLUMNS + 1), dc.Budget.none())
    earlier = ()
    for number in range(1, 7):
        contexts = rng.uniform(-0.5, 0.5, size=(20_000, COLUMNS))
        better = np.where(rng.random(20_000) < 0.8, contexts[:, 0] < 0, rng.random(20_000) < 0.5)
        played = 1 * better
        chance = 1.0 - CLICKS + 0.01 * contexts[:, 0] * (2 * played - 1)
        losses = 1.0 * (rng.random(20_000) < chance)
        data = Batch(
            SPACE.map(contexts), np.tile(losses[:, None], 2), np.eye(2, dtype=bool)[played]
        )
        fit = mechanism.fit(data, dc.SeededNoise(0, number), earlier)
        earlier = (*earlier, fit.statistics)
    probes = np.random.default_rng(8).uniform(-0.5, 0.5, size=(2_000, COLUMNS))
    predicted = fit.predictor.scores(SPACE.map(probes))
    return np.sqrt(np.mean((predicted[:, 1] - predicted[:, 0] - 0.02 * probes[:, 0]) ** 2))


def test_clicks_have_no_offset_bias(monkeypatch):
    """Sampling alone has an error of 0.003; normalised rows turn the offset of 0.47 into 0.07."""
    assert error_of_differences() < 0.006
    monkeypatch.setattr(PooledStatistics, "row_bounds", lambda *_: NORMALISED)
    assert error_of_differences() > 0.04


def share_of_the_gain(width, epsilon, seed, rows=20_000, step=200):
    """(policy − uniform)/(best − uniform) of the default plan; rewards are declared in [0, width].

    Three actions, of which the context says which one has up to 6 % of clicks, and which none.
    """
    rng = np.random.default_rng([3, seed])
    contexts = rng.uniform(-0.5, 0.5, size=(rows, COLUMNS))
    chance = CLICKS * (1.0 + 2.0 * contexts @ np.eye(COLUMNS, ACTIONS))
    clicks = rng.random((rows, ACTIONS)) < chance
    budget = dc.Budget(epsilon, 1e-5)
    plan = dc.Plan(n_actions=ACTIONS, features=SPACE, budget=budget, horizon=rows)
    draws = np.random.default_rng([4, seed])
    learner, gained = dc.Learner(plan, noise=dc.SeededNoise(seed), draws=draws), 0.0
    for first in range(0, rows, step):
        part = slice(first, first + step)
        made = learner.decide(contexts[part])
        chosen = np.arange(step), made.action_index
        gained += chance[part][chosen].sum()
        learner.observe(made.id, 1.0 - clicks[part][chosen] / width)
    even, best = chance.mean(axis=1).sum(), chance.max(axis=1).sum()
    return (gained - even) / (best - even)


SEEDS = 24
WIDER = 0.25
"""Largest loss of the share from a range that is twice as wide as needed, mean of all seeds."""
AS_NOISE = 0.2
"""The same, compared with half the ε: either makes noise twice as large as the effects."""


def test_a_range_twice_as_wide_costs_no_more_than_its_noise():
    narrow, wide, noisier = (
        np.mean([share_of_the_gain(width, epsilon, seed) for seed in range(SEEDS)])
        for width, epsilon in ((1.0, 8.0), (2.0, 8.0), (1.0, 4.0))
    )
    assert narrow > 0.45  # with normalised rows it is 0.1
    assert wide > narrow - WIDER
    assert wide > noisier - AS_NOISE
