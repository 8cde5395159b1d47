"""A campaign computes in float32. What it reports is that of float64, within stated bounds.

One rounding can turn one action, and from there on a run is another draw of the same thing; so
single runs need not agree, but nearly all do, and what is selected and reported must.
"""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.batch import Batch
from discreet.data import load
from discreet.features.unit_ball import UnitBall
from discreet.lab.campaign.grid import Grid
from discreet.lab.rivals import AdaSSP, adassp
from discreet.oracles.mechanisms import moments, perturb, ridge
from discreet.oracles.mechanisms.moments import stretched_sums
from discreet.simulate import engine
from discreet.simulate.engine import Machine, run
from tolerances import EXACT

SAME = 0.9
"""Least share of runs with the very same loss."""
TYPICAL = 0.002
"""Largest mean absolute difference of all runs."""
REPORTED = 0.02
"""Largest difference of a selected mean loss, for any algorithm and ε: over three seeds of 900
rounds, of which one is another draw."""
ROWS = 900
SEEDS = range(3)


def losses(data, mechanism, dtype):
    """Final losses (runs, seeds) of the quick grid, and the (algorithm, ε) of each run."""
    grid = Grid.of("quick", mechanism=mechanism)
    dimension = data.contexts.shape[1]
    features = UnitBall(dimension).map(data.contexts)
    names, played = [], []
    for family in grid.families:
        keys, plans = zip(*grid.plans(family, data.n_actions, dimension), strict=True)
        names += [key[:2] for key in keys]
        played.append(run(plans, features, data.labels, SEEDS, Machine("numpy", dtype))[..., -1])
    return np.concatenate(played), names


def agreement(ours, theirs):
    return np.isclose(ours, theirs, rtol=0.0, atol=EXACT).mean()


def selected(losses, names):
    """The best mean loss of each algorithm at each ε: what a report shows."""
    means, best = losses.mean(axis=1), {}
    for name, mean in zip(names, means, strict=True):
        best[name] = min(mean, best.get(name, np.inf))
    return best


@pytest.mark.parametrize("mechanism", ["structured", pytest.param("paper", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["fried", pytest.param("waveform", marks=pytest.mark.long)])
def test_float32_reports_what_float64_does(name, mechanism):
    data = load(name, rows=ROWS)
    single, names = losses(data, mechanism, "float32")
    double, _ = losses(data, mechanism, "float64")
    assert agreement(single, double) >= SAME
    assert np.abs(single - double).mean() <= TYPICAL
    theirs = selected(double, names)
    for which, loss in selected(single, names).items():
        assert abs(loss - theirs[which]) <= REPORTED, which


# --- without noise -----------------------------------------------------------------------------

PLAIN = dc.PooledRidge(geometry="plain")
OPEN = {"features": UnitBall(4), "n_actions": 3}
WITHOUT_NOISE = {
    "default": {},
    "pooled": {"policy": dc.SquareCB()},
    "pooled, radii": {"policy": dc.LinUCB()},
    "full feedback": {"feedback": "full", "policy": dc.Greedy()},
    "plain": {"policy": dc.SquareCB(), "oracle": PLAIN},
    "plain, full feedback": {"feedback": "full", "policy": dc.Greedy(), "oracle": PLAIN},
    "structured": {"policy": dc.SquareCB(), "oracle": dc.Ridge(1e-8)},
    "structured, radii": {"policy": dc.LinUCB(), "oracle": dc.Ridge(1e-8)},
    "paper": {"policy": dc.SquareCB(), "oracle": dc.Ridge(1e-8, mechanism="paper")},
}


def collinear(rows=600):
    """Two columns that nearly repeat the others; what they add decides the label."""
    rng = np.random.default_rng(11)
    free, rest = rng.uniform(-0.4, 0.4, (rows, 2)), rng.normal(size=(rows, 2))
    contexts = np.hstack([free, free[:, ::-1] + 3e-4 * rest])
    labels = np.where(rest[:, 0] > 0.5, 2, rest[:, 1] > 0)
    # Features that float32 has too: what differs is arithmetic alone.
    return UnitBall(4).map(contexts).astype(np.float32).astype(np.float64), labels


def played(kind, machine):
    """Final losses (2, seeds) without noise and with little, played together."""
    budgets = dc.Budget.none(), dc.Budget(1e4, 1e-5)
    plans = [dc.Plan(**OPEN, budget=budget, **WITHOUT_NOISE[kind]) for budget in budgets]
    return run(plans, *collinear(), range(10), machine)[..., -1]


def sums_in_single_precision(features, weights, heard, matrix, *bounds, exact=stretched_sums):
    """Sums of stretched rows, of which those in plain coordinates were rounded to float32."""
    gram, response = exact(features, weights, heard, matrix, *bounds)
    there, back = matrix[..., None, :, :], np.linalg.inv(matrix)
    plain = back[..., None, :, :] @ gram @ back.mT[..., None, :, :], response @ back.mT
    gram, response = (each.astype(np.float32).astype(np.float64) for each in plain)
    return there @ gram @ there.mT, response @ matrix.mT


@pytest.mark.parametrize("kind", WITHOUT_NOISE)
def test_collinear_columns_in_float32(kind, monkeypatch):
    single, double = (played(kind, Machine("numpy", dtype)) for dtype in ("float32", "float64"))
    assert agreement(single[0], double[0]) >= SAME
    for module in (engine, perturb, ridge):  # sums in float32 would be noticed
        monkeypatch.setattr(module, "needs_double", lambda *_: False)
    monkeypatch.setattr(moments, "stretched_sums", sums_in_single_precision)
    assert agreement(played(kind, Machine("numpy", "float32"))[0], double[0]) < SAME


def test_pooled_statistics_without_noise_read_features_in_float64(monkeypatch):
    """Features that float32 rounds, with columns that repeat each other but for the rounding."""
    rng = np.random.default_rng(3)
    free = rng.uniform(-0.4, 0.4, (600, 2))
    contexts = np.hstack([free, free / 3 + 1e-7 * rng.normal(size=(600, 2))])
    plan = dc.Plan(**OPEN, budget=dc.Budget.none())
    features, labels = UnitBall(4).map(contexts), (3 * rng.random(600)).astype(int)

    def losses(dtype):
        return run([plan], features, labels, range(10), Machine("numpy", dtype))[0, :, -1]

    double = losses("float64")
    np.testing.assert_array_equal(losses("float32"), double)
    monkeypatch.setattr(engine, "needs_double", lambda *_: False)
    assert agreement(losses("float32"), double) < SAME


@pytest.mark.torch
@pytest.mark.parametrize("kind", WITHOUT_NOISE)
def test_collinear_columns_in_float32_of_torch(kind):
    pytest.importorskip("torch")
    single, double = played(kind, Machine("cpu", "float32")), played(kind, Machine())
    assert agreement(single[0], double[0]) >= SAME


def test_a_rivals_fit_of_collinear_columns_in_float32(monkeypatch):
    features, labels = collinear()
    mechanism = AdaSSP().calibrate(dc.Problem(3, features.shape[1]), dc.Budget.none())
    losses = 1.0 * (labels[:, None] != np.arange(3))

    def weights(dtype):
        batch = Batch(features.astype(dtype), losses.astype(dtype), losses == losses)
        found = mechanism.fit(batch, dc.SeededNoise(0)).predictor.weights
        assert found.dtype == dtype
        return found.astype(float)

    expected = weights(np.float64)
    np.testing.assert_allclose(weights(np.float32), expected, rtol=1e-6)
    monkeypatch.setattr(adassp, "needs_double", lambda *_: False)
    assert np.abs(weights(np.float32) / expected - 1.0).max() > 1e-3
