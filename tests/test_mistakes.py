"""Mistakes that newcomers make: what they type, what they are told, and that the advice works.

The message begins as mistakes.py says, has the form of wording.py, and changes nothing. What a
reader of the message types next must work.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dc
from discreet.cli.main import main
from mistakes import COMMANDS, FILES, PYTHON
from store_state import state_of
from wording import FORM, refused

SCHEMA = dc.Schema(
    [
        dc.Number("age", 0, 100),
        dc.Category("device", ["phone", "desk"]),
        dc.Date("seen", parts=["month"]),
    ]
)
PERSON = {"age": 40, "device": "phone", "seen": "2026-03-29"}


def plan(**parts):
    basis = {"n_actions": 3, "features": dc.UnitBall(2), "budget": dc.Budget(2.0, delta=1e-5)}
    return dc.Plan(**basis | parts)


# One object for all tests: a plan is calibrated once.
PLANNED = {
    "learner": plan(),
    "shop": plan(outcome=dc.Reward(0, 50)),
    "full": plan(feedback="full"),
    "early": plan(first_batch=1),
    "people": plan(features=SCHEMA),
}


class Desk:
    """What a newcomer has before them: learners with three decisions each, and a labelled set."""

    def __init__(self, folder):
        # The first batch of `early` is over: it waits for no more decisions.
        self.learners = {
            name: dc.Learner(each, window=0 if name == "early" else 1_000)
            for name, each in PLANNED.items()
        }
        for name, each in self.learners.items():
            for _ in range(3):
                each.decide(PERSON if name == "people" else [0.5, -0.5])
        self.learners["learner"].observe(1, 0.25)
        x = np.random.default_rng(0).normal(size=(12, 2))
        people = pd.DataFrame([PERSON, PERSON])
        path = str(folder / "state")
        made = {"plan": plan, "person": PERSON, "frame": people, "x": x, "y": np.arange(12) % 3}
        libraries = {"np": np, "pd": pd, "pl": pl}
        self.names = {**vars(dc), **libraries, **made, **self.learners, "path": path}

    def types(self, text):
        return eval(text, dict(self.names))

    def state(self):
        return [
            (str(each.status()), each.ledger, state_of(each._store))
            for each in self.learners.values()
        ]


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def cases(text):
    """What was typed, how the message begins, and what is typed then, or None."""
    rows = [(*block.splitlines(), None)[:3] for block in text.split("\n\n")]
    assert len({row[0] for row in rows}) == len(rows) > 10
    return [pytest.param(*row, id=row[0]) for row in rows]


@pytest.mark.parametrize(("typed", "begins", "then"), cases(PYTHON))
def test_a_mistake_in_python(desk, typed, begins, then):
    before = desk.state()
    with refused(dc.DiscreetError) as caught:
        desk.types(typed)
    assert str(caught.value).startswith(begins), caught.value
    assert desk.state() == before
    if then is not None:
        desk.types(then)


@pytest.mark.parametrize(("typed", "begins", "then"), cases(COMMANDS))
def test_a_mistake_on_the_command_line(typed, begins, then, tmp_path, monkeypatch, capsys):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(typed.split()) == 2
    told = capsys.readouterr()
    message = told.err.removeprefix("error: ").rstrip("\n")
    assert told.out == ""
    assert FORM.fullmatch(message), message
    assert message.startswith(begins), message
    assert {each.name for each in tmp_path.iterdir()} == FILES.keys()
    if then is not None:
        assert main(then.split()) == 0, capsys.readouterr().err
