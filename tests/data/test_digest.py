"""Digests: equal for equal content in any process and any format, and for nothing else."""

import hashlib
import os
import struct
import subprocess
import sys

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from discreet.data import Dataset, load

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
