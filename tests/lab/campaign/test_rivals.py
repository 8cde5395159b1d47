"""The preset rivals: every algorithm has runs, and a folder is resumed."""

import math

import numpy as np

from campaigns import SET, expected_runs, play, table
from discreet.lab.campaign.grid import Grid, keys
from discreet.lab.campaign.presets import ROUNDS

EVERYBODY = {"Default", "AdaSSP", "Epsilon-greedy", "Thompson", *ROUNDS}


def test_the_preset_has_everybody():
    grid = Grid.of("rivals")
    named = {key[0] for family in grid.families for key in keys(grid, family)}
    assert named == EVERYBODY == {*grid.algorithms}
    assert len(named) >= 10
    assert {epsilon for _, epsilon, _, _ in keys(grid, "TreeLinUCB.rounds")} == {
        *(math.inf, 8.0, 4.0, 2.0, 1.0, 0.5)
    }
    assert {epsilon for _, epsilon, _, _ in keys(grid, "PlainLinUCB.rounds")} == {math.inf}
    assert Grid.from_document(grid.to_document()).digest == grid.digest


def test_a_campaign_of_rivals_plays_and_goes_on(tmp_path):
    chosen = ["Default", "TreeLinUCB", "P2B", "PlainLinUCB"]
    small = Grid.of("rivals", algorithms=chosen, epsilons=(math.inf, 8.0), seeds=1)
    assert play(tmp_path, grid=small).failed == {}
    first = table(tmp_path)
    assert len(first) == expected_runs(small)
    assert all(0.0 < row["loss"] < 1.0 for row in first.values())
    more = Grid.of("rivals", algorithms=[*chosen, "AdaSSP"], epsilons=(math.inf, 8.0), seeds=1)
    assert play(tmp_path, grid=more).tasks == 1
    after = table(tmp_path)
    assert {key[1] for key in after} == {*chosen, "AdaSSP"}
    assert all(after[key] == row for key, row in first.items())
    assert SET in {key[0] for key in after}
    curves = [row["curve"] for row in after.values()]
    assert {len(curve) for curve in curves} == {len(curves[0])}
    assert np.isfinite(curves).all()
