"""Every kind of field: in the unit ball, and a frame is mapped as its rows are."""

import datetime
import math
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Category, Date, Flag, Hashed, InvalidInput, Number, Schema
from discreet.plan.config import from_config, to_config
from discreet.plan.plan import FEATURES
from tolerances import EXACT

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


def flag():
    return st.just(({}, st.sampled_from([True, False, 0, 1, 1.0])))


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
    parts = draw(
        st.lists(st.sampled_from(["month", "day", "weekday", "hour"]), min_size=1, unique=True)
    )
    times = st.datetimes(datetime.datetime(1000, 1, 1))
    return {"parts": parts}, times | times.map(datetime.datetime.isoformat)


KINDS = {Number: number, Flag: flag, Category: category, Hashed: hashed, Date: date}


@st.composite
def schema_and_rows(draw):
    """A schema of any fields, and rows that it takes."""
    fields, columns = [], {}
    n = draw(st.integers(1, 4))
    for place in range(draw(st.integers(1, 4))):
        name = f"field {place}"
        kind = draw(st.sampled_from(list(KINDS)))
        options, values = draw(KINDS[kind]())
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
def test_every_row_lies_in_the_unit_ball(both):
    schema, rows = both
    features = schema.map(rows)
    assert features.shape == (len(rows), schema.p)
    assert np.isfinite(features).all()
    assert (np.linalg.norm(features, axis=1) <= 1 + EXACT).all()
    with mock.patch("discreet.features.schema.with_bias", lambda encoded: encoded):
        lengths = np.linalg.norm(schema.map(rows), axis=1)
    assert (lengths <= 1 + EXACT).all(), "by division alone, without a projection"


@given(schema_and_rows())
@settings(max_examples=60)
def test_a_frame_is_mapped_as_its_rows_are(both):
    schema, rows = both
    each = np.vstack([schema.map(row) for row in rows])
    for dtype in (object, None):  # values as they are, and as pandas types them
        found = schema.map(pd.DataFrame(rows, dtype=dtype))
        np.testing.assert_allclose(found, each, rtol=0, atol=EXACT)


@given(schema_and_rows())
def test_a_schema_survives_its_document(both):
    schema, rows = both
    again = from_config(FEATURES, to_config(schema), "features")
    assert again == schema
    np.testing.assert_array_equal(again.map(rows), schema.map(rows))


LEGAL = {
    "number": (Number("x", 1, 10), 3),
    "logarithm": (Number("x", 1, 10, log=True), 3.5),
    "clipped": (Number("x", 1, 10, clip=True), 30),
    "flag": (Flag("x"), True),
    "words": (Category("x", ["a", "b"]), "b"),
    "words, other": (Category("x", ["a", "b"], other=True), "c"),
    "whole numbers": (Category("x", [1, 2]), 2),
    "whole, other": (Category("x", [1, 2], other=True), 3),
    "hash": (Hashed("x", 5), "town"),
    "time": (Date("x"), "2026-03-29T10:00"),
    "date": (Date("x", ["day"]), datetime.date(2026, 3, 29)),
}
ODD = (
    *(None, math.nan, math.inf, -math.inf, 10**400, 2**53, 0, 1, 1.0, 2.5, -3, True, False),
    *("", "a", "1", "2026-03-29", "2026-03-29T10:00", b"a", [], [1], {}, (), object()),
    *(np.float32(2), np.int8(2), np.bool_(True), np.str_("a"), np.datetime64("2026-03-29T10")),
    *(np.datetime64("2026-03-29"), np.datetime64("NaT"), pd.NA, pd.NaT, pd.Timestamp("2026-03-29")),
    *(datetime.date(2026, 3, 29), datetime.datetime(2026, 3, 29, 10), datetime.time(10)),
    *(np.zeros(2), np.array(3.0), 1j, np.datetime64("2026-03", "M")),
)


@pytest.mark.parametrize("kind", LEGAL)
def test_a_frame_refuses_what_its_rows_refuse(kind):
    field, legal = LEGAL[kind]
    schema = Schema([field])
    for odd in ODD:
        frame = pd.DataFrame({"x": np.fromiter([legal, odd, legal], dtype=object)})
        try:
            expected = schema.map([{"x": legal}, {"x": odd}, {"x": legal}])
        except InvalidInput:
            with pytest.raises(InvalidInput, match=r"row 1: feature 'x' must be "):
                schema.map(frame)
        else:
            np.testing.assert_allclose(schema.map(frame), expected, rtol=0, atol=EXACT)
