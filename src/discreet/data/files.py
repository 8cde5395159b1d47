"""Files of labelled sets: which suffix is read how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from discreet.data.arff_file import read_arff
from discreet.data.csv_file import read_csv
from discreet.data.dataset import Dataset
from discreet.data.npz_file import read_npz
from discreet.data.parquet_file import read_parquet

READERS: Mapping[str, Callable[[Path, str | None, bool], Dataset]] = {
    ".npz": read_npz,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".arff": read_arff,
}
SUFFIXES = f"{', '.join([*READERS][:-1])} or {[*READERS][-1]}"
"""For complaints: ".npz, .csv, .parquet or .arff"."""


def is_file_name(name: str | Path) -> bool:
    """Whether a name ends as the files do that can be read."""
    return Path(name).suffix.lower() in READERS


def read_file(path: str, target: str | None = None, encoded: bool = True) -> Dataset:
    """The set in a file, named after it; ``target`` is the column of the class, else the last."""
    return READERS[Path(path).suffix.lower()](Path(path), target, encoded)
