"""Plan: everything public in one frozen object, with a digest, and refusals before any data."""

import json
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest

import discreet as dc
from catalogue import POLICIES
from discreet.cli.main import main
from discreet.plan.explanation import LARGE, plan_size
from discreet.privacy.accounting import epsilon_in_one_batch
from discreet.privacy.budget import USUAL, Participation
from discreet.simulate.warm_start import prior_from_logs
from small_plans import small_plan
from wording import refused

PRIVATE, PURE = dc.Budget(1.0, 1e-5), dc.Budget(1.0)
BASE = {
    "n_actions": 3,
    "features": dc.UnitBall(10),
    "policy": dc.ReplayBonusPO(learning_rate=0.1, bonus=0.01),
    "oracle": dc.Ridge(ridge=0.01),
    "budget": PRIVATE,
}


ITEMS = dc.Catalogue(dc.UnitBall(2), {"a": [0.1, 0.2], "b": [0.2, 0.1]})
JOINT = dc.Joint(dc.UnitBall(2), dc.UnitBall(3))
UNIFORM = ("uniform", "mail", "call")


def plan(**changes):
    return dc.Plan(**{**BASE, **changes})


def finite(n_actions=3, p=11):
    return dc.FiniteClass(np.linspace(-1, 1, 2 * n_actions * p).reshape(2, n_actions, p))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_actions": 1}, ["n_actions must be at least 2", "1"]),
        ({"n_actions": 2.0}, ["n_actions", "whole number"]),
        ({"horizon": 0}, ["horizon must be at least 1", "0"]),
        ({"horizon": -5}, ["horizon must be at least 1", "-5"]),
        ({"first_batch": 0}, ["first_batch must be at least 1"]),
        ({"feedback": "ful"}, ["feedback", "'ful'", "Did you mean 'full'?"]),
        ({"losses": "one_labels"}, ["losses", "Did you mean 'one_label'?"]),
        ({"losses": "one_label"}, ["losses must be 'general' with bandit feedback"]),
        ({"missing_loss": 1.5}, ["missing_loss must be a number in [0, 1]", "1.5"]),
        ({"missing_loss": 1.0, "feedback": "full"}, ["missing_loss must be None", "full"]),
        ({"policy": dc.FastCB()}, ["FastCB", "Ridge", "Use PooledRidge, Logistic or FiniteClass"]),
        ({"policy": dc.FastCB(), "oracle": dc.Ridge(mechanism="paper")}, ["FastCB", "Ridge"]),
        ({"budget": PURE}, ["delta must be above 0", "Gaussian noise", "0.0"]),
        ({"budget": PURE, "oracle": dc.Ridge(mechanism="paper")}, ["delta must be above 0"]),
        ({"budget": PURE, "oracle": dc.Logistic(noise="gaussian")}, ["delta must be above 0"]),
        ({"budget": PURE, "oracle": dc.Logistic(), "policy": dc.LinUCB()}, ["delta", "radii"]),
        ({"oracle": dc.Logistic(noise="gamma"), "policy": dc.AdaCB()}, ["'gamma'", "radii"]),
        ({"oracle": finite(), "policy": dc.LinUCB()}, ["radii", "FiniteClass"]),
        ({"oracle": finite(n_actions=2)}, ["weights", "(F, 3, 11)", "(2, 2, 11)"]),
        ({"oracle": finite(p=10)}, ["weights", "(F, 3, 11)", "(2, 3, 10)"]),
        ({"features": []}, ["got []", "Schema([...])"]),
        ({"oracle": "FiniteClass"}, ["oracle", "as FiniteClass(...)"]),
        ({"budget": "1"}, ["got '1'", "Pass Budget(1.0, delta=1e-5)"]),
        ({"control": dc.Control(0.05)}, ["control.share must leave each part", "first_batch=20"]),
        ({"control": dc.Control(0.95)}, ["control.share must leave each part", "first_batch=20"]),
        ({"control": dc.Control(0.5), "horizon": 1}, ["control.share must leave each part"]),
        ({"control": dc.Control(0.2, "nothing")}, ["control.action must be", "'nothing'"]),
        ({"control": dc.Control(0.2, 3)}, ["control.action must be", "got 3"]),
        ({"control": dc.Control(0.2, True)}, ["control.action must be", "got True"]),
        ({"control": 0.1}, ["control must be a Control", "Write Control(share=0.1)"]),
        ({"control": dc.Control(), "feedback": "full"}, ["control must be left out with full"]),
        ({"control": dc.Control(), "budget": PURE}, ["delta must be above 0"]),
        ({"control": dc.Control(), "actions": UNIFORM}, ["control.action must say one thing"]),
        ({"actions": ITEMS, "feedback": "full"}, ["must be 'bandit' with a catalogue"]),
        ({"actions": ITEMS, "features": JOINT}, ["schema of the catalogue"]),
        ({"features": JOINT}, ["Catalogue"]),
        ({"floor": 0.0}, ["floor must be above 0"]),
        ({"floor": 2.0}, ["floor must be"]),
    ],
)
def test_the_impossible_is_refused_before_any_data(changes, words):
    with refused(dc.InvalidInput, *words):
        plan(**changes)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), True, None, [1, 2], "1"])
def test_epsilon_is_above_zero(epsilon):
    with refused(dc.InvalidInput, "epsilon must be above 0", repr(epsilon), "Budget.none()"):
        dc.Budget(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, float("nan"), "0", None])
def test_delta_lies_in_zero_to_one(delta):
    with refused(dc.InvalidInput, "delta must be a number in [0, 1)", repr(delta)):
        dc.Budget(1.0, delta)


OTHER = {
    "n_actions": 4,
    "features": dc.UnitBall(9),
    "policy": dc.ReplayBonusPO(learning_rate=0.1, bonus=0.02),
    "oracle": dc.Ridge(ridge=0.02),
    "budget": dc.Budget(1.0, 1e-6),
    "feedback": "full",
    "losses": "one_label",
    "horizon": 10,
    "first_batch": 2,
    "growth": 2.5,
    "longest_batch": 64,
    "imported": 100,
    "prior": None,  # made in the test, for its plan
    "close_every": "7d",
    "half_life": 8,
    "missing_loss": 1.0,
    "actions": ("none", "mail", "call"),
    "outcome": dc.Reward(0, 50),
    "releases": "on_request",
    "unit": "user",
    "batches_per_user": 3,
    "records_per_batch": 2,
    "control": dc.Control(0.2, "uniform"),
    "floor": 0.01,
    "guardrails": (dc.Guardrail("complaints"),),
    "guardrails_share": 0.2,
}
COUNTS = ("batches_per_user", "records_per_batch")
"""What only plans for users have."""


def test_there_is_a_change_for_every_field():
    assert set(OTHER) == {each.name for each in fields(dc.Plan)}


@pytest.mark.parametrize("name", OTHER)
def test_the_digest_sees_every_field(name):
    base = plan(feedback="full") if name == "losses" else plan()
    changes = {name: OTHER[name]}
    if name in COUNTS:
        base = replace(base, unit="user", batches_per_user=5, records_per_batch=7)
    if name == "prior":
        base, rows = plan(oracle=dc.PooledRidge()), np.zeros((3, base.features.dimension))
        changes = {name: prior_from_logs(base, rows, [0, 1, 2], [0, 1, 1])}
    if name.startswith("guardrails"):
        rails = None if name == "guardrails" else OTHER["guardrails"]
        base = replace(base, control=dc.Control(0.2), guardrails=rails)
    if name == "unit":
        changes |= {each: OTHER[each] for each in COUNTS}
    assert replace(base, **changes).digest != base.digest


def test_the_digest_does_not_see_how_a_number_was_written():
    assert plan(policy=dc.VanillaPO(scale=8)).digest == plan(policy=dc.VanillaPO(scale=8.0)).digest
    assert plan(n_actions=np.int64(3)).digest == plan().digest
    whole, decimal = dc.Schema([dc.Number("a", 0, 1)]), dc.Schema([dc.Number("a", 0.0, 1.0)])
    assert plan(features=whole).digest == plan(features=decimal).digest


@pytest.mark.parametrize("name", POLICIES)
def test_round_trip_through_json(name):
    fields = [dc.Number("a", 0, 100), dc.Category("b", ["x", "y"])]
    oracle = dc.PooledRidge() if POLICIES[name][0].needs_bounded_losses else dc.Ridge()
    first = plan(policy=POLICIES[name][-1], oracle=oracle, features=dc.Schema(fields))
    second = dc.Plan.from_config(json.loads(json.dumps(first.to_config())))
    assert second == first
    assert second.to_config() == first.to_config()
    assert second.digest == first.digest
    assert second.mechanism == first.mechanism  # calibrated anew, to the same noise


def test_the_digest_of_a_plan_is_a_promise():
    """Changing it breaks every chain that began with this plan: see docs/stability.md."""
    pinned = plan(
        policy=dc.SquareCB(scale=4.0, exponent=0.5),
        oracle=dc.Ridge(ridge=0.01, mechanism="structured", noise_ridge=1.0),
    )
    assert pinned.digest == "5ac03cc31b4568dc3d5cdcc6b1c3ac412e6191fd2f7a6c3fd035ea5af38935b1"


def test_problem_and_budget_are_a_plan_and_it_explains_itself():
    plan = dc.Plan(n_actions=3, features=dc.UnitBall(10), budget=PRIVATE)
    assert (plan.policy, plan.oracle) == (dc.AdaptivePO(), dc.PooledRidge())
    lines = plan.explain()
    text = " ".join(lines.split())
    assert "1/(2A) = 0.167" in text
    assert f"noise of {plan.mechanism.gram:.3g} on second moments" in text
    assert "ε = 1, δ = 1e-05 for one decision" in text
    assert max(map(len, lines.splitlines())) <= 88
    given = dc.Plan(**BASE | {"policy": dc.SquareCB(), "oracle": dc.Logistic()}).explain()
    assert "SquareCB(scale=4.0, exponent=0.5), as given." in given


@pytest.mark.parametrize("unit", ["customer", "Decision", "", None, 3])
def test_a_plan_promises_only_what_is_enforced(unit):
    with refused(dc.InvalidInput, "unit must be 'decision' or 'user'; got", "what is enforced"):
        plan(unit=unit)
    with refused(dc.InvalidInput, "unit must be 'decision' or 'user'; got"):
        dc.Plan.from_config(plan().to_config() | {"unit": unit})


def test_a_plan_for_users_has_a_usual_bound():
    """It is written down: the digest and every reader know it."""
    usual = plan(unit="user")
    assert usual.participation == USUAL == Participation(4, 1)
    assert usual == plan(unit="user", batches_per_user=4, records_per_batch=1)
    assert usual.to_config()["batches_per_user"] == 4
    assert plan(unit="user", batches_per_user=7).participation == Participation(7, 1)
    assert plan(unit="user", records_per_batch=2).participation == Participation(4, 2)
    assert "at most 1 record in each of at most 4 batches" in " ".join(usual.explain().split())
    written = usual.to_config()
    del written["batches_per_user"]
    with refused(dc.InvalidInput, "must be in a written plan with unit='user'"):
        dc.Plan.from_config(written)
    del written["format"]
    assert dc.Plan.from_config(written) == usual  # as somebody writes it by hand


def test_forty_records_of_a_customer_are_not_one_unit():
    """They cannot be claimed as one, and their common cost is stated."""
    with refused(dc.InvalidInput, "got 'customer'"):
        dc.Learner(plan(unit="customer", first_batch=40))
    learner = dc.Learner(plan(first_batch=40))
    learner.observe(learner.decide(np.zeros((40, 10))).id, np.full(40, 0.5))
    learner.release()
    spent = learner.ledger.spent()
    assert (spent.unit, spent.epsilon) == ("decision", pytest.approx(1.0, abs=1e-4))
    assert learner.released.plan["unit"] == "decision"
    assert epsilon_in_one_batch(learner.ledger.entries[0].event, 1e-5, 40) > 100


def test_names_count_the_actions():
    rest = {"features": dc.UnitBall(2), "budget": PRIVATE}
    named = dc.Plan(actions=["none", "mail", "call"], **rest)
    assert (named.n_actions, named.actions) == (3, ("none", "mail", "call"))
    assert dc.Plan(n_actions=3, actions=("none", "mail", "call"), **rest) == named
    assert replace(named, horizon=7).actions == named.actions
    assert "actions" not in dc.Plan(n_actions=3, **rest).to_config()
    outcome = {"kind": "Rewards", "low": 0, "high": 1}
    with refused(dc.InvalidInput, "plan.outcome.kind must be one of Loss, Reward", "'Reward'"):
        dc.Plan.from_config(named.to_config() | {"outcome": outcome})


def test_a_budget_that_no_release_can_use_is_named():
    """The sampler's proof ends near ε = 39: a larger ε has the same noise, and says so."""
    sizes = {"n_actions": 3, "features": dc.UnitBall(5)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", dc.Advice)
        noise = [
            dc.Plan(**sizes, budget=dc.Budget(level, 1e-6)).mechanism.gram
            for level in (8.0, 20.0, 38.0)
        ]
    assert noise == sorted(noise, reverse=True)
    for level in (50.0, 1000.0):
        with pytest.warns(dc.Advice, match=r"noise of ε = 3\d.*large-epsilon"):
            plan = dc.Plan(**sizes, budget=dc.Budget(level, 1e-6))
        assert plan.mechanism.gram == pytest.approx(noise[-1], rel=0.05)


def sized(dimension, actions, **words):
    return small_plan(n_actions=actions, features=dc.UnitBall(dimension), **words)


CASES = {
    "default": {},
    "full feedback": {"feedback": "full"},
    "plain geometry": {"oracle": dc.PooledRidge(geometry="plain")},
    "radii": {"policy": dc.LinUCB(), "oracle": dc.PooledRidge()},
    "one batch": {"policy": dc.SquareCB(), "oracle": dc.Ridge()},
    "radii of one batch": {"policy": dc.LinUCB(), "oracle": dc.Ridge()},
}


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
@pytest.mark.parametrize(("dimension", "actions"), [(12, 4), (30, 3)])
def test_a_document_is_about_as_large_as_stated(dimension, actions, words):
    made = sized(dimension, actions, first_batch=4000, **words)  # beyond the noise
    learner = dc.Learner(made, noise=dc.SecureNoise(fast=True), window=None)
    rng = np.random.default_rng(0)
    for _ in range(2):  # the second release has a learned matrix
        size = made.schedule.length(len(learner.released.items) + 1)
        decided = learner.decide(rng.normal(size=(size, dimension)) / dimension**0.5)
        full = made.feedback == "full"
        learner.observe(decided.id, rng.random((size, actions) if full else size))
        learner.release()
    written = len(json.dumps(learner.released.latest.to_json()))
    assert 0.6 < (written - 500) / plan_size(made).document < 1.2  # 500: names and digests


def test_a_large_plan_is_called_large_everywhere(tmp_path, monkeypatch, capsys):
    large = sized(400, 20)
    size = plan_size(large)
    assert 25e6 < size.document < 45e6
    assert 15.0 < size.seconds < 60.0
    for words in ("document of about 35 MB", "35 s on one core", "MB of memory", "Catalogue"):
        assert words in " ".join(large.explain().split())
    assert main(["plan", "--actions", "20", "--dimension", "400", "--epsilon", "1"]) == 0
    assert "Warning: this plan is large: documents of about 35 MB" in capsys.readouterr().out
    (tmp_path / "large.toml").write_text(
        'experiment = "large"\nunit = "decision"\nwindow = "1h"\n[plan]\nn_actions = 20\n'
        'features = { kind = "UnitBall", dimension = 400 }\n'
        "budget = { epsilon = 1.0, delta = 1e-5 }\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--init", "--config", "large.toml"]) == 0
    assert "Warning: this plan is large" in capsys.readouterr().out


def test_an_ordinary_plan_states_its_size_without_a_warning(capsys):
    small = sized(10, 3)
    assert plan_size(small).warning is None
    assert "Size      A release is a document of about 9.1 kB" in small.explain()
    assert "Careful" not in small.explain()
    assert main(["plan", "--actions", "3", "--dimension", "10", "--epsilon", "1", "--json"]) == 0
    size = json.loads(capsys.readouterr().out)["size"]
    assert size["document_bytes"] == plan_size(small).document < LARGE
    assert size["warning"] is None
