"""``--reward-mean`` and its companions: sample sizes in ``discreet plan`` and ``curve``."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

import discreet as dc
from discreet.cli.command_line import as_json
from discreet.text import about
from tolerances import EXACT

PROBLEM = ["--actions", "3", "--dimension", "10", "--delta", "1e-6"]
MONEY = ["--reward-mean", "3", "--reward-spread", "15", "--reward-range", "0", "200"]


@pytest.fixture
def rewards(document):
    """What a command says of rewards with ``--json``."""
    return lambda *words: document(*words)["rewards"]


def sizes(plan, *numbers, **how):
    found = dc.sample_sizes(plan, *numbers, **how)
    return [json.loads(as_json(size._asdict())) for size in found.table]


def planned(outcome, dimension=10):
    budget = dc.Budget(3.0, 1e-6)
    return dc.Plan(n_actions=3, features=dc.UnitBall(dimension), budget=budget, outcome=outcome)


def test_a_plan_lists_the_sizes_of_the_library_and_its_own_epsilon(rewards):
    found = rewards("plan", *PROBLEM, "--epsilon", 3, "--reward-mean", 0.01)
    assert found["range"] == [0.0, 1.0]
    assert found["spread"] == pytest.approx(math.sqrt(0.0099), rel=EXACT)
    epsilons = [1, 2, 3, 4, 8, math.inf]
    assert found["sample_sizes"] == sizes(planned(dc.Reward(0, 1)), 0.01, epsilons=epsilons)


def test_every_flag_reaches_the_library(rewards):
    found = rewards("plan", *PROBLEM, *MONEY, "--difference", 0.5)
    assert (found["mean"], found["spread"], found["difference"]) == (3.0, 15.0, 0.5)
    assert found["sample_sizes"] == sizes(planned(dc.Reward(0, 200)), 3.0, 15.0, 0.5)


def test_the_text_shows_the_table_and_noise_in_rewards(call):
    _, out, _ = call("plan", *PROBLEM, *MONEY, "--horizon", 300)
    assert "a difference of 0.3 between two actions" in out
    assert "noise of a predicted reward" in out
    assert "Warning: 300 rounds are too few to tell a difference of 0.3" in out
    first = dc.sample_sizes(planned(dc.Reward(0, 200)), 3.0, 15.0).table[0]
    (line,) = [line for line in out.splitlines() if line.split()[-1:] == [about(first.personal)]]
    assert line.split() == ["1", about(first.means), about(first.personal)]


def test_the_batch_from_which_predictions_help_is_the_one_that_tells(call, document):
    flags = ["plan", *PROBLEM, "--epsilon", 8, "--reward-mean", 0.5, "--difference", 0.2]
    found = document(*flags)
    (own,) = [s for s in found["rewards"]["sample_sizes"] if s["epsilon"] == 8.0]
    batch = found["batches"][found["helpful_from_batch"] - 1]
    assert batch["rounds_before"] < own["personal"] <= batch["rounds_before"] + batch["records"]
    assert "← personal predictions tell the difference below" in call(*flags)[1]


def test_a_curve_adds_the_sizes_for_its_set(call, document, rewards):
    curve = ["curve", "--data", "linear", "--rows", 60, "--seeds", 2, "--epsilon", 1, 8, "--quiet"]
    found = rewards(*curve, "--reward-mean", 0.02)["sample_sizes"]
    data = dc.privacy_curve("linear:60", epsilons=[8], seeds=2).plan
    plan = replace(data, budget=dc.Budget.none(), outcome=dc.Reward(0, 1), horizon=None)
    assert found == sizes(plan, 0.02, epsilons=[1, 8])
    assert "Decisions until a difference of 0.002" in call(*curve, "--reward-mean", 0.02)[1]
    assert "rewards" not in document(*curve)


def test_the_forecast_in_sentences_follows_the_traffic(call, document, refuses):
    flags = ["plan", *PROBLEM, "--epsilon", 4, "--reward-mean", 0.1, "--difference", 0.01]
    slow, fast = (document(*flags, "--per-day", n)["sentences"] for n in (10, 10_000))
    for found in (slow, fast):
        assert "a difference of 1 percentage point between two actions can be seen" in found[0]
        assert found[1].startswith("At this ε and traffic, personal choices begin to help after")
        assert "The first release follows after 16 decisions" in found[2]
    assert "years" in slow[0]
    assert "years" not in fast[0]
    assert slow[0] in call(*flags, "--per-day", 10)[1]
    assert len(document(*flags)["sentences"]) == 2
    refuses(*flags, "--per-day", -1, said="decisions per day must be a positive finite number")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--reward-spread", 0.1], "reward_mean must be given where reward_spread is; got none"),
        (["--difference", 0.1], "reward_mean must be given where difference is; got none"),
        (["--reward-mean", 7], "mean reward must be inside the declared range [0, 1]; got 7"),
        ([*MONEY[:4], "--reward-range", 5, 2], "range of the reward must be two finite numbers"),
    ],
)
def test_what_does_not_fit_is_refused(refuses, flags, said):
    refuses("plan", *PROBLEM, *flags, said=said)
