"""The grid: the paper's 800 configurations a level, small ones within it, names for every run."""

import json
import math
from dataclasses import replace

import pytest

import discreet as dc
from campaigns import expected_runs, play, table
from discreet.lab.campaign.grid import ALGORITHMS, Grid, keys
from discreet.lab.campaign.presets import PAPER_POLICIES, QUICK_POLICIES, ROUNDS
from discreet.lab.rivals.rival_contract import RivalPlan
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
