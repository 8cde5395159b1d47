"""Gaps: refused, filled with a declared stand-in, or told by an indicator."""

import datetime
import math

import numpy as np
import pytest

from discreet import Category, Date, Flag, Hashed, InvalidInput, Number, Schema
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
GAPS = [{}, {"x": None}, {"x": math.nan}, {"x": np.float64("nan")}, {"x": np.datetime64("NaT")}]


@each_kind
def test_a_gap_is_refused_unless_it_is_declared(kind):
    schema = Schema([kind("x", **KINDS[kind][0])])
    for gap in GAPS:
        with refused(InvalidInput, "feature 'x' must be", "missing", "stand_in"):
            schema.map(gap)
    with refused(InvalidInput, "row 1: feature 'x'"):
        schema.map([{"x": KINDS[kind][1]}, {}])


@each_kind
def test_a_stand_in_is_used_instead(kind):
    options, legal, _ = KINDS[kind]
    schema = Schema([kind("x", **options, stand_in=legal)])
    for gap in GAPS:
        np.testing.assert_array_equal(schema.map(gap), schema.map({"x": legal}))


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


@each_kind
def test_a_declaration_is_checked_at_once(kind):
    options, legal, illegal = KINDS[kind]
    for value in (illegal, math.nan, [], kind):
        with refused(InvalidInput, "stand_in of 'x'", "legal value"):
            kind("x", **options, stand_in=value)
    with refused(InvalidInput, "stand_in of 'x'", "Choose one of them"):
        kind("x", **options, stand_in=legal, indicator=True)
    for name in ("", None, 3):
        with refused(InvalidInput, "name of a field"):
            kind(name, **options)


def test_a_date_may_stand_in_as_an_object():
    at = datetime.datetime(2026, 3, 29, 10)
    assert Date("x", stand_in=at) == Date("x", stand_in="2026-03-29T10:00:00")
