"""Files of labelled sets: which suffix is read how."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.csv_file import csv_columns, read_csv
from discreet.data.dataset import Dataset, from_columns, labelled
from discreet.data.table import Categories, Column, SourceColumns, split_target, table, unreadable
from discreet.errors import InvalidInput
from discreet.features.frames import column, column_names, opened
from discreet.types import NumpyArray
from discreet.validate import installed


def read_parquet(path: Path, target: str | None = None, encoded: bool = True) -> Dataset:
    """Columns of numbers, truth values or text, null where one is missing; one is the class."""
    titles, columns = parquet_columns(path)
    source, classes = split_target(path.name, titles, columns, target)
    return from_columns(path.stem, path.name, source, classes, encoded)


def parquet_columns(path: Path) -> tuple[list[str], list[Column]]:
    """Titles and columns of a file."""
    instead = ", or write the set as .npz or .csv"
    installed("campaign", f"to read {path.name}", "pyarrow", instead=instead)
    import pyarrow
    import pyarrow.parquet

    try:
        with path.open("rb") as file:
            read = pyarrow.parquet.read_table(file)
    except OSError as error:
        unreadable(path, error)
    except pyarrow.ArrowException:
        raise InvalidInput(
            f"file must be Parquet; {path} is not, or it is cut short. Write it again."
        ) from None
    if read.num_columns < 2 or not read.num_rows:
        raise InvalidInput(
            f"{path.name} must have records of at least two columns; it has {read.num_rows} of "
            f"{read.num_columns}. Write features first and the class last."
        )
    columns = [
        _column(f"{path.name}, column {title!r}", read.column(place))
        for place, title in enumerate(read.column_names)
    ]
    return list(read.column_names), columns


def _column(place: str, column: Any) -> Column:
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):  # what pandas writes for a category
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_string(kind) or types.is_large_string(kind):
        encoded = column.combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Categories(encoded.dictionary.to_pylist(), codes.astype(np.int64))
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_boolean(kind):
        column = column.cast(pyarrow.int8())
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        raise InvalidInput(
            f"{place} must hold numbers, truth values or text; got {kind}. "
            "Drop it, or make it numbers or categories."
        )
    # Whole numbers above 2^53 round here, as they do in every float64 table.
    numbers = column.cast(pyarrow.float64(), safe=False).combine_chunks()
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def read_npz(path: Path, target: str | None = None, _encoded: bool = True) -> Dataset:
    """Arrays ``X`` (n, d) of numbers, NaN where one is missing, and ``y`` (n,) of classes."""
    if target is not None:
        raise InvalidInput(
            f"target must be left out for {path.name}, whose array y is the class; got {target!r}. "
            "Write another y, or use a .csv file."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("X", "y") if name in file.files}
    except OSError as error:
        unreadable(path, error)
    except (ValueError, AttributeError, zipfile.BadZipFile, zlib.error, EOFError):
        raise InvalidInput(
            f"file must be an .npz archive of plain arrays; {path} is not. "
            "Write it with np.savez(path, X=contexts, y=labels)."
        ) from None
    if len(arrays) < 2:
        raise InvalidInput(
            f"file must hold the arrays X and y; {path} does not. "
            "Write it with np.savez(path, X=contexts, y=labels)."
        )
    contexts = arrays["X"]
    if contexts.ndim == 2 and contexts.dtype.kind == "f" and np.isnan(contexts).any():
        contexts = table(path.stem, list(contexts.T.astype(np.float64)))
    return labelled(path.stem, contexts, arrays["y"])


READERS: Mapping[str, Callable[[Path, str | None, bool], Dataset]] = {
    ".npz": read_npz,
    ".csv": read_csv,
    ".parquet": read_parquet,
}
SUFFIXES = f"{', '.join([*READERS][:-1])} or {[*READERS][-1]}"
"""For complaints: ".npz, .csv or .parquet"."""


def is_file_name(name: str | Path) -> bool:
    """Return whether a name ends as the files do that can be read."""
    return Path(name).suffix.lower() in READERS


def read_file(path: str, target: str | None = None, encoded: bool = True) -> Dataset:
    """The set in a file, named after it; ``target`` is the column of the class, else the last."""
    return READERS[Path(path).suffix.lower()](Path(path), target, encoded)


def sample_columns(path: str) -> dict[str, NumpyArray]:
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


def from_frame(frame: Any, target: str | None = None, name: str = "frame") -> Dataset:
    """The set that the columns of a frame make, as a file of them would; one is the class.

    The frame must be public: words and medians are read from all rows.
    """
    read, titles = opened(frame), column_names(frame)
    if len(titles) < 2 or not len(read):
        raise InvalidInput(
            f"frame must have rows of at least two columns; it has {len(read)} of {len(titles)}. "
            "Add the features, and the class."
        )
    columns = [_frame_column(title, column(read, title)) for title in read.columns]
    source, classes = split_target(name, titles, columns, target)
    return from_columns(name, name, source, classes)


def _frame_column(title: str, found: Any) -> Column:
    values = found.values
    if values.dtype.kind in "biuf":
        return np.where(found.missing, np.nan, values.astype(np.float64))
    words = [each if known else None for each, known in zip(values, ~found.missing, strict=True)]
    if not all(each is None or isinstance(each, (str, int)) for each in words):
        raise InvalidInput(
            f"column {title!r} must hold numbers, truth values or text; got something else. "
            "Drop it, or make it numbers or categories."
        )
    return Categories.of([None if each is None else str(each) for each in words])
