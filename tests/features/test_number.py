"""Number: declared ranges, linear or logarithmic, and messages that fit what was given."""

import math

import numpy as np
import pytest

from discreet import InvalidInput, Number, Schema
from tolerances import EXACT
from wording import refused


def coordinate(field, value):
    out = np.zeros(1)
    field.write(value, out, 0)
    return out[0]


@pytest.mark.parametrize(
    ("value", "expected"), [(1, -1.0), (10, -0.5), (100, 0.0), (1000, 0.5), (10_000, 1.0)]
)
def test_a_logarithm_is_mapped_to_minus_one_to_one(value, expected):
    field = Number("income", 1, 10_000, log=True)
    assert coordinate(field, value) == pytest.approx(expected, abs=EXACT)


def test_a_logarithm_is_clipped_below_zero_too():
    field = Number("income", 1, 10_000, clip=True, log=True)
    assert coordinate(field, -5) == coordinate(field, 0) == -1.0
    assert coordinate(field, 1e300) == 1.0


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (1.0, math.nextafter(1.0, 2.0) * 0)])
def test_a_logarithm_needs_a_range_above_zero(low, high):
    with refused(InvalidInput, "'income'"):
        Number("income", low, high, log=True)


def test_a_range_too_narrow_for_a_logarithm_is_refused():
    with refused(InvalidInput, "'income'", "not too narrow"):
        Number("income", 1e300, math.nextafter(1e300, math.inf), log=True)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("75", ["got text", "not a string"]),
        ([75], ["got a list", "Send one number, not a list."]),
        ({}, ["got a dict", "not a dict"]),
        (True, ["got a truth value", "Flag"]),
        (np.bool_(False), ["got a truth value", "Flag"]),
        (math.nan, ["got a missing value", "stand_in"]),
        (None, ["got a missing value", "indicator=True"]),
        (math.inf, ["not finite", "too large"]),
        (10**400, ["not finite", "too large"]),
        (101, ["got a number outside", "clip=True"]),
    ],
)
def test_the_message_fits_what_was_given(value, words):
    with refused(InvalidInput, "feature 'age' must be", *words) as caught:
        Schema([Number("age", 0, 100)]).map({"age": value})
    assert ("not a string" in str(caught.value)) == isinstance(value, str)


def test_a_number_too_long_to_print_is_refused_too():
    with refused(InvalidInput, "not finite", "too large"):
        Schema([Number("age", 0, 100)]).map({"age": 10**9999})


@pytest.mark.parametrize("option", ["clip", "log", "indicator"])
def test_options_are_true_or_false(option):
    with refused(InvalidInput, f"{option} of 'age'", "bool"):
        Number("age", 1, 2, **{option: 1})
