"""Labelled sets: one-hot columns, missing values, labels, and digests of all that."""

import hashlib
import os
import struct
import subprocess
import sys

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from discreet import InvalidInput
from discreet.data import Dataset, load
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


# --- digests: equal for equal content in any process and any format, and for nothing else

X = np.array([[0.5, 2.0], [1.0, -3.25], [0.0, 7.0], [4.0, 0.0]])
Y = np.array([0, 1, 1, 0])
CSV = "a,c,class\n0.5,red,no\n,blue,yes\n4,?,yes\n-2,red,no\n1,blue,yes\n"


def test_the_digest_is_the_documented_one():
    content = b"discreet-data/1" + struct.pack("<3q", 4, 2, 2)
    content += struct.pack("<8d", *X.ravel()) + struct.pack("<4q", *Y)
    assert Dataset("any", X, Y, 2).digest == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        Dataset("one value", X + np.eye(4, 2) * 1e-15, Y, 2),
        Dataset("one label", X, np.array([0, 1, 1, 1]), 2),
        Dataset("one action more", X, Y, 3),
        Dataset("rows in another order", X[::-1], Y[::-1], 2),
        Dataset("another shape", X.reshape(2, 4), Y[:2], 2),
    ],
    ids=lambda data: data.name,
)
def test_another_content_has_another_digest(other):
    assert other.digest != Dataset("this", X, Y, 2).digest


def test_how_numbers_are_stored_does_not_matter():
    expected = Dataset("", X, Y, 2).digest
    for same in (X.astype(">f8"), np.asfortranarray(X), np.where(X == 0, -0.0, X)):
        assert Dataset("", same, Y.astype(np.int16), 2).digest == expected


def test_formats_agree(tmp_path):
    (tmp_path / "mine.csv").write_text(CSV)
    columns = {
        "a": [0.5, None, 4, -2, 1],
        "c": ["red", "blue", None, "red", "blue"],
        "class": ["no", "yes", "yes", "no", "yes"],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "mine.parquet")
    read = [load(tmp_path / f"mine.{kind}") for kind in ("csv", "parquet")]
    np.savez(tmp_path / "mine.npz", X=read[0].contexts, y=read[0].labels)
    digests = {each.digest for each in [*read, load(tmp_path / "mine.npz")]}
    assert len(digests) == 1
    assert read[0].contexts.tolist() == [
        [0.5, 0, 1, 0],
        [0.75, 1, 0, 0],
        [4, 0, 0, 1],
        [-2, 0, 1, 0],
        [1, 1, 0, 0],
    ]


def test_processes_agree(tmp_path):
    """Words come in another hash order in every process; that must not show."""
    rows = "".join(f"{i},{word},{i % 3}\n" for i, word in enumerate(["e", "b", "d", "a", "c"] * 4))
    (tmp_path / "mine.csv").write_text("n,w,class\n" + rows)
    names = ["fried:300", "waveform:300", str(tmp_path / "mine.csv")]
    code = f"from discreet.data import load\nfor n in {names!r}: print(load(n).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    child = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert child.stdout == "".join(f"{load(name).digest}\n" for name in names)
