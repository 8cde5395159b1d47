"""Plans that a campaign file declares, and the filter of oracles."""

from __future__ import annotations

import json

import pytest

import discreet as dc
from campaigns import play
from discreet.data import load
from discreet.errors import InvalidInput
from discreet.lab.campaign.grid import Grid, keys
from discreet.lab.campaign.result_files import read
from discreet.plan.plan import Plan

MINE = {
    "name": "Mine",
    "policy": {"kind": "SquareCB", "scale": [4, 16]},
    "oracle": [{"kind": "Ridge", "ridge": [0.01, 0.1]}, {"kind": "Logistic"}],
    "first_batch": 8,
}


def test_lists_are_all_combinations_with_batches_of_their_own():
    grid = Grid.of("default", epsilons=[1.0], plans=[MINE])
    assert grid.algorithms == ("Default", "Mine")
    assert grid.families == ("PooledRidge.predictions", "Ridge.Mine", "Logistic.Mine")
    assert len(keys(grid, "Ridge.Mine")) == 4
    assert len(keys(grid, "Logistic.Mine")) == 2
    _, plan = grid.plans("Ridge.Mine", 3, 5)[0]
    assert isinstance(plan, Plan)
    assert (plan.n_actions, plan.features.p, plan.first_batch) == (3, 6, 8)
    assert plan.oracle.mechanism == "structured"


def test_classes_may_be_items_of_a_catalogue(tmp_path):
    """Played as an evaluation with the same plan plays them, with all that a file may say."""
    items = {"name": "Items", "interactions": 32, "floor": 0.02, "half_life": 4}
    grid = Grid.of("default", epsilons=[8.0], seeds=2, plans=[items])
    assert not play(tmp_path / "out", ["twonorm:300"], grid=grid).failed
    _, plan = grid.plans("PooledRidge.Items", 2, 20)[0]
    assert (plan.floor, plan.half_life) == (0.02, 4)
    data = load("twonorm:300")
    rows = read(tmp_path / "out", ("algorithm", "seed", "loss")).to_pylist()
    found = {row["seed"]: row["loss"] for row in rows if row["algorithm"] == "Items"}
    for seed in (0, 1):
        one = dc.evaluate(plan, data.contexts, data.labels, seed=seed)
        assert found[seed] == pytest.approx(one.loss, abs=1e-6)


def test_settings_name_every_parameter_that_was_tried():
    tried = {"name": "Noises", "oracle": {"kind": "Logistic", "noise": ["gamma", "gaussian"]}}
    grid = Grid.of("default", epsilons=[1.0], plans=[tried])
    named = keys(grid, "Logistic.Noises")
    assert len(set(named)) == 2
    assert {json.loads(key[3])["noise"] for key in named} == {"gamma", "gaussian"}


def test_documents_and_unions_keep_declared_plans():
    grid = Grid.of("default", plans=[MINE], oracles=["Ridge"])
    assert Grid.from_document(json.loads(json.dumps(grid.to_document()))) == grid
    other = {**MINE, "name": "Other"}
    both = grid.union(Grid.of("default", plans=[MINE, other]))
    assert both.algorithms == ("Default", "Mine", "Other")
    assert both.oracles == ("Ridge", "Logistic")
    with pytest.raises(InvalidInput, match="different names"):
        grid.union(Grid.of("default", plans=[{**MINE, "first_batch": 9}]))


def test_the_filter_leaves_one_oracle_to_the_grids_policies():
    grid = Grid.of("quick", oracles=["Ridge"])
    assert {family.partition(".")[0] for family in grid.families} == {"Ridge", "PooledRidge"}
    assert "FastCB" not in grid.algorithms  # it needs predictions in [0, 1]
    full, ridge = Grid.of("quick"), "Ridge.predictions"
    assert keys(grid, ridge) == keys(full, ridge)
    with pytest.raises(InvalidInput, match="FastCB needs Logistic"):
        Grid.of("quick", algorithms=["FastCB"], oracles=["Ridge"])
    with pytest.raises(InvalidInput, match="Did you mean 'Ridge'"):
        Grid.of("quick", oracles=["Rigde"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "SquareCB"}, "plans.name must be"),
        ({"name": "a.b"}, "plans.name must be"),
        ({"polcy": {}}, "Did you mean 'policy'"),
        ({"policy": {"kind": "SquarCB"}}, "Did you mean 'SquareCB'"),
        ({"policy": {"kind": "SquareCB", "scales": 1}}, "Did you mean 'scale'"),
        ({"policy": {"kind": "SquareCB", "scale": []}}, "at least one value of scale"),
        ({"policy": {"kind": "FastCB"}, "oracle": {"kind": "Ridge"}}, "Use PooledRidge"),
        ({"oracle": {"kind": "Ridge", "mechanism": "paper"}}, "leave the mechanism"),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(changes, words):
    with pytest.raises(InvalidInput, match=words):
        Grid.of("default", plans=[{**MINE, **changes}])
