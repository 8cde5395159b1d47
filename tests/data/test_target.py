"""Which column is the class, which has ids of people, and files without a header."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.data import load
from discreet.errors import InvalidInput
from wording import refused

RECORDS = [("red", 1, "no"), ("blue", 2, "yes"), ("red", 4, "no"), ("blue", 3, "no")]


def csv(path, header="colour,size,bought"):
    lines = ([header] if header else []) + [",".join(map(str, each)) for each in RECORDS]
    path.write_text("\n".join(lines) + "\n")
    return path


def parquet(path):
    values = map(list, zip(*RECORDS, strict=True))
    columns = dict(zip(("colour", "size", "bought"), values, strict=True))
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("write", [csv, parquet])
def test_a_column_is_the_class_by_its_name_or_number(write, tmp_path):
    path = write(tmp_path / f"sales.{write.__name__}")
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
    path = csv(tmp_path / "sales.csv")
    with pytest.raises(InvalidInput, match="Did you mean 'colour'"):
        load(path, target="color")
    for target in ("0", "4"):
        with pytest.raises(InvalidInput, match="target must be one of the 3 columns"):
            load(path, target=target)
    np.savez(tmp_path / "a.npz", X=np.zeros((3, 1)), y=[0, 1, 0])
    for name in ("fried", tmp_path / "a.npz"):
        with pytest.raises(InvalidInput, match="target must be left out"):
            load(name, target="y")


def test_a_file_without_a_header_keeps_its_first_record(tmp_path):
    data = load(csv(tmp_path / "sales.csv", header=None))
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


# Ids of people

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
