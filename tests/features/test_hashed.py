"""Hashed: a public rule that other languages follow, spread evenly, salted by the name."""

import numpy as np
import pytest

from discreet import Hashed, InvalidInput, Schema
from wording import refused


def crc32(data):
    """Bit by bit, from the polynomial."""
    h = 0xFFFFFFFF
    for byte in data:
        h ^= byte
        for _ in range(8):
            h = h >> 1 ^ (0xEDB88320 if h & 1 else 0)
    return h ^ 0xFFFFFFFF


def slot(name, text, width):
    """The rule of the docstring, in plain steps."""
    h = crc32(f"{name}={text}".encode())
    h ^= h >> 16
    h = h * 0x85EBCA6B % 2**32
    h ^= h >> 13
    h = h * 0xC2B2AE35 % 2**32
    h ^= h >> 16
    return h % width


def slots(name, values, width):
    return Schema([Hashed(name, width)]).map([{name: each} for each in values])[:, 1:].argmax(1)


def test_the_rule_is_the_documented_one():
    towns = ["", "Bern", "Zürich ☃ 😀", "a=b", "x" * 1000]
    assert slots("town", towns, 97).tolist() == [slot("town", each, 97) for each in towns]
    assert slots("town", [3000, -1, 4.0], 97).tolist() == [
        slot("town", each, 97) for each in ("3000", "-1", "4")
    ]


def test_slots_are_used_evenly_and_differently_by_columns():
    values = [f"customer {place}" for place in range(6400)]
    one, other = slots("a", values, 64), slots("b", values, 64)
    # χ² with 63 degrees of freedom exceeds 140 once in 10⁷ columns.
    assert ((np.bincount(one, minlength=64) - 100) ** 2 / 100).sum() < 140
    assert 50 < (one == other).sum() < 160


@pytest.mark.parametrize("value", [0.5, True, [], b"x", 2**53, -(2**53)])
def test_only_words_and_whole_numbers_are_hashed(value):
    with refused(InvalidInput, "'town'", "a word or a whole number"):
        Schema([Hashed("town", 5)]).map({"town": value})


@pytest.mark.parametrize("width", [1, 0, 2.0, True, None])
def test_a_width_is_a_whole_number_of_at_least_two(width):
    with refused(InvalidInput, "width of 'town'"):
        Hashed("town", width)
