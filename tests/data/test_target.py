"""Which column is the class, and files without a header: no record is lost."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.data import load
from discreet.errors import InvalidInput

RECORDS = [("red", 1, "no"), ("blue", 2, "yes"), ("red", 4, "no"), ("blue", 3, "no")]


def csv(path, header="colour,size,bought"):
    lines = ([header] if header else []) + [",".join(map(str, each)) for each in RECORDS]
    path.write_text("\n".join(lines) + "\n")
    return path


def parquet(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

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
