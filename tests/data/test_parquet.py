"""Parquet files: what goes in comes back, and what is said about others."""

import datetime
import sys

import pytest

from discreet import InvalidInput
from discreet.data import load
from wording import refused

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def read(tmp_path, columns):
    path = tmp_path / "mine.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    return load(path)


def test_every_kind_of_column(tmp_path):
    words = pyarrow.array(["b", None, "a", "b"])
    data = read(
        tmp_path,
        {
            "whole": pyarrow.array([1, None, 3, 8], pyarrow.int32()),
            "truth": [True, False, None, True],
            "text": words,
            "category": words.dictionary_encode(),
            "numbered": pyarrow.array([10, 9, None, 10]).dictionary_encode(),
            "nothing": pyarrow.nulls(4),
            "class": pyarrow.array(["no", "yes", "yes", "no"]).dictionary_encode(),
        },
    )
    assert data.contexts[:, 0].tolist() == [1, 3, 3, 8]
    assert data.contexts[:, 1].tolist() == [1, 0, 1, 1]
    for start in (2, 5):  # a, b, missing
        assert data.contexts[:, start : start + 3].argmax(axis=1).tolist() == [1, 2, 0, 1]
    assert data.contexts[:, 8].tolist() == [10, 9, 10, 10]
    assert data.dimension == 9  # "nothing" has left no column
    assert data.classes == ("no", "yes")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"class": [0, 1]}, ["two columns"]),
        ({"a": pyarrow.array([], "f8"), "class": pyarrow.array([], "i8")}, ["records"]),
        ({"a": [1.0, 2, 3], "class": [0, 1, None]}, ["class on every line", "record 3"]),
        ({"a": [1.0, 2, 3], "class": ["x", None, "y"]}, ["class on every line", "record 2"]),
        ({"a": [[1], [2], [3]], "class": [0, 1, 1]}, ["'a'", "List"]),
        ({"day": [datetime.date(2000, 1, 1)] * 3, "class": [0, 1, 1]}, ["'day'", "Date"]),
    ],
)
def test_a_parquet_file_that_cannot_be_used(tmp_path, columns, words):
    with refused(InvalidInput, *words):
        read(tmp_path, columns)


@pytest.mark.parametrize("content", [b"", b"PAR1 cut short"])
def test_a_parquet_file_that_is_something_else(tmp_path, content):
    (tmp_path / "mine.parquet").write_bytes(content)
    with refused(InvalidInput, "Parquet"):
        load(tmp_path / "mine.parquet")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(InvalidInput, "pyarrow", "discreet[campaign]"):
        load(tmp_path / "mine.parquet")
