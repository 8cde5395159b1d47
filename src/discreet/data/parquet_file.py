"""Labelled sets from .parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.dataset import Dataset, from_columns
from discreet.data.reading import unreadable
from discreet.data.source_columns import split_target
from discreet.data.table import Categories, Column
from discreet.errors import InvalidInput
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
