"""One-hot columns, missing values and labels: stable whatever the order of the rows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import InvalidInput
from discreet.data.dataset import MOST_CELLS, SourceColumns, in_order, table
from wording import refused

WORD = st.one_of(st.none(), st.sampled_from(["red", "blue", "10", "9", "missing", "", "Ä"]))
NUMBER = st.one_of(st.just(np.nan), st.floats(-1e6, 1e6))


@st.composite
def sets(draw):
    """Records of a number, a word and a class, and an order to put them in."""
    rows = draw(st.integers(4, 12))
    numbers = draw(st.lists(NUMBER, min_size=rows, max_size=rows))
    words = draw(st.lists(WORD, min_size=rows, max_size=rows))
    # Both classes occur, and numbers have one value at least, so that every set is good.
    labels = ["no", "yes", *draw(st.lists(st.sampled_from(["no", "yes"]), min_size=rows - 2))]
    numbers[0] = 0.5
    order = draw(st.permutations(range(rows)))
    return np.array(numbers), words, labels[:rows], list(order)


def column(words):
    return np.array(words, dtype=object)


def read(numbers, words, labels):
    columns = {"n": numbers, "w": column(words), "class": column(labels)}
    return SourceColumns(columns).dataset("mine")


@settings(deadline=None)
@given(sets())
def test_the_order_of_rows_changes_nothing_but_the_order(case):
    numbers, words, labels, order = case
    data = read(numbers, words, labels)
    moved = read(numbers[order], [words[i] for i in order], [labels[i] for i in order])
    assert (moved.contexts == data.contexts[order]).all()
    assert (moved.labels == data.labels[order]).all()
    assert moved.classes == data.classes == ("no", "yes")


@settings(deadline=None)
@given(sets())
def test_a_word_sets_one_column_of_its_own(case):
    numbers, words, labels, _ = case
    ones = read(numbers, words, labels).contexts[:, 1:]
    if any(word is not None for word in words):
        assert ones.shape[1] == len(set(words))
        assert (ones.sum(axis=1) == 1).all()
        first = {word: words.index(word) for word in words}
        assert all((ones[row] == ones[first[word]]).all() for row, word in enumerate(words))
    else:
        assert ones.shape[1] == 0


def test_a_word_called_missing_is_not_the_missing_one():
    found = table("mine", [column(["missing", None, "z"])])
    assert found.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_columns_without_values_are_left_out():
    empty = [np.full(3, np.nan), column([None] * 3)]
    assert table("mine", [*empty, np.arange(3.0)]).tolist() == [[0], [1], [2]]
    with refused(InvalidInput, "mine", "columns with values"):
        table("mine", empty)


def test_words_in_order():
    assert in_order(["b", "10", "9"]) == ["10", "9", "b"]
    assert in_order(["10", "9", "1e0"]) == ["1e0", "9", "10"]
    assert in_order(["1.0", "1"]) == ["1", "1.0"]
    assert in_order(["nan", "9", "10"]) == ["10", "9", "nan"]


def test_an_identifier_is_not_made_into_columns():
    rows = int(MOST_CELLS**0.5) + 1
    with refused(InvalidInput, "identifiers"):
        table("mine", [column([str(i) for i in range(rows)])])
