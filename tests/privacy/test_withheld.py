"""Errors of the private path: no value that a person brought or reported is ever in one."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.adapters.played_rows import PlayedRows
from discreet.cli.main import main
from discreet.errors import DiscreetError, kind_of

SCHEMA = dc.Schema(
    [
        dc.Number("age", 0, 100),
        dc.Number("income", 1, 1e6, log=True),
        dc.Flag("member"),
        dc.Category("device", ["phone", "desk"]),
        dc.Category("floor", [1, 2, 3]),
        dc.Hashed("town", 8),
        dc.Date("born", parts=["month"]),
        dc.Date("at", parts=["hour"]),
    ]
)
GOOD = {
    "age": 30,
    "income": 100.0,
    "member": True,
    "device": "phone",
    "floor": 1,
    "town": "Bern",
    "born": "1990-01-02",
    "at": "2026-03-29T14:05",
}
NUMBER, WORD, WHOLE = 731.4375, "Zaphodine", 86_753_091
"""What must be in no message, in whole or in part."""
MARKS = ("731.4", "Zaphod", "86753", "86_753", "86,753")
NEAR = "phon3"
BUDGET = dc.Budget(1.0, 1e-5)


def learner(**words):
    base = {"actions": ["none", "mail"], "features": SCHEMA, "budget": BUDGET, "first_batch": 2}
    return dc.Learner(dc.Plan(**base | words))


def reported_by(error):
    """Everything that a reporter keeps of an error, its causes included."""
    parts = []
    while error is not None:
        parts += [str(error), repr(error), repr(error.args)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return " ".join(parts)


def refused(call, *arguments, **words):
    with pytest.raises(DiscreetError) as found:
        call(*arguments, **words)
    message = reported_by(found.value)
    assert not [mark for mark in (*MARKS, NEAR) if mark in message], message
    assert "Did you mean" not in message
    return str(found.value)


BAD = {
    "age": [NUMBER, WORD, float("inf"), True, WHOLE, [NUMBER]],
    "income": [-NUMBER, 0, WORD],
    "member": [WORD, NUMBER, WHOLE],
    "device": [WORD, NEAR, WHOLE, NUMBER],
    "floor": [WHOLE, WORD, NUMBER],
    "town": [NUMBER, 10**30 + WHOLE, [WORD]],
    "born": [WORD, NUMBER, "1990-13-41", np.datetime64("1990-01", "M")],
    "at": ["1990-01-02", WORD, datetime.date(1990, 1, 2), np.datetime64("1990-01-02", "D")],
}
CASES = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES, ids=str)
def test_no_value_of_a_context_is_quoted(name, value):
    one, context = learner(), {**GOOD, name: value}
    message = refused(one.decide, context)
    assert message.startswith(f"feature {name!r} must be")
    assert "; got " in message
    for text in ("1990", "2026"):
        assert text not in message.partition("; got ")[2]
    assert refused(one.decide, [GOOD, context]).startswith("row 1: ")
    if np.ndim(value) == 0:
        frame = pd.DataFrame({key: [GOOD[key], context[key]] for key in GOOD}, dtype=object)
        assert refused(one.decide, frame).startswith("row 1: ")


def test_keys_that_the_schema_does_not_have_are_counted_and_not_named():
    message = refused(learner().decide, {**GOOD, WORD: 1, "agee": NUMBER})
    assert "got 2 of another name" in message
    assert "agee" not in message
    renamed = {key if key != "age" else WORD: value for key, value in GOOD.items()}
    assert "Missing here: 'age'" in refused(learner().decide, renamed)


def test_no_number_of_an_array_is_quoted():
    one = learner(features=dc.UnitBall(2))
    for context in ([NUMBER, np.inf], [NUMBER] * 3, [WORD, WORD], [[NUMBER, np.nan]]):
        refused(one.decide, context)
    refused(one.decide, pd.DataFrame({"x": [NUMBER], "y": [np.inf]}))
    refused(one.decide, pd.DataFrame({"x": [NUMBER], "y": [WORD]}))


@pytest.mark.parametrize("outcome", [dc.Loss(), dc.Reward(0, 50), dc.Reward(0, 50, clip=True)])
def test_no_loss_and_no_reward_is_quoted(outcome):
    one = learner(outcome=outcome)
    made = one.decide([GOOD] * 3)
    for value in (NUMBER, -NUMBER, WORD, float("inf"), float("nan"), [NUMBER]):
        if outcome.clip and isinstance(value, float) and np.isfinite(value):
            continue
        message = refused(one.observe, int(made.id[0]), **{outcome.word: value})
        assert message.startswith(f"{outcome.word} must be")
        refused(one.observe, made.id, **{outcome.word: [0.0, 0.0, value]})
        if not isinstance(value, list):
            series = pd.Series([0.0, 0.0, value], dtype=object)
            refused(one.observe, pd.Series(made.id), **{outcome.word: series})
    one.observe(int(made.id[0]), **{outcome.word: 0.25})
    refused(one.observe, int(made.id[0]), **{outcome.word: 0.7314375})


def test_no_id_is_quoted():
    one = learner()
    refused(one.observe, WHOLE, 0.5)
    refused(one.observe, [WHOLE], [0.5])
    refused(one.observe, pd.DataFrame({"id": [NUMBER], "loss": [0.5]}))
    refused(one.observe, pd.DataFrame({"id": [WORD], "loss": [0.5]}))
    people = learner(unit="user")
    for user in (NUMBER, [WORD], None, b"Zaphodine"):
        refused(people.decide, GOOD, user=user)
    refused(people.decide, [GOOD, GOOD], user=[WORD, NUMBER])
    refused(people.erase, [WORD])


def test_nothing_of_an_offer_is_quoted():
    items = {"i1": [0.1], "i2": [0.2]}
    catalogue = dc.Catalogue(dc.UnitBall(1), items)
    joint = dc.Learner(dc.Plan(actions=catalogue, features=dc.UnitBall(1), budget=BUDGET))
    rich = dc.Catalogue(dc.Schema([dc.Number("year", 0, 9)]), [{"id": "M", "year": 1}])
    films = dc.Learner(dc.Plan(actions=rich, features=dc.UnitBall(1), budget=BUDGET))
    alone = (WORD, [WORD], [WHOLE], [["x", WORD]], [{"id": WORD}])
    brought = {WORD: [WORD]}, {WORD: [1, 2]}, {f" {WORD}": [0.1]}, {WHOLE: [0.1]}, {"i1": [NUMBER]}
    for offer in (*alone, *brought):
        refused(joint.decide, [0.5], actions=offer)
    years = {"year": NUMBER}, {"yeer": WHOLE}, {}
    for item in (*({"id": WORD, **year} for year in years), {"id": "M", "year": NUMBER}):
        refused(films.decide, [0.5], actions=[item])
    refused(learner().decide, GOOD, actions=[WORD])
    refused(learner().decide, GOOD, actions=["mial"])
    refused(learner().decide, [GOOD, GOOD], actions=[["mail"], [WORD]])


@pytest.mark.parametrize(
    ("column", "value"),
    [("age", NUMBER), ("device", WORD), ("device", NEAR), ("action", WORD), ("action", "mial"),
     ("loss", NUMBER), ("loss", WORD), ("user", NUMBER)],
)  # fmt: skip
def test_nothing_of_a_log_is_quoted(column, value):
    rows = [{**GOOD, "action": "mail", "loss": 0.5, "user": "a"} for _ in range(3)]
    rows[2][column] = value
    frame = pd.DataFrame(rows, dtype=object)
    if value != WORD or column != "loss":
        frame["loss"] = frame["loss"].astype(float)
    people = {"unit": "user"} if column == "user" else {}
    one = learner(imported=3, **people)
    words = {"user": "user"} if people else {}
    given = frame if people else frame.drop(columns="user")
    message = refused(one.import_log, given, "action", "loss", **words)
    assert "row 2" in message or column == "loss"


@pytest.mark.parametrize(
    ("cell", "value"), [("x", WORD), ("shown", WORD), ("shown", "mial"), ("lost", str(NUMBER))]
)
def test_nothing_of_a_file_is_quoted(tmp_path, monkeypatch, capsys, cell, value):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(
        'actions = ["none", "mail"]\nfeatures = { kind = "UnitBall", dimension = 1 }\n'
        "budget = { epsilon = 8.0, delta = 1e-5 }\n"
    )
    rows = [{"x": "0.5", "shown": "mail", "lost": "0"} for _ in range(20)]
    rows[7][cell] = value
    lines = ["x,shown,lost", *(",".join(row.values()) for row in rows)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    words = ("--log", "log.csv", "--action", "shown", "--loss", "lost", "--out", "warm")
    assert main(["import", "plan.toml", *words]) != 0
    message = "".join(capsys.readouterr())
    assert value not in message
    assert not [mark for mark in MARKS if mark in message]


def test_adapters_quote_nothing_either():
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=BUDGET)
    played = PlayedRows(plan)
    made = played.decide([0.5])
    refused(played.observe, made.id, NUMBER)


def test_kinds_say_nothing_of_a_value():
    for value in (NUMBER, WORD, WHOLE, np.float32(NUMBER), {"a": WORD}, [WORD], 10**400):
        assert not [mark for mark in MARKS if mark in kind_of(value)]
    for some in (("a", WORD), (1, WHOLE, 0.5, NUMBER), ([], [WORD, WORD]), (True, False)):
        assert len({kind_of(value) for value in some}) == 1  # nor of its size
    assert json.dumps([kind_of(np.int64(3)), kind_of(np.bool_(1))]) == json.dumps(
        ["a number", "a truth value"]
    )
