"""Category: declared words, or declared whole numbers."""

import numpy as np
import pandas as pd
import pytest

from discreet import Category, InvalidInput, Schema
from discreet.errors import kind_of
from wording import refused


def place(field, value):
    out = np.zeros(field.width)
    field.write(value, out, 0)
    assert sorted(out) == [0.0] * (field.width - 1) + [1.0]
    return int(out.argmax())


def test_whole_numbers_are_categories():
    field = Category("rank", [3, 1, 2])
    assert [place(field, value) for value in (3, 1.0, np.int64(2), np.float32(3))] == [0, 1, 2, 0]
    assert field == Category("rank", [3.0, 1, np.int8(2)])


def test_other_is_of_the_same_kind():
    field = Category("rank", [3, 1], other=True)
    assert [place(field, value) for value in (7, -2.0, 10**20)] == [2, 2, 2]
    for value in ("3", 2.5, True, False):
        with refused(InvalidInput, "'rank'", f"got {kind_of(value)}"):
            place(field, value)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (Category("rank", [1, 2]), "2", ["[1, 2]", "got text", "not a string"]),
        (Category("rank", ["1", "2"]), 2, ["['1', '2']", "got a number", "Send a string, not int"]),
        (Category("rank", ["gold", "tin"]), "glod", ["got text", "Compare its spelling"]),
        (Category("rank", list(range(500))), -1, ["18, 19] and 480 more"]),
        (Category("rank", ["a"], other=True), 3, ["one of ['a'], or any other word"]),
    ],
)
def test_the_message_fits_what_was_given(field, value, words):
    with refused(InvalidInput, "feature 'rank' must be one of", *words):
        Schema([field]).map({"rank": value})


def test_a_column_tells_a_flag_from_the_number_one():
    with refused(InvalidInput, "row 1: feature 'rank'", "got a truth value"):
        Schema([Category("rank", [1, 2])]).map(pd.DataFrame({"rank": [1, True]}, dtype=object))


@pytest.mark.parametrize("values", [[1, 1.0], [1, True], [True, False], [0.5], [2**53], 7, None])
def test_values_are_all_words_or_all_whole_numbers(values):
    with refused(InvalidInput, "'rank'", "distinct whole"):
        Category("rank", values)


def test_arrays_and_series_may_declare_the_values():
    for values in (np.array(["a", "b"]), pd.Series(["a", "b"]), ("a", "b")):
        assert Category("town", values) == Category("town", ["a", "b"])
    assert Category("rank", np.array([1, 2])).values == (1, 2)
    with refused(InvalidInput, "'town'", "not an array"):
        place(Category("town", ["a", "b"]), np.array(["a"]))
