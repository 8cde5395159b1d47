"""A campaign computes in float32. What it reports is that of float64, within stated bounds.

One rounding can turn one action, and from there on a run is another draw of the same thing; so
single runs need not agree, but nearly all do, and what is selected and reported must.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.campaign.grid import Grid
from discreet.data import load
from discreet.features.unit_ball import UnitBall
from discreet.simulate.engine import Machine, run
from tolerances import EXACT

SAME = 0.9
"""Least share of runs with the very same loss."""
TYPICAL = 0.002
"""Largest mean absolute difference of all runs."""
REPORTED = 0.02
"""Largest difference of a selected mean loss, for any algorithm and ε: over three seeds of 1,500
rounds, of which one is another draw."""
ROWS = 1500
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


@pytest.mark.parametrize("mechanism", ["paper", "structured"])
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


def test_coarser_numbers_would_be_noticed():
    """The bounds are tight enough to tell a precision that does not suffice."""
    data = load("fried", rows=ROWS)
    coarse = replace(data, contexts=np.round(64 * data.contexts) / 64)
    rounded, _ = losses(coarse, "structured", "float64")
    exact, _ = losses(data, "structured", "float64")
    assert agreement(rounded, exact) < SAME
