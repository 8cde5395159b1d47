"""Date: parts on a circle, read as written."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest

from discreet import Date, InvalidInput, Schema
from tolerances import EXACT
from wording import refused

AT = datetime.datetime(2026, 3, 29, 14, 5)  # a Sunday
PLACES = {"month": (2, 12), "day": (28, 31), "weekday": (6, 7), "hour": (14, 24)}


def vector(parts, value):
    field = Date("at", parts)
    out = np.zeros(field.width)
    field.write(value, out, 0)
    return out


@pytest.mark.parametrize("part", PLACES)
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
def test_a_part_is_its_place_on_a_circle_as_written(part, value):
    place, cycle = PLACES[part]
    turn = 2 * math.pi * place / cycle
    expected = [math.cos(turn), math.sin(turn)]
    np.testing.assert_allclose(vector([part], value), expected, rtol=0, atol=EXACT)


def test_parts_keep_their_order_and_count_as_one_each():
    both = vector(["hour", "month"], AT)
    np.testing.assert_array_equal(both, [*vector(["hour"], AT), *vector(["month"], AT)])
    row = Schema([Date("at", ["hour", "month"])]).map({"at": AT})[0]
    np.testing.assert_allclose(row[1:], both / 2, atol=EXACT)


@pytest.mark.parametrize(
    "value", [datetime.date(1960, 2, 29), "1960-02-29", np.datetime64("1960-02-29")]
)
def test_a_date_before_1970_without_a_time(value):
    expected = [math.cos(0), math.sin(0)]  # a Monday
    np.testing.assert_allclose(vector(["weekday"], value), expected, atol=EXACT)
    with refused(InvalidInput, "'at'", "with a time"):
        Schema([Date("at")]).map({"at": value})


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "2026-02-30",
        "2026-03-29T25:00",
        "20260329T1405",
        1774792800,
        True,
        AT.time(),
        [],
    ],
)
def test_what_is_no_date_is_refused(value):
    with refused(InvalidInput, "feature 'at' must be a date with a time such as", "ISO 8601"):
        Schema([Date("at")]).map({"at": value})


@pytest.mark.parametrize("parts", [[], ["minute"], ["hour", "hour"], "hour", None, [3]])
def test_parts_are_known_and_distinct(parts):
    with refused(InvalidInput, "parts of 'at'", "month, day, weekday, hour"):
        Date("at", parts)


def test_a_month_alone_is_no_date():
    with refused(InvalidInput, "'at'"):
        Schema([Date("at", ["month"])]).map({"at": np.datetime64("2026-03")})
