"""Ids of users beside contexts: what is one person, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.batches.evaluation_data import split_user_column
from discreet.batches.users import user_ids
from store_state import state_of
from wording import refused

MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def plan(**changes):
    base = {"n_actions": 2, "features": dc.UnitBall(1), "budget": dc.Budget(1.0, 1e-5)}
    often = {"unit": "user", "batches_per_user": 2, "records_per_batch": 1}
    return dc.Plan(**base | often | changes)


def ids(given, rows=2):
    return user_ids("user", given, rows, needed=True, single=False)


@pytest.mark.parametrize(
    "given",
    [
        ["7", "8"],
        [7, "8"],
        ("7", 8),
        np.array([7, 8]),
        np.array([7, 8], np.uint8),
        np.array(["7", "8"]),
        np.array([7, "8"], dtype=object),
        [np.int64(7), np.str_("8")],
    ],
)
def test_a_number_and_its_text_are_one_person(given):
    assert ids(given) == ["7", "8"]
    assert all(type(each) is str for each in ids(given))


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_series_and_columns_of_every_library(maker):
    frame = maker({"x": [0.1, 0.2], "who": ["anna", "bob"]})
    rows, given = split_user_column(dc.UnitBall(1), frame, "who")
    assert ids(given) == ["anna", "bob"]
    assert dc.UnitBall(1).map(rows).shape == (2, 2)  # the column is no context
    assert ids(split_user_column(dc.UnitBall(1), [[0.1], [0.2]], frame["who"])[1]) == [
        "anna",
        "bob",
    ]


@pytest.mark.parametrize("wrong", [None, "", 1.0, float("nan"), True, b"anna", ["anna"], np.nan])
def test_what_is_no_id_is_refused_by_row_and_kind(wrong):
    with refused(dc.InvalidInput, "row 1: user must be the id of one person"):
        ids(["anna", wrong])
    if wrong is not None:
        with refused(dc.InvalidInput, "user must be the id of one person"):
            user_ids("user", wrong, 1, needed=True, single=True)


@pytest.mark.parametrize("wrong", [["anna"], ["a", "b", "c"], "ab", 7, {"a", "b"}, np.array(7)])
def test_there_is_one_id_for_each_context(wrong):
    with refused(dc.InvalidInput, "user must be a list or array with one id for each of 2"):
        ids(wrong)


LEARNERS = {
    "no user": (plan(), {}, "user must be given with the unit 'user'"),
    "no id": (plan(), {"user": ""}, "user must be the id of one person"),
    "several": (plan(), {"user": ["anna"]}, "user must be the id of one person"),
    "not needed": (
        plan(unit="decision", batches_per_user=None, records_per_batch=None),
        {"user": "anna"},
        "user must be left out with the unit 'decision'",
    ),
}


@pytest.mark.parametrize(("chosen", "given", "words"), LEARNERS.values(), ids=LEARNERS)
def test_a_refusal_stores_and_spends_nothing(chosen, given, words):
    learner = dc.Learner(chosen)
    before = state_of(learner._store)
    with refused(dc.InvalidInput, words):
        learner.decide(np.zeros(1), **given)
    assert state_of(learner._store) == before


def test_a_column_is_the_user_or_a_feature():
    schema = dc.Schema([dc.Number("x", 0, 1), dc.Category("who", ["anna", "bob"])])
    learner = dc.Learner(plan(features=schema))
    frame = pd.DataFrame({"x": [0.1, 0.2], "who": ["anna", "bob"]})
    with refused(dc.InvalidInput, "column 'who' must be the user, or a feature"):
        learner.decide(frame, user="who")
    with refused(dc.InvalidInput, "'wo' must be a column", "'who'"):
        learner.decide(frame, user="wo")
    with refused(dc.InvalidInput, "row 1: user must be known"):
        learner.decide(frame, user=pd.Series(["anna", None]))
