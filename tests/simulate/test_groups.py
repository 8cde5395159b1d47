"""Losses by group: the same losses as without groups, counted by group."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.simulate.group_losses import OTHERS, SMALLEST, Groups, over_rounds, over_seeds
from tolerances import EXACT, SOLVER
from wording import refused

ROWS = 240
RNG = np.random.default_rng(0)
CONTEXTS = RNG.uniform(-0.7, 0.7, size=(ROWS, 2))
LABELS = (CONTEXTS[:, 0] > 0).astype(int)
REGION = np.where(np.arange(ROWS) < 5, "east", np.where(RNG.random(ROWS) < 0.3, "south", "north"))
PLAN = dc.Plan(n_actions=2, features=dc.UnitBall(2), budget=dc.Budget(8.0, 1e-5))
NAMES = ("north", "south", OTHERS)


def test_each_group_has_its_own_rounds_losses_and_levels():
    run = dc.evaluate(PLAN, CONTEXTS, LABELS, groups=REGION, seed=3)
    plain = dc.evaluate(PLAN, CONTEXTS, LABELS, seed=3)
    np.testing.assert_array_equal(run.losses, plain.losses)
    order = np.random.default_rng([3, 2**31]).permutation(ROWS)
    found = run.by_group()
    assert found.names == NAMES
    assert sum(line.rounds for line in found) == ROWS
    for line in found:
        members = REGION[order] == ("east" if line.group == OTHERS else line.group)
        assert line.rounds == members.sum()
        assert line.epsilon == 8.0
        assert line.loss == pytest.approx(run.losses[members].mean(), abs=EXACT)
        shares = np.bincount(LABELS[order][members], minlength=2) / members.sum()
        assert line.best_fixed == pytest.approx(1 - shares.max(), abs=EXACT)
        assert line.uniform == pytest.approx(0.5, abs=EXACT)
        assert 0.0 <= line.low <= line.loss <= line.high <= 1.0


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_groups_are_an_array_a_series_or_a_column(kind):
    expected = dc.evaluate(PLAN, CONTEXTS, LABELS, groups=REGION).by_group()
    columns = {"x": CONTEXTS[:, 0], "region": REGION, "y": CONTEXTS[:, 1], "best": LABELS}
    frame = kind(columns)
    found = dc.evaluate(PLAN, frame, "best", groups="region").by_group()
    assert found.lines == expected.lines
    assert tuple(found.to_frame()["group"]) == NAMES
    series = pl.Series(REGION)
    assert dc.evaluate(PLAN, CONTEXTS, LABELS, groups=series).by_group().lines == expected.lines
    assert dc.evaluate(PLAN, CONTEXTS, LABELS, groups=list(REGION)).by_group().names == NAMES


def test_a_curve_has_the_groups_of_its_runs():
    how = {"epsilons": [1, 8, math.inf], "seeds": 3, "horizon": 150}
    curve = dc.privacy_curve(CONTEXTS, LABELS, groups=REGION, **how)
    plain = dc.privacy_curve(CONTEXTS, LABELS, **how)
    np.testing.assert_allclose(curve.losses, plain.losses, rtol=0, atol=EXACT)
    found = {(line.group, line.epsilon): line for line in curve.by_group()}
    assert len(found) == 9
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(2), budget=dc.Budget(8.0, 1e-5), horizon=150)
    runs = [dc.evaluate(plan, CONTEXTS, LABELS, groups=REGION, seed=seed) for seed in range(3)]
    for place, name in enumerate(NAMES[:2]):
        lines = [run.by_group().lines[place] for run in runs]
        line = found[name, 8.0]
        mean, _, low, high = over_seeds([each.loss for each in lines], 0.95)
        assert (line.loss, line.best_fixed) == pytest.approx(
            (mean, np.mean([each.best_fixed for each in lines])), abs=SOLVER
        )
        assert (line.low, line.high) == pytest.approx((max(0, low), min(1, high)), abs=SOLVER)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("abcdef"), min_size=SMALLEST * 3, max_size=200))
def test_small_groups_are_pooled_and_no_row_is_lost(values):
    counts = {each: values.count(each) for each in set(values)}
    large = {each for each in counts if counts[each] >= SMALLEST}
    if not large:
        with refused(dc.InvalidInput, "groups must be at most"):
            Groups.of(values, len(values))
        return
    found = Groups.of(values, len(values))
    assert set(found.names) - {OTHERS} == large
    assert (OTHERS in found.names) == (large != set(counts))
    for value, place in zip(values, found.numbers, strict=True):
        assert found.names[place] == (value if value in large else OTHERS)


def test_wilsons_interval_covers():
    """At a mean of 0.1 and 30 rounds, 95 % intervals; 1 in 10⁴ seeds would fail."""
    losses = np.random.default_rng(1).random((2000, 30)) < 0.1
    intervals = [over_rounds(each.astype(float), 0.95) for each in losses]
    covered = np.mean([each.low <= 0.1 <= each.high for each in intervals])
    assert covered > 0.95 - 3.72 * math.sqrt(0.05 * 0.95 / 2000)
    assert over_rounds(np.ones(40), 0.95).low == pytest.approx(0.9124, abs=1e-4)
    assert math.isnan(over_rounds(np.empty(0), 0.95).loss)


def test_a_group_that_never_comes_has_no_loss():
    rare = ["all"] * (ROWS - 1) + ["one"]
    curve = dc.privacy_curve(CONTEXTS, LABELS, groups=rare, epsilons=[8], seeds=2, horizon=30)
    assert curve.by_group().names == ("all", OTHERS)
    assert "–" in repr(curve.by_group())


def test_bad_groups_are_refused():
    for groups, said in (
        (REGION[:-1], "one value per context"),
        ([*REGION[:2], None, *REGION[3:]], "groups must be known"),
        (CONTEXTS[:, 0], "Cut numbers"),
    ):
        with refused(dc.InvalidInput, said):
            dc.evaluate(PLAN, CONTEXTS, LABELS, groups=groups)
    with refused(dc.InvalidInput, "groups must be given to evaluate"):
        dc.evaluate(PLAN, CONTEXTS, LABELS).by_group()
    with refused(dc.InvalidInput, "groups must be given to privacy_curve"):
        dc.privacy_curve(CONTEXTS, LABELS, epsilons=[8], seeds=2, horizon=20).by_group()
