"""Kinds of fields: coordinates of values, gaps, and the refusal of all else."""

import datetime
import math
import zlib
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Category, Date, Flag, Hashed, InvalidInput, Number, Schema
from discreet.errors import kind_of
from discreet.plan.config import from_config, to_config
from discreet.plan.plan import FEATURES
from tolerances import EXACT
from wording import refused

KINDS = {
    Number: ({"low": 0, "high": 10}, 4, 11),
    Flag: ({}, True, 2),
    Category: ({"values": ["a", "b"]}, "b", "c"),
    Hashed: ({"width": 4}, "b", 0.5),
    Date: ({}, "2026-03-29T10:00", "2026-03-29"),
}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
GAPS = [{}, {"x": None}, {"x": math.nan}, {"x": np.datetime64("NaT")}, {"x": pd.NA}]


def vector(field, value):
    out = np.zeros(field.width)
    field.write(value, out, 0)
    return out


@each_kind
def test_a_gap_is_refused_unless_it_is_declared(kind):
    options, legal, illegal = KINDS[kind]
    schema = Schema([kind("x", **options)])
    for gap in GAPS:
        with refused(InvalidInput, "feature 'x' must be", "missing", "stand_in"):
            schema.map(gap)
    with refused(InvalidInput, "row 1: feature 'x'"):
        schema.map([{"x": legal}, {}])
    filled = Schema([kind("x", **options, stand_in=legal)])
    for gap in GAPS:
        np.testing.assert_array_equal(filled.map(gap), filled.map({"x": legal}))
    for value in (illegal, math.nan, [], kind):
        with refused(InvalidInput, "stand_in of 'x'", "legal value"):
            kind("x", **options, stand_in=value)
    with refused(InvalidInput, "stand_in of 'x'", "without indicator"):
        kind("x", **options, stand_in=legal, indicator=True)
    for name in ("", None, 3):
        with refused(InvalidInput, "name of a field"):
            kind(name, **options)


@each_kind
def test_an_indicator_is_one_and_all_else_is_zero(kind):
    options, legal, _ = KINDS[kind]
    plain, schema = Schema([kind("x", **options)]), Schema([kind("x", **options, indicator=True)])
    width = schema.fields[0].width
    assert schema.p == plain.p + 1
    for gap in GAPS:
        row = schema.map(gap)[0]
        assert np.flatnonzero(row[1:]).tolist() == [width], "the square is 0 as well"
    row = schema.map({"x": legal})[0]
    np.testing.assert_allclose(np.delete(row, 1 + width), plain.map({"x": legal})[0], atol=EXACT)
    assert row[1 + width] == 0


finite = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(max_size=3)
whole = st.integers(-(2**50), 2**50)


@st.composite
def number(draw):
    log, clip = draw(st.booleans()), draw(st.booleans())
    low = draw(st.floats(1e-3, 1e3)) if log else draw(st.floats(-1e300, 1e300))
    high = low * draw(st.floats(1.01, 1e6)) if log else draw(st.floats(-1e300, 1e300))
    low, high = min(low, high), max(low, high)
    high = high if low < high else math.nextafter(low, math.inf)
    return {"low": low, "high": high, "clip": clip, "log": log}, (
        finite if clip else st.floats(low, high)
    )


@st.composite
def category(draw):
    kind = draw(st.sampled_from([words, whole]))
    values = draw(st.lists(kind, min_size=1, max_size=4, unique=True))
    other = draw(st.booleans())
    return {"values": values, "other": other}, kind if other else st.sampled_from(values)


@st.composite
def hashed(draw):
    return {"width": draw(st.integers(2, 9))}, draw(st.sampled_from([words, whole]))


@st.composite
def date(draw):
    parts = st.sampled_from(["month", "day", "weekday", "hour"])
    times = st.datetimes(datetime.datetime(1000, 1, 1))
    options = {"parts": draw(st.lists(parts, min_size=1, unique=True))}
    return options, times | times.map(datetime.datetime.isoformat)


DRAWN = {
    **{Number: number(), Category: category(), Hashed: hashed(), Date: date()},
    Flag: st.tuples(st.builds(dict), st.just(st.sampled_from([True, False, 0, 1, 1.0]))),
}


@st.composite
def schema_and_rows(draw):
    """A schema of any fields, and rows that it takes."""
    fields, columns = [], {}
    n = draw(st.integers(1, 4))
    for place in range(draw(st.integers(1, 4))):
        name = f"field {place}"
        kind = draw(st.sampled_from(list(DRAWN)))
        options, values = draw(DRAWN[kind])
        gap = draw(st.sampled_from(["refused", "stand_in", "indicator"]))
        if gap == "stand_in":
            options["stand_in"] = draw(values)
        options["indicator"] = gap == "indicator"
        fields.append(kind(name, **options))
        values = values if gap == "refused" else values | st.none()
        columns[name] = draw(st.lists(values, min_size=n, max_size=n))
    names = list(columns)
    pairs = [(one, other) for one in names for other in names if one < other]
    products = draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True)) if pairs else []
    schema = Schema(fields, draw(st.booleans()), products)
    return schema, [
        dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]


@given(schema_and_rows())
@settings(max_examples=60)
def test_every_row_lies_in_the_unit_ball_and_a_schema_survives_its_document(both):
    schema, rows = both
    features = schema.map(rows)
    assert features.shape == (len(rows), schema.p)
    assert np.isfinite(features).all()
    assert (features[:, 0] == math.sqrt(0.5)).all()
    assert (np.linalg.norm(features, axis=1) <= 1 + EXACT).all()
    with mock.patch("discreet.features.schema.with_bias", lambda encoded: encoded):
        lengths = np.linalg.norm(schema.map(rows), axis=1)
    assert (lengths <= 1 + EXACT).all(), "by division alone, without a projection"
    again = from_config(FEATURES, to_config(schema), "features")
    assert again == schema
    np.testing.assert_array_equal(again.map(rows), features)


@given(schema_and_rows())
@settings(max_examples=40)
def test_a_frame_is_mapped_as_its_rows_are(both):
    schema, rows = both
    each = np.vstack([schema.map(row) for row in rows])
    for dtype in (object, None):  # values as they are, and as pandas types them
        found = schema.map(pd.DataFrame(rows, dtype=dtype))
        np.testing.assert_allclose(found, each, rtol=0, atol=EXACT)


INCOME = Number("income", 1, 10_000, log=True)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        *((INCOME, 10**k, [k / 2 - 1]) for k in range(5)),
        (Number("income", 1, 10_000, clip=True, log=True), -5, [-1.0]),
        (Number("income", 1, 10_000, clip=True, log=True), 1e300, [1.0]),
        *((Number("age", 0, 100), value, [value / 50 - 1]) for value in (0, 50, 100, 25.0)),
        (Number("age", 0, 100), np.float32(75), [0.5]),
        *((Flag("member"), value, [1]) for value in (True, 1, 1.0, np.bool_(True))),
        *((Flag("member"), value, [-1]) for value in (False, 0, np.int8(0))),
        (Category("rank", [3, 1, 2]), np.float32(3), [1, 0, 0]),
        (Category("rank", [3, 1, 2]), 1.0, [0, 1, 0]),
        *((Category("rank", [3, 1], other=True), value, [0, 0, 1]) for value in (7, -2.0, 10**20)),
        (Category("device", ["phone"], other=True), "watch", [0, 1]),
    ],
)
def test_coordinates_are_the_documented_ones(field, value, expected):
    np.testing.assert_allclose(vector(field, value), expected, rtol=0, atol=EXACT)


RANK, TOWN, AGE = Category("x", [1, 2]), Hashed("x", 5), Number("x", 0, 100)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (RANK, "2", ["one of [1, 2]", "list"]),
        (Category("x", ["1", "2"]), 2, ["one of ['1', '2']", "list"]),
        (Category("x", list(range(500))), -1, ["18, 19 and 480 more"]),
        (Category("x", ["a"], other=True), 3, ["one of ['a'], or any other word"]),
        *((Category("x", [3], other=True), each, []) for each in ("3", 2.5, True)),
        *((AGE, each, ["finite number"]) for each in ("75", [75], {}, True, np.bool_(False))),
        *((AGE, each, ["not finite"]) for each in (math.inf, 10**400)),
        *((AGE, each, ["[0, 100]", "outside", "clip=True"]) for each in (101, -0.001)),
        *((Flag("x"), each, ["true or false"]) for each in ("true", 2, -1, 0.5, [], b"1")),
        *((TOWN, each, ["whole number"]) for each in (0.5, True, [], b"x", 2**53, -(2**53))),
        *((Date("x"), each, ["with a time", "ISO"]) for each in ("", "soon", 1774792800, [])),
        (Date("x"), "2026-03-29T25:00", ["ISO"]),
        *((Date("x", ["day"]), each, ["a date such"]) for each in ("2026-02-30", True)),
        (Date("x", ["month"]), np.datetime64("2026-03"), ["days"]),
    ],
)
def test_values_are_refused_by_the_rule_of_the_field(field, value, words):
    got = [] if "outside" in words else [f"got {kind_of(value)}"]
    with refused(InvalidInput, "feature 'x' must be", *words, *got):
        Schema([field]).map({"x": value})


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        *((Number, (1, high), ["low < high"]) for high in (1, 0, math.inf, math.nan, "2", None)),
        (Number, (-1.7e308, 1.7e308), ["low < high"]),
        *((Number, (low, 1, False, True), ["above 0"]) for low in (0, -1, 1.0)),
        (Number, (1e300, math.nextafter(1e300, math.inf), False, True), ["not too narrow"]),
        (Number, (1, 2, False, 1), ["log of", "bool"]),
        (Number, (1, 2, False, False, None, 1), ["indicator of", "bool"]),
        *((Category, (each,), ["distinct words"]) for each in ([], ["a", "a"], ["a", 1], "phone")),
        *((Category, (each,), ["distinct whole"]) for each in ([1, 1.0], [1, True], [0.5], 7)),
        (Category, ([2**53],), ["distinct whole"]),
        *((Hashed, (width,), ["width of"]) for width in (1, 0, 2.0, True, None)),
        *((Date, (parts,), ["parts of", "hour"]) for parts in ([], ["minute"], "hour", None, [3])),
        (Date, (["hour", "hour"],), ["parts of"]),
    ],
)
def test_declarations_are_checked_at_once(kind, arguments, words):
    with refused(InvalidInput, "'x'", *words):
        kind("x", *arguments)


def slot(name, text, width):
    """The rule of the docstring of ``Hashed``, in plain steps."""
    h = zlib.crc32(f"{name}={text}".encode())
    h ^= h >> 16
    h = h * 0x85EBCA6B % 2**32
    h ^= h >> 13
    h = h * 0xC2B2AE35 % 2**32
    h ^= h >> 16
    return h % width


def slots(name, values, width):
    return Schema([Hashed(name, width)]).map([{name: each} for each in values])[:, 1:].argmax(1)


def test_the_hash_is_the_documented_one():
    towns = ["", "Bern", "Zürich ☃ 😀", "a=b", "x" * 1000]
    assert slots("town", towns, 97).tolist() == [slot("town", each, 97) for each in towns]
    expected = [slot("town", each, 97) for each in ("3000", "-1", "4")]
    assert slots("town", [3000, -1, 4.0], 97).tolist() == expected


AT = datetime.datetime(2026, 3, 29, 14, 5)  # a Sunday
PLACES = {"month": (2, 12), "day": (28, 31), "weekday": (6, 7), "hour": (14, 24)}


@pytest.mark.parametrize(
    "value",
    [
        AT,
        AT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-9))),
        "2026-03-29T14:05",
        "2026-03-29 14:05:59.999+11:00",
        np.datetime64(AT),
        np.datetime64("2026-03-29T14", "h"),
        pd.Timestamp(AT, tz="Asia/Tokyo"),
    ],
    ids=repr,
)
def test_a_part_is_its_place_on_a_circle_as_written(value):
    for part, (place, cycle) in PLACES.items():
        turn = 2 * math.pi * place / cycle
        expected = [math.cos(turn), math.sin(turn)]
        np.testing.assert_allclose(vector(Date("x", [part]), value), expected, rtol=0, atol=EXACT)
    both = vector(Date("x", ["hour", "month"]), value)
    parts = [vector(Date("x", [part]), value) for part in ("hour", "month")]
    np.testing.assert_array_equal(both, np.concatenate(parts))


@pytest.mark.parametrize(
    "value", [datetime.date(1960, 2, 29), "1960-02-29", np.datetime64("1960-02-29")]
)
def test_a_date_before_1970_without_a_time(value):
    monday = [math.cos(0), math.sin(0)]
    np.testing.assert_allclose(vector(Date("x", ["weekday"]), value), monday, atol=EXACT)
    with refused(InvalidInput, "'x'", "with a time"):
        Schema([Date("x")]).map({"x": value})
