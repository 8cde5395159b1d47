"""Sets by name, from files and from frames, and the errors for those that cannot be read."""

import datetime
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from pyarrow import parquet

from discreet import InvalidInput
from discreet.data import NAMES, from_frame, load
from discreet.data.files import READERS
from wording import refused

CSV = "a,b,class\n0.5,1,yes\n-2,3e-1,no\n0,0,yes\n"


@pytest.mark.parametrize("name", NAMES)
def test_every_name_loads(name):
    data = load(name)
    assert data.name == name
    assert data.contexts.shape == (data.rows, data.dimension)
    assert data.contexts.dtype == np.float64
    assert data.labels.shape == (data.rows,)
    assert sorted(set(data.labels.tolist())) == list(range(data.n_actions))
    assert name != "iris" or data.classes == ("setosa", "versicolor", "virginica")


def test_generated_sets_come_in_any_size(tmp_path):
    assert load("fried", rows=17).rows == 17
    for other in ("digits", tmp_path / "x.csv"):
        with refused(InvalidInput, "rows", "fried"):
            load(other, rows=17)


def test_csv(tmp_path):
    path = tmp_path / "mine.CSV"
    path.write_text("\ufeff" + CSV + "\n", encoding="utf-8")
    data = load(str(path))
    assert data.contexts.tolist() == [[0.5, 1.0], [-2.0, 0.3], [0.0, 0.0]]
    assert data.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["header"]),
        ("a,class\n", ["records"]),
        ("class\nyes\n", ["two columns"]),
        ("a,class\n\xff\xfe,1\n", ["UTF-8"]),
        ("a,b,class\n1,2,x\n1,red,y\n", ["line 3", "'b'", "got text", "0/1"]),
        ("a,class\n,x\n?,y\n,x\n", ["columns with values"]),
        ("a,b,class\n1,2\n", ["line 2", "3 columns"]),
        ("1,2,a\n3,4,b\n5,6,a\n7,x,a\n", ["line 4", "'column 2'"]),  # without a header
        ("a,a,class\n1,2,x\n1,3,y\n", ["distinct columns", "'a' twice"]),
        ("a,class\n1,nan\n2,1\n", ["class on every line", "record 1"]),
        ("a,class\n" + "".join(f"1,{i % 51}\n" for i in range(99)), ["at most 50", "got 51"]),
    ],
)
def test_a_csv_file_that_cannot_be_used(tmp_path, text, words):
    path = tmp_path / "mine{0}%s.csv"  # odd names do no harm
    path.write_text(text, encoding="latin-1")
    with refused(InvalidInput, path.name, *words):
        load(path)


X, Y = np.zeros((3, 2)), np.array([0, 1, 0])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X": X}, ["X and y"]),
        ({"X": X[:0], "y": Y[:0]}, ["rows and columns"]),
        ({"X": X.astype(str), "y": Y}, ["table of numbers"]),
        ({"X": X + np.inf, "y": Y}, ["finite"]),
        ({"X": X, "y": Y[:2]}, ["one class per row"]),
        ({"X": X, "y": np.zeros(3)}, ["2 classes"]),
        ({"X": X, "y": np.array([None, 1, 2])}, ["plain arrays"]),
        ({"X": X, "y": np.array([0, 1, np.nan])}, ["labels", "NaN"]),
        ({"X": X, "y": np.array([0, 1, 2])}, ["fewer classes than there are rows", "3 classes"]),
        ({"X": X, "y": np.array([0.5, 1, 1])}, ["fractions"]),
        ({"X": X + np.nan, "y": Y}, ["columns with values"]),
    ],
)
def test_an_npz_file_that_cannot_be_used(tmp_path, arrays, words):
    np.savez(tmp_path / "mine.npz", **arrays)
    with refused(InvalidInput, *words):
        load(tmp_path / "mine.npz")


@pytest.mark.parametrize("name", [f"nowhere{suffix}" for suffix in READERS])
def test_a_file_that_is_not_there(tmp_path, name):
    with refused(InvalidInput, name, "No such file"):
        load(tmp_path / name)


# Parquet files


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
        ({"a": [1.0, 2, 3], "class": ["x", None, "y"]}, ["class on every line", "record 2"]),
        ({"a": [[1], [2], [3]], "class": [0, 1, 1]}, ["'a'", "List"]),
        ({"day": [datetime.date(2000, 1, 1)] * 3, "class": [0, 1, 1]}, ["'day'", "Date"]),
    ],
)
def test_a_parquet_file_that_cannot_be_used(tmp_path, columns, words):
    with refused(InvalidInput, *words):
        read(tmp_path, columns)


def test_a_parquet_file_that_is_something_else(tmp_path):
    (tmp_path / "mine.parquet").write_bytes(b"PAR1 cut short")
    with refused(InvalidInput, "Parquet"):
        load(tmp_path / "mine.parquet")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(InvalidInput, "pyarrow", "discreet[campaign]"):
        load(tmp_path / "mine.parquet")


# Frames

FRAME = pd.DataFrame(
    {
        "age": [1.0, None, 3.0, 4.0],
        "kind": ["no", "yes", "no", "yes"],
        "town": ["Bern", "Basel", None, "Bern"],
        "old": [True, False, True, False],
    }
)


@pytest.mark.parametrize("made", [FRAME, pl.from_pandas(FRAME), FRAME.astype({"town": "category"})])
def test_a_frame_is_its_file(made, tmp_path):
    FRAME.to_parquet(tmp_path / "set.parquet")
    expected = load(tmp_path / "set.parquet", target="kind")
    found = from_frame(made, target="kind")
    assert found.digest == expected.digest
    assert found.classes == expected.classes == ("no", "yes")


def test_what_is_no_set_is_refused():
    with refused(InvalidInput, "at least two columns"):
        from_frame(FRAME[["age"]])
    with refused(InvalidInput, "column 'at'", "text"):
        from_frame(FRAME.assign(at=pd.to_datetime(["2026-01-01"] * 4)), target="kind")
    with refused(InvalidInput, "target", "'kind'?"):
        from_frame(FRAME, target="kinds")


# The column of the class, ids of people, and files without a header

RECORDS = [("red", 1, "no"), ("blue", 2, "yes"), ("red", 4, "no"), ("blue", 3, "no")]


def csv_file(path, header="colour,size,bought"):
    lines = ([header] if header else []) + [",".join(map(str, each)) for each in RECORDS]
    path.write_text("\n".join(lines) + "\n")
    return path


def parquet_file(path):
    values = map(list, zip(*RECORDS, strict=True))
    columns = dict(zip(("colour", "size", "bought"), values, strict=True))
    parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("write", [csv_file, parquet_file])
def test_a_column_is_the_class_by_its_name_or_number(write, tmp_path):
    path = write(tmp_path / f"sales.{write.__name__[:-5]}")
    last = load(path)
    assert last.classes == ("no", "yes")
    assert last.source.titles == ("colour", "size")
    for target in ("colour", "1", 1):
        data = load(path, target=target)
        assert data.classes == ("blue", "red")
        assert data.labels.tolist() == [1, 0, 1, 0]
        assert data.source.titles == ("size", "bought")
        assert data.source.target == "colour"
        np.testing.assert_array_equal(data.contexts[:, 0], [1, 2, 4, 3])
    assert load(path, target="bought").digest == last.digest


def test_an_unknown_target_names_the_nearest(tmp_path):
    path = csv_file(tmp_path / "sales.csv")
    with refused(InvalidInput, "Did you mean 'colour'"):
        load(path, target="color")
    for target in ("0", "4"):
        with refused(InvalidInput, "target must be one of the 3 columns"):
            load(path, target=target)
    np.savez(tmp_path / "a.npz", X=np.zeros((3, 1)), y=[0, 1, 0])
    for name in ("fried", tmp_path / "a.npz"):
        with refused(InvalidInput, "target must be left out"):
            load(name, target="y")


def test_a_file_without_a_header_keeps_its_first_record(tmp_path):
    data = load(csv_file(tmp_path / "sales.csv", header=None))
    assert data.rows == 4
    assert not data.source.header
    assert data.source.titles == ("column 1", "column 2")
    assert data.source.target == "column 3"
    assert load(tmp_path / "sales.csv", target="1").classes == ("blue", "red")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1.5,2,0\n1.0,3,1\n2.0,4,1\n", 3),
        ("?,2,0\n1.0,3,1\n2.0,4,1\n", 3),
        ("5.1,3.5,setosa\n4.9,3.0,other\n4.7,3.2,other\n", 3),
        ("a,b,y\n1,2,0\n1,2,1\n3,4,0\n", 3),
        ("1,b,y\n1,2,0\n1,2,1\n3,4,0\n", 3),  # one name is enough
        ("0,1,2\n5,2,0\n1,2,1\n3,4,0\n", 3),  # what pandas writes above columns without names
        ("1,2,3\n5,2,0\n1,2,1\n3,4,0\n", 3),
        ("0,1\n5,1\n1,0\n3,0\n", 4),
        ("red,x,no\nblue,y,yes\nred,y,no\nred,x,no\n", 3),  # words alone: a header, as before
    ],
)
def test_what_is_a_header(text, rows, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    assert load(tmp_path / "a.csv").rows == rows


LINES = ["size,who,kind,bought", "0.1,7,a,yes", "0.2,8,b,no", "0.3,7,a,no", "0.4,9,b,yes"]


def written(path, lines):
    path.write_text("\n".join(lines))
    return path


def test_ids_are_taken_out(tmp_path):
    path = written(tmp_path / "sales.csv", LINES)
    data, without = load(path, user="who"), load(path)
    assert data.users.tolist() == ["7", "8", "7", "9"]
    assert data.contexts.tolist() == without.contexts[:, [0, 2, 3]].tolist()
    assert data.labels.tolist() == without.labels.tolist()
    assert data.source.titles == ("size", "kind")
    assert without.users is None
    words = [each.replace(",9,", ",anna,").replace(",7,", ",bob,") for each in LINES]
    other = load(
        written(tmp_path / "b.csv", [w.replace(",8,", ",eve,") for w in words]), user="who"
    )
    assert other.users.tolist() == ["bob", "eve", "bob", "anna"]
    assert (data.contexts == other.contexts).all()
    assert data.digest != other.digest
    kept = load(path, user="who", encoded=False)  # for a schema
    assert (kept.dimension, kept.source.titles, len(kept.users)) == (0, ("size", "kind"), 4)


def test_what_is_no_column_of_ids(tmp_path):
    path = written(tmp_path / "sales.csv", LINES)
    with refused(InvalidInput, "user must be a column of the file", "'bought'", "'who'"):
        load(path, user="whom")
    with refused(InvalidInput, "user must be a column of the file"):
        load(path, user="bought")
    with refused(InvalidInput, "must be text or whole numbers"):
        load(path, user="size")
    with refused(InvalidInput, "must be known in every record; record 2 has none"):
        load(written(path, [each.replace(",8,", ",,") for each in LINES]), user="who")
    with refused(InvalidInput, "user must be left out for 'fried'"):
        load("fried", user="who")
