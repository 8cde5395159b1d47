"""Users: ids, slots that count compared with a rule slot by slot, and the registry of hashes."""

import hmac

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.batches.observations import split_user_column
from discreet.batches.users import PeopleRegistry, keyed_hash, user_ids
from discreet.privacy.budget import Participation
from small_plans import small_plan
from store_state import state_of
from wording import refused

CALLS = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 3), max_size=6)), max_size=12)
OFTEN = st.builds(Participation, st.integers(1, 3), st.integers(1, 3))
"""Calls: whether the next batch begins, and who takes a slot."""


class Model:
    """Slot by slot."""

    def __init__(self, often):
        self.often, self.slots, self.gone = often, {}, set()

    def hand_out(self, person, batch):
        mine = self.slots.setdefault(person, {})
        if person in self.gone or (batch not in mine and len(mine) == self.often.batches):
            return False
        mine[batch] = mine.get(batch, 0) + 1
        return mine[batch] <= self.often.records


@given(OFTEN, CALLS, st.integers(0, 3))
def test_the_rule_slot_by_slot(often, calls, erased):
    """At most k slots in each of at most M batches, however calls are cut; no more once erased."""
    registry, model, batch = PeopleRegistry(often), Model(often), 1
    for place, (begins, people) in enumerate(calls):
        batch += begins
        if place == 5:
            registry.use_up(str(erased))
            model.gone.add(erased)
        counted = registry.hand_out([str(each) for each in people], batch).tolist()
        assert counted == [model.hand_out(person, batch) for person in people]


def test_a_registry_knows_hashes_and_no_ids():
    registry = PeopleRegistry(Participation(1, 1))
    registry.hand_out(["anna-the-first", "bob"], 1)
    arrays = registry.arrays()
    assert arrays["people_hashes"].shape == (2, 32)
    held = b"".join(value.tobytes() for value in arrays.values())
    assert b"anna" not in held
    assert repr(registry) == "PeopleRegistry(private)"
    other = PeopleRegistry(Participation(1, 1))  # another key: the same id has another hash
    other.hand_out(["anna-the-first", "bob"], 1)
    assert not (other.arrays()["people_hashes"] == arrays["people_hashes"]).all(1).any()


@pytest.mark.parametrize("user", ["a", "anna", "Zoë", "李", "\ud800", "x" * 200])
def test_ids_are_hashed_as_the_standard_says(user):
    key = bytes(range(32))
    encoded = user.encode("utf-8", "surrogatepass")
    assert keyed_hash(key)(user) == hmac.digest(key, encoded, "sha256")


@given(OFTEN, CALLS, CALLS)
def test_a_registry_goes_on_from_its_arrays(often, before, after):
    registry, batch = PeopleRegistry(often), 1
    for begins, people in before:
        batch += begins
        registry.hand_out([str(each) for each in people], batch)
    registry.use_up("2")
    again = PeopleRegistry.of_arrays(often, registry.arrays(), batch)
    for begins, people in after:
        batch += begins
        users = [str(each) for each in people]
        assert (again.hand_out(users, batch) == registry.hand_out(users, batch)).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("people_key", np.zeros(16, np.uint8)),
        ("people_hashes", np.zeros((2, 32), np.uint8)),  # one person twice
        ("people_hashes", np.zeros((1, 32), np.uint8)),
        ("people_counts", np.array([[3, 1, 1], [1, 1, 1]])),  # more batches than M
        ("people_counts", np.array([[1, 2, 1], [1, 1, 1]])),  # a batch that is not there
        ("people_counts", np.array([[1, 1, 3], [1, 1, 1]])),  # more records than k
        ("people_counts", np.array([[0, 0, 0], [1, 1, 1]])),  # nobody is known without a slot
        ("people_counts", np.array([[1, 1, 0], [1, 1, 1]])),
        ("people_counts", np.array([[1.0, 1.0, 1.0]] * 2)),
    ],
)
def test_an_impossible_registry_is_refused(name, value):
    often = Participation(2, 2)
    registry = PeopleRegistry(often)
    registry.hand_out(["anna", "bob"], 1)
    PeopleRegistry.of_arrays(often, registry.arrays(), 1)
    with pytest.raises(ValueError, match=r"^$"):
        PeopleRegistry.of_arrays(often, registry.arrays() | {name: value}, 1)


MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def plan(**changes):
    often = {"unit": "user", "batches_per_user": 2, "records_per_batch": 1}
    return small_plan(**{"features": dc.UnitBall(1)} | often | changes)


def ids(given, rows=2):
    return user_ids("user", given, rows, needed=True, single=False)


@pytest.mark.parametrize(
    "given",
    [("7", 8), np.array([7, 8], np.uint8), np.array(["7", "8"]), [np.int64(7), np.str_("8")]],
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
    series = split_user_column(dc.UnitBall(1), [[0.1], [0.2]], frame["who"])[1]
    assert ids(series) == ["anna", "bob"]


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


DECISION = {"unit": "decision", "batches_per_user": None, "records_per_batch": None}


@pytest.mark.parametrize(
    ("often", "given", "rule"),
    [
        ({}, None, "user must be given with the unit 'user'"),
        ({}, ["anna"], "user must be the id of one person"),
        (DECISION, "anna", "user must be left out with the unit 'decision'"),
    ],
)
def test_a_refusal_stores_and_spends_nothing(often, given, rule):
    learner = dc.Learner(plan(**often))
    before = state_of(learner._store)
    with refused(dc.InvalidInput, rule):
        learner.decide(np.zeros(1), user=given)
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
