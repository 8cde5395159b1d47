"""Files of labelled sets: which suffix is read how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.arff_file import read_arff
from discreet.data.csv_file import csv_columns, read_csv
from discreet.data.dataset import Dataset
from discreet.data.npz_file import read_npz
from discreet.data.parquet_file import parquet_columns, read_parquet
from discreet.data.source_columns import SourceColumns
from discreet.errors import InvalidInput

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


def sample_columns(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """All columns of a .csv or .parquet file by name; none of them need be a class."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InvalidInput(
            f"sample must be a .csv or .parquet file; got {path!r}. Save it as CSV (UTF-8)."
        )
    if suffix == ".parquet":
        titles, columns = parquet_columns(Path(path))
    else:
        titles, columns, header, odd = csv_columns(Path(path))
        if odd:
            raise odd[0][1]
        if not header:
            raise InvalidInput(
                f"{path} must have a header; its first line is a record. A schema goes by the "
                "names of columns: add a line with them."
            )
    return SourceColumns(tuple(titles), tuple(columns), target="").by_name()
