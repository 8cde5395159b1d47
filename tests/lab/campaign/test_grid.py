"""The grid: the paper's 800 configurations a level, small ones within it, names for every run."""

import json
import math
from dataclasses import replace

import pytest

import discreet as dc
from campaigns import expected_runs, play, table
from discreet.data import load
from discreet.errors import InvalidInput
from discreet.lab.campaign.grid import ALGORITHMS, Grid, keys
from discreet.lab.campaign.presets import PAPER_POLICIES, QUICK_POLICIES, ROUNDS
from discreet.lab.campaign.result_files import read
from discreet.lab.rivals.rival_contract import RivalPlan
from discreet.plan.plan import Plan
from wording import refused


def count(grid):
    return sum(len(keys(grid, family)) for family in grid.families)


def test_the_paper_has_800_configurations_at_each_of_five_levels():
    grid = Grid.of("paper", algorithms=PAPER_POLICIES)
    assert count(grid) == 4000
    for epsilon in grid.epsilons:
        assert count(replace(grid, epsilons=(epsilon,))) == 800
    assert grid.seeds == 10
    assert len(grid.epsilons) == 5


def test_the_papers_batches_double_and_those_of_the_default_plan_are_its_own():
    grid = Grid.of("quick", algorithms=ALGORITHMS)
    for family in grid.families:
        schedules = [plan.schedule for _, plan in grid.plans(family, 2, 2)]
        batches = {(each.first, each.growth) for each in schedules}
        own = family.startswith("Pooled") or family.endswith(".rounds")
        assert batches == ({(16, 1.5)} if own else {(1, 2.0)})


def test_quick_lies_within_the_paper():
    for algorithm in PAPER_POLICIES:
        for policy in QUICK_POLICIES[algorithm]:
            assert policy in PAPER_POLICIES[algorithm]
    small, large = Grid.of("quick", epsilons=(1.0,)), Grid.of("paper")
    for family in small.families:
        assert {*keys(small, family)} <= {*keys(large, family)}


def test_names_and_families_tell_the_whole_configuration():
    grid = Grid.of("quick", algorithms=ALGORITHMS)
    for family in grid.families:
        for (algorithm, epsilon, delta, settings), plan in grid.plans(family, 2, 2):
            oracle, _, kind = family.partition(".")
            assert (plan.budget.epsilon, plan.budget.delta) == (epsilon, delta)
            read = json.loads(settings)
            assert settings == json.dumps(read, sort_keys=True, separators=(",", ":"))
            if isinstance(plan, RivalPlan):
                assert (type(plan.rival).__name__, kind) == (oracle, "rounds")
                continue
            assert type(plan.oracle).__name__ == oracle
            assert plan.policy.uses_radii == (kind == "radii")
            assert (algorithm == "Supervised") == (kind == "supervised")
            assert plan.feedback == ("full" if algorithm == "Supervised" else "bandit")
            assert plan.oracle.ridge == read.pop("ridge")
            assert type(plan.policy)(**read) == plan.policy
            assert type(plan.policy).__name__ == PLAYED.get(algorithm, algorithm)


def test_a_grid_has_one_order_and_one_digest():
    one = Grid.of("quick", algorithms=["LinUCB", "SquareCB"], epsilons=(1, math.inf, 1.0))
    other = Grid.of("quick", algorithms=["SquareCB", "LinUCB"], epsilons=(math.inf, 1.0))
    assert one == other
    assert one.digest == other.digest
    assert one.digest != Grid.of("quick", algorithms=["SquareCB"]).digest


def test_documents_and_back():
    grid = Grid.of("paper", mechanism="structured", features="wide")
    document = json.loads(json.dumps(grid.to_document(), allow_nan=False))
    assert Grid.from_document(document) == grid
    assert document["delta"] == 1e-5
    assert document["epsilons"][0] == "inf"


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"preset": "papr"}, "Did you mean 'paper'?"),
        ({"mechanism": "structure"}, "Did you mean 'structured'?"),
        ({"features": "standard"}, "raw"),
        ({"algorithms": ["SqareCB"]}, "Did you mean 'SquareCB'?"),
        ({"epsilons": (0.0,)}, "epsilon"),
        ({"ridges": (-1.0,)}, "ridges"),
        ({"seeds": 0}, "seeds"),
    ],
)
def test_what_a_grid_refuses(wrong, word):
    with refused(dc.InvalidInput, word):
        Grid.of(**wrong)


PLAYED = {"Default": "AdaptivePO", "Supervised": "Greedy"}
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


def test_a_campaign_of_rivals_is_played_and_extended(tmp_path):
    chosen = ["Default", "TreeLinUCB", "P2B", "PlainLinUCB"]
    small = Grid.of("rivals", algorithms=chosen, epsilons=(math.inf, 8.0), seeds=1)
    assert play(tmp_path, grid=small).failed == {}
    first = table(tmp_path)
    assert len(first) == expected_runs(small)
    assert {len(row["curve"]) for row in first.values()} == {5}
    assert all(0.0 < row["loss"] < 1.0 for row in first.values())
    more = Grid.of("rivals", algorithms=[*chosen, "AdaSSP"], epsilons=(math.inf, 8.0), seeds=1)
    assert play(tmp_path, grid=more).tasks == 1
    after = table(tmp_path)
    assert {key[1] for key in after} == {*chosen, "AdaSSP"}
    assert first.items() <= after.items()


# --- plans that a file declares, and the filter of oracles -------------------------------------

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
