"""Frames of pandas, polars and pyarrow: columns by name, gaps, results of the same kind."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.features import frames
from wording import refused

SCHEMA = dc.Schema(
    [
        dc.Number("age", 0, 100),
        dc.Number("hours", 0, 24, indicator=True),
        dc.Flag("member", stand_in=False),
        dc.Category("device", ["phone", "desk"], other=True, indicator=True),
        dc.Category("rank", [1, 2, 3], stand_in=1),
        dc.Hashed("town", 7, indicator=True),
        dc.Date("at", indicator=True),
        dc.Date("day", ["month", "day"], stand_in="2026-01-01"),
    ],
    products=[("age", "device")],
)
AT = datetime.datetime(2026, 3, 29, 14, 5)
DAY = datetime.date(2026, 12, 31)
PEOPLE = [
    {"age": 41, "hours": 7.5, "member": True, "device": "phone", "rank": 3, "town": "Bern"}
    | {"at": AT, "day": DAY},
    {"age": 0, "hours": None, "member": None, "device": None, "rank": None, "town": None}
    | {"at": None, "day": None},
    {"age": 100, "hours": 24.0, "member": False, "device": "watch", "rank": 2, "town": "Basel"}
    | {"at": AT.replace(hour=0), "day": DAY.replace(month=2, day=1)},
]
COLUMNS = {name: [person[name] for person in PEOPLE] for name in PEOPLE[0]}
NULLABLE = {
    **{"age": "Int64", "hours": "Float64", "member": "boolean", "device": "category"},
    **{"rank": "Int64", "town": "string", "at": "datetime64[ns]"},
}


def zoned(zone):
    return pd.Series(COLUMNS["at"]).dt.tz_localize(zone)


MADE = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas, nullable": lambda: pd.DataFrame(COLUMNS).astype(NULLABLE),
    "pandas, objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas, a zone": lambda: pd.DataFrame(COLUMNS).assign(at=zoned("America/New_York")),
    "pandas, arrow": lambda: pa.Table.from_pylist(PEOPLE).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, text": lambda: pd.DataFrame(COLUMNS).assign(
        at=["2026-03-29T14:05", None, "2026-03-29T00:05:00Z"],
        day=["2026-12-31", None, "2026-02-01"],
    ),
    "polars": lambda: pl.DataFrame(PEOPLE),
    "polars, categories": lambda: pl.DataFrame(PEOPLE).with_columns(
        pl.col("device").cast(pl.Enum(["phone", "desk", "watch"])),
        pl.col("town").cast(pl.Categorical),
    ),
    "polars, narrow": lambda: pl.DataFrame(PEOPLE).with_columns(
        pl.col("age").cast(pl.UInt8),
        pl.col("hours").cast(pl.Decimal(6, 2)),
        pl.col("at").dt.cast_time_unit("ns"),
    ),
    "pyarrow": lambda: pa.Table.from_pylist(PEOPLE),
    "more columns": lambda: (
        pl.DataFrame(PEOPLE)
        .with_columns(pl.lit("x").alias("more"))
        .select("more", *reversed(COLUMNS))
    ),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_frame_is_its_rows(kind):
    expected = np.vstack([SCHEMA.map(person) for person in PEOPLE])
    np.testing.assert_array_equal(SCHEMA.map(MADE[kind]()), expected)
    plan = dc.Plan(n_actions=2, features=SCHEMA, budget=dc.Budget.none())
    assert len(dc.Learner(plan).decide(MADE[kind]()).action) == 3
    assert SCHEMA.map(MADE[kind]()[:0]).shape == (0, SCHEMA.p)


def test_large_whole_numbers_beside_gaps_stay_exact():
    schema = dc.Schema([dc.Hashed("id", 997, indicator=True)])
    large = 2**53 - 1
    expected = schema.map([{"id": large}, {"id": None}, {"id": large - 2}])
    for frame in (
        pl.DataFrame({"id": [large, None, large - 2]}),
        pd.DataFrame({"id": pd.array([large, None, large - 2], dtype="Int64")}),
    ):
        np.testing.assert_array_equal(schema.map(frame), expected)


def frame_with(**changes):
    return pl.DataFrame(COLUMNS | changes)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (frame_with(age=[1, 2, 101]), ["row 2: feature 'age'", "[0, 100]", "a number outside"]),
        (frame_with(age=[1, None, 3]), ["row 1: feature 'age'", "missing value", "stand_in"]),
        (frame_with(hours=[None, None, 25.0]), ["row 2: feature 'hours'", "a number outside"]),
        (frame_with(at=[None, DAY, DAY]), ["row 1: feature 'at'", "with a time"]),
        (frame_with(device=[["phone"]] * 3), ["row 0: feature 'device'", "a list"]),
        (frame_with().drop("age").with_columns(ages=1), ["'age'", "a column", "mean 'ages'?"]),
        (frame_with().drop("hours"), ["'hours'", "a column", "absent"]),
        (frame_with()["age"], ["context", "a dict", "Series"]),
    ],
)
def test_errors_name_the_row_and_the_column(frame, words):
    with refused(dc.InvalidInput, *words):
        SCHEMA.map(frame)


def test_columns_of_one_name_are_refused():
    twice = pd.concat([pd.DataFrame(COLUMNS), pd.DataFrame({"age": [1, 2, 3]})], axis=1)
    with refused(dc.InvalidInput, "frame", "different name"):
        SCHEMA.map(twice)


NUMBERS = {"b": [0.5, 0.25], "a": [1, 0], "c": [True, False]}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_unit_ball_takes_numeric_columns_in_order(library):
    ball = dc.UnitBall(3)
    frame = library(NUMBERS)
    np.testing.assert_array_equal(ball.map(frame), ball.map([[0.5, 1, 1], [0.25, 0, 0]]))
    assert not ball.is_single(frame)
    assert not ball.is_single(library({"a": [1.0]}))
    assert not SCHEMA.is_single(frame)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"d": [1, 2]}, ["frame must have 3 columns", "got 4"]),
        ({"a": ["x", "y"]}, ["column 'a' must be numeric", "String"]),
        ({"a": [1, None]}, ["row 1: column 'a'", "finite"]),
        ({"b": [np.inf, 1.0]}, ["row 0: column 'b'", "finite"]),
    ],
)
def test_a_unit_ball_names_what_it_refuses(changes, words):
    with refused(dc.InvalidInput, *words):
        dc.UnitBall(3).map(pl.DataFrame(NUMBERS | changes))


def test_results_keep_the_library_and_the_index():
    like = pd.DataFrame({"x": [1, 2]}, index=["u", "v"])
    series = frames.series_like(like, "action", np.array([2, 0]))
    pd.testing.assert_series_equal(series, pd.Series([2, 0], index=["u", "v"], name="action"))
    made = frames.frame_like(like["x"], {"id": np.array([3, 4]), "word": np.array(["a", "b"])})
    assert made.index.tolist() == ["u", "v"]
    assert made["word"].tolist() == ["a", "b"]
    polar = frames.series_like(pl.DataFrame({"x": [1, 2]}), "action", np.array([2, 0]))
    assert polar.to_list() == [2, 0]
    assert polar.name == "action"
    assert isinstance(frames.frame_like(pa.table({"x": [1]}), {"id": np.array([3])}), pa.Table)
    words = np.asarray(["none", "mail"], dtype=object)
    assert frames.series_like(pl.Series([1, 2]), "action", words).dtype == pl.String
    assert frames.frame_like(pl.Series([]), {"action": words[:0]})["action"].dtype == pl.String


def test_without_narwhals_a_frame_says_what_to_install(monkeypatch):
    monkeypatch.setattr("discreet.validate.find_spec", lambda _: None)
    with refused(dc.InvalidInput, "narwhals", "discreet[frames]"):
        SCHEMA.map(pl.DataFrame(PEOPLE))
    SCHEMA.map(PEOPLE)
