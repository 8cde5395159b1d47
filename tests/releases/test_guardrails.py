"""Guardrails: declared, reported with the loss, released per part, and compared as a lift is."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from batches.clocked_learners import altered
from discreet.audit.neighbouring_runs import SameDraws
from discreet.audit.noise_sources import Shared
from discreet.audit.published_documents import public_part
from discreet.batches.saved_state import private_rows
from discreet.cli.main import main
from discreet.client.recomputation import recompute
from discreet.design.outcome import declared_guardrails
from discreet.releases.release import DecidingRelease, Predictor, Release
from discreet.releases.statistics import PartLosses
from wording import refused

COMPLAINTS = dc.Guardrail("complaints", limit=0.05)
LATENCY = dc.Guardrail("latency", 0, 10, worse="lower")
BASE = {"n_actions": 2, "features": dc.UnitBall(1), "control": dc.Control(0.25, 0)}
NAN = math.nan


def plan(*rails, **changes):
    rails = {"guardrails": rails or (COMPLAINTS, LATENCY)}
    return dc.Plan(**BASE | {"budget": dc.Budget.none(), "first_batch": 8} | rails | changes)


def reported(learner):
    """Guardrails of the batches under way, as losses."""
    return private_rows(learner._store)["guardrails"]


def decided(n, **changes):
    """A learner, and the ids of n decisions."""
    learner = dc.Learner(plan(**changes), window=0)
    return learner, learner.decide(np.zeros((n, 1))).id


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"name": "2nd"}, "name of a guardrail must be a letter"),
        ({"name": "a" * 41}, "up to 39 letters"),
        ({"name": None}, "got None"),
        ({"name": "late", "low": 1, "high": 1}, "range of late must be two finite numbers"),
        ({"name": "late", "worse": "up"}, "worse of late must be one of 'higher', 'lower'"),
        ({"name": "late", "limit": -1}, "limit of late must be a number in [0, 1)"),
        ({"name": "late", "limit": NAN}, "limit of late"),
    ],
)
def test_a_wrong_declaration_is_refused(given, rule):
    with refused(dc.InvalidInput, rule):
        dc.Guardrail(**given)


def test_a_plan_has_one_to_three_guardrails_of_different_names():
    four = [dc.Guardrail(name) for name in "abcd"]
    for wrong in (four, [], [COMPLAINTS, COMPLAINTS], "complaints", ["complaints"]):
        with refused(dc.InvalidInput, "one to 3 Guardrail objects of different names"):
            plan(guardrails=wrong)
    assert plan(guardrails=four[:3]).guardrails == tuple(four[:3])
    both = "must come with both guardrails and a control share"
    for changes, rule in (
        ({"control": None}, both),
        ({"guardrails": None, "guardrails_share": 0.1}, both),
        ({"guardrails_share": 0.0}, "guardrails_share must be a positive finite number"),
        ({"guardrails_share": 0.9}, "must be below 1 together"),
    ):
        with refused(dc.InvalidInput, rule):
            plan(**changes)


def test_a_written_plan_comes_back_and_one_without_guardrails_names_none():
    made = plan(guardrails_share=0.2, budget=dc.Budget(1.0, 1e-6))
    config = json.loads(json.dumps(made.to_config()))
    assert dc.Plan.from_config(config) == made
    assert declared_guardrails(config) == made.guardrails
    for table in config["guardrails"]:
        del table["kind"], table["limit"]
    assert dc.Plan.from_config(config).guardrails == (dc.Guardrail("complaints"), LATENCY)
    without = replace(made, guardrails=None, guardrails_share=None).to_config()
    assert not [name for name in without if "guardrail" in name]
    assert "complaints in [0, 1]" in made.explain()
    with refused(dc.InvalidInput, "plan.guardrails[0] must have only known keys; got 'highest'"):
        dc.Plan.from_config({**config, "guardrails": [{"name": "late", "highest": 3}]})
    with refused(dc.InvalidInput, "plan.guardrails must be a table; got 'complaints'"):
        dc.Plan.from_config({**config, "guardrails": "complaints"})
    with refused(dc.CorruptRelease, "guardrails of a plan must have names"):
        declared_guardrails({"guardrails": [{"name": "late"}]})


def test_guardrails_come_with_the_loss_in_every_form():
    learner, ids = decided(14, first_batch=64)
    learner.observe(int(ids[0]), 0.5, guardrails={"complaints": 1, "latency": 2.5})
    learner.observe(int(ids[1]), 0.5, guardrails={"latency": None})
    learner.observe(int(ids[2]), 0.5)
    learner.observe(ids[3:5], [0.1, 0.2], guardrails={"complaints": [None, 0.25]})
    learner.observe(
        pd.Series(ids[5:7], index=[3, 4]),
        pd.Series([0.1, 0.2], index=[3, 4]),
        guardrails={"latency": pd.Series([10.0, NAN], index=[4, 3])},
    )
    for start, make in ((7, pd.DataFrame), (9, pl.DataFrame), (11, pa.table)):
        columns = {"id": ids[start : start + 2], "loss": [0.0, 1.0], "complaints": [None, 0.75]}
        learner.observe(make(columns))
    expected = [[1, 0.75], [NAN, NAN], [NAN, NAN], [NAN, NAN], [0.25, NAN], [NAN, NAN], [NAN, 0]]
    expected += [[NAN, NAN], [0.75, NAN]] * 3 + [[NAN, NAN]]
    assert np.array_equal(reported(learner), expected, equal_nan=True)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"complaint": 1}, "declared in the plan as complaints, latency"),
        ({"complaints": 1.5}, "complaints must be a number in [0, 1]; got a number outside"),
        ({"latency": "fast"}, "latency must be a number"),
        ({"complaints": [1]}, "complaints must be a number in [0, 1]; got a list"),
        ([1, 2], "guardrails must be values by name"),
    ],
)
def test_wrong_reports_store_nothing(given, rule):
    learner, (one,) = decided(1)
    with refused(dc.InvalidInput, rule) as caught:
        learner.observe(int(one), 0.5, guardrails=given)
    assert "1.5" not in str(caught.value)
    assert "fast" not in str(caught.value)
    learner.observe(int(one), 0.25)  # nothing was stored
    assert np.isnan(reported(learner)).all()


def test_wrong_rows_are_named_and_store_nothing():
    learner, ids = decided(3)
    with refused(dc.InvalidInput, "row 2: latency must be a number in [0, 10]"):
        learner.observe(ids, [0, 0, 0], guardrails={"latency": [1, None, 11]})
    with refused(dc.InvalidInput, "complaints must be one value per id, 3 of them"):
        learner.observe(ids, [0, 0, 0], guardrails={"complaints": [1, 0]})
    learner.observe(ids, [1, 1, 1])
    unguarded, ids = decided(1, guardrails=None)
    with refused(dc.InvalidInput, "declared in the plan as none"):
        unguarded.observe(ids, [0.5], guardrails={"complaints": [1]})


def test_the_first_report_stays_with_its_guardrails():
    learner, (one,) = decided(1)
    first = {"complaints": 1, "latency": None}
    learner.observe(int(one), 0.5, guardrails=first)
    learner.observe(int(one), 0.5, guardrails=first)
    for other in ({"complaints": 0}, {}, {"complaints": 1, "latency": 3}):
        with refused(dc.LossConflict, "guardrails must equal the one already stored"):
            learner.observe(int(one), 0.5, guardrails=other)
    assert np.array_equal(reported(learner)[0], [1.0, NAN], equal_nan=True)


def test_a_saved_learner_has_guardrails_and_their_absence(tmp_path):
    learner, ids = decided(8)
    learner.observe(ids[:3], [0, 1, 0], guardrails={"complaints": [1, None, 0]})
    before = reported(learner)
    learner.save(tmp_path / "state")
    learner = dc.Learner.load(tmp_path / "state")
    assert np.array_equal(reported(learner), before, equal_nan=True)
    learner.close()
    sums = learner.release().guardrails.sums
    assert sums[0, :, 1].sum() == 2.0
    assert sums[1].tolist() == [[0, 0], [0, 0]]
    assert "guardrails" not in private_rows(decided(1, guardrails=None)[0]._store)


@pytest.mark.parametrize("wrong", [[[2.0, 0.0]], [[0.5]], None])
def test_a_saved_file_with_impossible_guardrails_is_refused(tmp_path, wrong):
    learner, ids = decided(1)
    learner.observe(ids, [0.5], guardrails={"complaints": [1]})
    learner.save(tmp_path / "state")

    def change(_, rows):
        rows.pop("guardrails")
        rows |= {} if wrong is None else {"guardrails": np.array(wrong)}

    altered(tmp_path / "state", change)
    with pytest.raises(dc.CorruptRelease):
        dc.Learner.load(tmp_path / "state")


def test_records_of_a_person_beyond_their_bound_count_nowhere():
    users = {"unit": "user", "batches_per_user": 1, "records_per_batch": 1}
    learner = dc.Learner(plan(**users, missing_loss=0.5), window=0)
    for person in ["a"] * 5 + ["b", "c", "d"]:
        learner.observe(learner.decide([0.1], user=person).id, 1.0, guardrails={"complaints": 1})
    learner.decide([0.1], user="e")
    released = learner.released.latest
    assert released.guardrails.sums[0, :, 1].sum() == 4.0
    assert released.part_losses.sums[:, 1].sum() == 4.0


def test_guardrails_leave_with_their_release():
    learner, ids = decided(8)
    learner.observe(ids, np.ones(8), guardrails={"complaints": np.ones(8)})
    (rows,) = (each.guardrails for each in learner._store.batches if each.taken)
    learner.decide([0.1])
    assert not rows.any()


def test_a_log_has_no_guardrails():
    learner = dc.Learner(plan(imported=40, first_batch=16))
    learner.import_log(np.zeros((40, 1)), np.arange(40) % 2, np.zeros(40))
    assert len(learner.released.items) == learner.plan.schedule.imported_batches
    assert not any(item.guardrails.sums.any() for item in learner.released.items)
    with refused(dc.InvalidInput, "nothing was released yet"):
        dc.guardrails(learner.released)


def test_evaluate_plays_a_plan_with_guardrails():
    rng = np.random.default_rng(0)
    private = plan(budget=dc.Budget(8.0, 1e-5))
    found = dc.evaluate(private, rng.normal(size=(200, 1)), rng.integers(2, size=200))
    assert found.lift is not None
    assert all(item.guardrails is not None for item in found.played.items)


def test_guardrails_change_their_own_noisy_sums_and_nothing_else():
    """Worlds that share their noise and differ in guardrails, some of which nobody reports."""
    made = plan(budget=dc.Budget(2.0, 1e-6), releases="on_request")
    documents = []
    for rails in ({}, {"complaints": [1] * 8, "latency": [None, 3] * 4}, {"latency": [9] * 8}):
        learner = dc.Learner(made, noise=Shared(), draws=SameDraws())
        ids = learner.decide(np.linspace(-1, 1, 8)[:, None]).id
        learner.observe(ids, np.arange(8) / 8, guardrails=rails)
        learner.close()
        document = learner.release().to_json()
        documents.append((document.pop("guardrails"), document, learner.ledger.to_json()))
    sums, others, ledgers = zip(*documents, strict=True)
    assert others[0] == others[1] == others[2]
    assert ledgers[0] == ledgers[1] == ledgers[2]
    assert public_part(sums[0]) == public_part(sums[1]) == public_part(sums[2])
    assert len({json.dumps(each) for each in sums}) == 3


def of_means(policy, control):
    """Sums of 800 and 200 losses with these means."""
    return [[800 * (policy - 0.5), 800.0], [200 * (control - 0.5), 200.0]]


def released(guardrail, losses, rails, sigma=0.0, count=4):
    """Releases of 1,000 records each with these loss sums, and sums of one guardrail."""
    one = Release(
        1,
        1000,
        Predictor(np.zeros((2, 2)), "identity"),
        part_losses=PartLosses(np.array(losses), sigma**2),
        guardrails=PartLosses(np.array([rails]), sigma**2),
    )
    items = tuple(replace(one, number=number + 1) for number in range(count))
    return replace(plan(guardrail).nothing_released(), items=items)


def test_a_guardrail_is_compared_as_a_lift_of_the_same_numbers():
    rails, losses = of_means(0.3, 0.2), of_means(0.4, 0.4)
    (found,) = dc.guardrails(released(COMPLAINTS, losses, rails))
    same = dc.lift(released(COMPLAINTS, rails, losses))
    assert repr(found.lift) == repr(same)
    assert [*found.lift.so_far] == [*same.so_far]


@pytest.mark.parametrize(
    ("guardrail", "policy", "control", "alert"),
    [
        (dc.Guardrail("late"), 0.4, 0.2, True),
        (dc.Guardrail("late"), 0.2, 0.4, False),
        (dc.Guardrail("late"), 0.21, 0.2, False),
        (dc.Guardrail("late", limit=0.19), 0.4, 0.2, False),  # worse, and perhaps by less
        (dc.Guardrail("late", 0, 50, limit=2), 20, 10, True),
        (dc.Guardrail("seen", 0, 50, "lower", 2), 20, 10, False),
        (dc.Guardrail("seen", 0, 50, "lower", 2), 10, 20, True),
        (dc.Guardrail("seen", 0, 50, "lower", 9), 10, 20, False),
    ],
)
def test_an_alert_needs_the_whole_interval(guardrail, policy, control, alert):
    rails = of_means(guardrail.loss_of(policy), guardrail.loss_of(control))
    (found,) = dc.guardrails(released(guardrail, of_means(0.4, 0.4), rails))
    assert (found.known, found.alert) == (True, alert)
    document = json.loads(json.dumps(found.to_json()))
    assert (document["alert"], document["name"]) == (alert, guardrail.name)
    last = document["batches"][-1]
    assert last["policy_so_far"] == pytest.approx(policy)
    assert last["lift_so_far"] == pytest.approx(policy - control)
    beyond = abs(policy - control) - last["half_width_any_time"]
    worse = (policy > control) == (guardrail.worse == "higher")
    assert alert is (worse and beyond > guardrail.limit)
    assert (f"; {'alert: worse than the control' if alert else 'no alert'}") in found.text


def test_what_nobody_reported_is_not_known_and_sets_off_nothing():
    rails = [[7.0, 2.0], [-9.0, -3.0]]
    (found,) = dc.guardrails(released(COMPLAINTS, of_means(0.4, 0.4), rails, sigma=20.0, count=1))
    assert (found.known, found.alert, found.difference) == (False, False, "–")
    assert found.means == ("–", "–")
    assert found.text.startswith("complaints: not known yet")
    assert found.to_json()["batches"][0]["lift_so_far"] is None


@pytest.fixture
def published():
    """Releases of a private plan with two guardrails."""
    geometry = dc.PooledRidge(geometry="plain")
    learner, ids = decided(8, budget=dc.Budget(4.0, 1e-5), oracle=geometry)
    learner.observe(ids, np.zeros(8), guardrails={"complaints": np.ones(8)})
    learner.decide([0.1])
    return learner.released


def test_published_guardrails_are_read_verified_and_printed(published, tmp_path, capsys):
    path = tmp_path / "released.json"
    published.save(path)
    loaded = dc.Released.load(path)
    assert loaded.latest.digest == published.latest.digest
    assert np.array_equal(loaded.latest.guardrails.sums, published.latest.guardrails.sums)
    assert DecidingRelease.of(loaded.latest).guardrails is loaded.latest.guardrails
    for command in (["release", "verify"], ["ledger", "verify"]):
        assert main([*command, str(path)]) == 0
    capsys.readouterr()
    assert main(["lift", str(path)]) == 0
    printed = capsys.readouterr().out
    assert all(each.text in printed for each in dc.guardrails(loaded))
    assert main(["lift", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in document["guardrails"]] == ["complaints", "latency"]


def test_other_guardrails_than_the_plan_demands_are_refused(published):
    (item,) = published.items
    rails = item.guardrails
    for other in (
        None,
        replace(rails, variance=rails.variance / 1.01),
        replace(rails, sums=rails.sums * NAN),
        replace(rails, sums=rails.sums[:1]),
    ):
        wrong = replace(published, items=(replace(item, guardrails=other),))
        with refused(dc.CorruptRelease, "guardrails of release 1", "ask its publisher"):
            recompute(wrong)
        if other is None or len(other.sums) == 1:
            with refused(dc.CorruptRelease, "must tell the guardrails of their plan"):
                dc.guardrails(wrong)
    document = item.to_json()
    document["guardrails"]["sums"]["shape"] = [4, 2]
    with refused(dc.CorruptRelease, "release must be a document"):
        Release.from_json(document)
    assert dc.guardrails(plan(guardrails=None).nothing_released()) == ()
