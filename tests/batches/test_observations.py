"""Series and frames in reports and in evaluations: one order, the wrong row named."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.batches.observations import aligned
from wording import refused

ROWS = 5
CONTEXTS = np.random.default_rng(0).uniform(-0.5, 0.5, size=(ROWS, 2))
LIBRARIES = {
    "pandas": lambda **columns: pd.DataFrame(columns, index=list("vwxyz")),
    "polars": lambda **columns: pl.DataFrame(columns),
    "pyarrow": lambda **columns: pa.table(columns),
}
SERIES = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.ChunkedArray}


def learner(**changes):
    words = {"actions": ["none", "mail"], "outcome": dc.Reward(0, 50), "first_batch": ROWS}
    plan = dc.Plan(features=dc.UnitBall(2), budget=dc.Budget.none(), **(words | changes))
    return dc.Learner(plan, window=None)


def decided(library="pandas", **changes):
    one = learner(**changes)
    return one, one.decide(LIBRARIES[library](x=CONTEXTS[:, 0], y=CONTEXTS[:, 1]))


def observed(one):
    """Return the losses in the slots of the first batch."""
    batch = one._store.batches[0].batch(None)
    return np.where(batch.observed, batch.losses, np.nan)


@pytest.mark.parametrize("library", LIBRARIES)
def test_decisions_are_series_of_the_library(library):
    _, decisions = decided(library)
    names = ("id", "action", "stored", "action_index", "propensity")
    for name in names:
        assert isinstance(getattr(decisions, name), SERIES[library]), name
    made = decisions.to_frame()
    assert type(made) is type(LIBRARIES[library](x=[1.0] * ROWS))
    np.testing.assert_array_equal(np.asarray(made["id"]), range(ROWS))
    picked = np.asarray(decisions.action_index)
    assert [["none", "mail"][each] for each in picked] == list(np.asarray(made["action"]))
    np.testing.assert_allclose(np.asarray(made["propensity"]), 0.5)
    assert "5 of 5 stored" in repr(decisions)


def test_decisions_keep_the_index_of_pandas():
    _, decisions = decided()
    frame = pd.DataFrame({"z": range(ROWS)}, index=list("zyxwv"))
    frame["id"] = decisions.id
    assert frame["id"].tolist() == [4, 3, 2, 1, 0]
    assert decisions.to_frame().index.tolist() == list("vwxyz")


def test_decisions_of_arrays_stay_arrays_and_make_frames():
    one = learner()
    assert isinstance(one.decide(CONTEXTS[:2]).id, np.ndarray)
    assert len(one.decide(CONTEXTS[:2]).to_frame()) == 2
    assert len(one.decide(CONTEXTS[0]).to_frame()) == 1


@given(order=st.permutations(range(ROWS)), by_index=st.booleans())
def test_a_series_in_any_order_finds_its_rows(order, by_index):
    one, decisions = decided()
    rewards = pd.Series([0.0, 10, 20, 30, 40], index=list("vwxyz")).iloc[order]
    ids = decisions.id if by_index else decisions.id.loc[rewards.index]
    one.observe(ids, reward=rewards)
    np.testing.assert_allclose(np.nansum(observed(one), axis=1), [1.0, 0.8, 0.6, 0.4, 0.2])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_reports_by_its_columns(library):
    one, decisions = decided(library)
    rewards = [0.0, 10.0, 20.0, 30.0, 40.0]
    one.observe(LIBRARIES[library](more=["?"] * ROWS, reward=rewards, id=np.asarray(decisions.id)))
    np.testing.assert_allclose(np.nansum(observed(one), axis=1), [1.0, 0.8, 0.6, 0.4, 0.2])


def test_ids_that_a_join_made_floats_are_whole_numbers():
    one, _ = decided()
    one.observe(pd.DataFrame({"id": [0.0, 3.0], "reward": [50, 0]}))
    np.testing.assert_array_equal(
        np.isnan(observed(one)).all(axis=1), [False, True, True, False, True]
    )


def test_indexes_that_do_not_match_are_refused():
    one, decisions = decided()
    other = pd.Series([1.0] * ROWS)
    twice = pd.Series([1.0] * ROWS, index=list("vvxyz"))
    for wrong in (other, twice, other.iloc[:3]):
        with refused(dc.InvalidInput, "index", "reset_index(drop=True)"):
            one.observe(decisions.id, reward=wrong)
    assert np.isnan(observed(one)).all()
    one.observe(decisions.id.reset_index(drop=True), reward=other)


def test_equal_indexes_may_repeat_labels():
    index = list("aabbc")
    values, like = pd.Series(range(ROWS), index=index), pd.Series(range(ROWS), index=index)
    assert aligned(values, like) is values


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"id": [0, 1], "reward": [1.0, None]}, ["row 1: reward", "dropna in pandas"]),
        ({"id": [0, None], "reward": [1.0, 2.0]}, ["row 1: id", "got none"]),
        ({"id": [0.5, 1], "reward": [1.0, 2.0]}, ["row 0: id", "not whole"]),
        ({"id": ["0", "1"], "reward": [1.0, 2.0]}, ["row 0: id", "got text"]),
        ({"id": [0, 1], "reward": [1.0, 51.0]}, ["row 1: reward", "[0, 50]", "a number outside"]),
        ({"id": [0, 1], "reward": ["1", "2"]}, ["row 0: reward", "got text"]),
        ({"id": [0, 1], "rewards": [1.0, 2.0]}, ["'reward' must be a column", "'rewards'?"]),
        ({"ids": [0, 1], "reward": [1.0, 2.0]}, ["'id' must be a column"]),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_stored(kind, columns, words):
    one, _ = decided()
    with refused(dc.InvalidInput, *words):
        one.observe(kind(columns))
    assert np.isnan(observed(one)).all()


def test_a_frame_of_reports_comes_alone():
    one, decisions = decided()
    frame = pd.DataFrame({"id": decisions.id, "reward": 1.0})
    with refused(dc.InvalidInput, "alone", "frame['id']"):
        one.observe(frame, reward=frame["reward"])
    with refused(dc.InvalidInput, "one column", "frame['reward']"):
        one.observe(frame["id"], reward=frame[["reward"]])


def test_full_feedback_has_a_column_per_action():
    one, decisions = decided(feedback="full")
    rewards = {"mail": [50.0] * ROWS, "none": [0.0] * ROWS}
    one.observe(decisions.id, reward=pd.DataFrame(rewards, index=list("vwxyz")))
    np.testing.assert_array_equal(observed(one), [[1.0, 0.0]] * ROWS)
    with refused(dc.InvalidInput, "alone", "full feedback"):
        one.observe(pd.DataFrame({"id": decisions.id, "reward": 1.0}))
    with refused(dc.InvalidInput, "action 'none' must be a column"):
        one.observe(decisions.id, reward=pl.DataFrame({"mail": [1.0] * ROWS}))


@pytest.mark.parametrize("ids", [1.0, "1", None, [1.5], [[1]], True, [None]])
def test_ids_are_whole_numbers(ids):
    one = learner()
    with refused(dc.InvalidInput, "id must be a decision's id"):
        one.observe(ids, reward=[0.5])


def test_no_answers_yet_are_no_mistake():
    one, _ = decided()
    one.observe([], reward=[])
    assert np.isnan(observed(one)).all()


COUNT = 120
POINTS = np.random.default_rng(0).uniform(-0.7, 0.7, size=(COUNT, 2))
LABELS = np.where(POINTS[:, 0] > 0, "mail", "none")
PLAN = dc.Plan(actions=["none", "mail"], features=dc.UnitBall(2), budget=dc.Budget.none())
BY_NAME = dc.Plan(
    actions=["none", "mail"],
    features=dc.Schema([dc.Number("x", -1, 1), dc.Number("y", -1, 1)]),
    budget=dc.Budget.none(),
)
COLUMNS = {"x": POINTS[:, 0], "best": LABELS, "y": POINTS[:, 1]}
KINDS = {
    "pandas": lambda: pd.DataFrame(COLUMNS, index=np.arange(COUNT)[::-1]),
    "categories": lambda: pd.DataFrame(COLUMNS).astype({"best": "category"}),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "pyarrow": lambda: pa.table(COLUMNS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_a_column_by_name(kind):
    frame = KINDS[kind]()
    expected = dc.evaluate(PLAN, POINTS, LABELS).losses
    found = dc.evaluate(PLAN, frame, "best")
    np.testing.assert_array_equal(found.losses, expected)
    by_name = dc.evaluate(BY_NAME, frame, "best").losses
    rows = [{"x": x, "y": y} for x, y in POINTS.tolist()]
    np.testing.assert_array_equal(by_name, dc.evaluate(BY_NAME, rows, LABELS).losses)


def test_labels_of_pandas_follow_the_index_and_others_the_position():
    expected = dc.evaluate(PLAN, POINTS, LABELS).losses
    frame = pd.DataFrame(POINTS, index=[f"person {row}" for row in range(COUNT)])
    mixed = pd.Series(LABELS, index=frame.index).sample(frac=1, random_state=0)
    for labels in (mixed, pl.Series(LABELS), LABELS):
        np.testing.assert_array_equal(dc.evaluate(PLAN, frame, labels).losses, expected)
    with refused(dc.InvalidInput, "index"):
        dc.evaluate(PLAN, frame, pd.Series(LABELS))


def test_losses_are_a_column_per_action():
    wrong = {"mail": (LABELS != "mail") * 1.0, "none": (LABELS != "none") * 1.0, "note": LABELS}
    expected = dc.evaluate(PLAN, POINTS, LABELS).loss
    assert dc.evaluate(PLAN, POINTS, losses=pl.DataFrame(wrong)).loss == expected
    curve = dc.privacy_curve(
        pl.DataFrame(POINTS), losses=pl.DataFrame(wrong).drop("note"), epsilons=[8], seeds=2
    )
    assert curve.plan.n_actions == 2
    with refused(dc.InvalidInput, "column 'mail' must be numeric"):
        dc.evaluate(PLAN, POINTS, losses=pl.DataFrame(wrong | {"mail": LABELS}))


def test_what_cannot_be_is_refused_by_name():
    frame = KINDS["polars"]()
    with refused(dc.InvalidInput, "labels 'bets' must be a column", "'best'?"):
        dc.evaluate(PLAN, frame, "bets")
    with refused(dc.InvalidInput, "row 0: best must be known"):
        dc.evaluate(PLAN, frame.with_columns(best=pl.lit(None, dtype=pl.String)), "best")
    with refused(dc.InvalidInput, "'x'", "Leave it out of the schema"):
        dc.evaluate(BY_NAME, frame, "x")


def test_logs_of_a_frame_with_names_of_actions():
    frame = KINDS["polars"]().with_columns(
        loss=pl.lit(0.25), chance=pl.lit(0.5), sent=pl.Series(LABELS)
    )
    found = dc.Logs.of(PLAN, frame.drop("best"), "sent", "loss", "chance")
    plain = dc.Logs.of(PLAN, POINTS, LABELS, np.full(COUNT, 0.25), np.full(COUNT, 0.5))
    for name in ("features", "actions", "losses", "propensities"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    estimated = dc.evaluate_offline(found, dc.Learner(PLAN))
    table = estimated.to_frame()
    assert table["estimate"].tolist() == ["ips", "snips", "dr"]
    assert table["value"].tolist()[0] == estimated.ips.value
    with refused(dc.InvalidInput, "row 0: actions must be one of 'none', 'mail'", "got text"):
        dc.Logs.of(PLAN, POINTS, ["mial"] * COUNT, np.zeros(COUNT), np.ones(COUNT))
