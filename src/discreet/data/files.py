"""Labelled sets from .csv, .parquet and .npz files, and from frames."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from discreet.data.dataset import Dataset, from_columns, labelled
from discreet.data.table import (
    MISSING,
    Categories,
    Column,
    SourceColumns,
    number,
    split_target,
    table,
    unreadable,
)
from discreet.errors import InvalidInput
from discreet.features import frames
from discreet.types import Array, Frame, NumpyArray
from discreet.validate import installed

FEW_COLUMNS = 3
"""With fewer columns 0, 1 is more often a record than a header."""


def read_csv(path: Path, target: str | None = None, encoded: bool = True) -> Dataset:
    """A record per line, of numbers or categories; the class is last unless ``target`` names it."""
    titles, columns, header, odd = csv_columns(path)
    source, classes = split_target(path.name, titles, columns, target, header)
    for column, complaint in odd:
        if column is not classes:
            raise complaint
    return from_columns(path.stem, path.name, source, classes, encoded)


def csv_columns(
    path: Path, text: str | None = None
) -> tuple[list[str], list[Column], bool, list[tuple[Column, InvalidInput]]]:
    """Titles and columns of a file, whether it has a header, and columns with a slip in them.

    ``text`` is read instead of the file, which then only has a name.

    The first line is a header, unless it is a record itself: numbers in all columns of numbers.
    """
    try:
        records, lines = _csv_records(path, text)
    except OSError as error:
        unreadable(path, error)
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(
            f"file must be UTF-8 text with commas; {path} is not. Save it as CSV (UTF-8)."
        ) from None
    header = not _is_record(records)
    titles = [f"column {place}" for place in range(1, len(records[0]) + 1)]
    if header:
        titles = [title.strip() for title in records[0]]
        records, lines = records[1:], lines[1:]
    if not records:
        raise InvalidInput(
            f"{path.name} must have records under its header; the file has none. Add some."
        )
    texts = [[value.strip() for value in column] for column in zip(*records, strict=True)]
    numbers = [_numbers(text) for text in texts]
    columns = [_csv_column(text, read) for text, read in zip(texts, numbers, strict=True)]
    odd = [
        (
            column,
            InvalidInput(
                f"{path.name}, line {lines[place]}, column {title!r} must be a number, as others "
                "in that column are; got text. Correct it, write all categories as words, or make "
                "0/1 columns."
            ),
        )
        for title, text, read, column in zip(titles, texts, numbers, columns, strict=True)
        if (place := _odd(read)) is not None
    ]
    return titles, columns, header, odd


def _csv_records(path: Path, text: str | None) -> tuple[list[list[str]], list[int]]:
    """All lines, the header too, and the place in the file where each one ends."""
    records, lines = [], []
    opened = path.open(newline="", encoding="utf-8-sig") if text is None else io.StringIO(text)
    with opened as file:
        reader = csv.reader(file)
        width = 0
        for record in reader:
            if width and not record:  # blank lines are no records
                continue
            if not width and len(record) < 2:
                break
            width = width or len(record)
            if len(record) != width:
                raise InvalidInput(
                    f"{path.name}, line {reader.line_num} must have {width} columns, as the "
                    f"header; it has {len(record)}. Quote values that contain commas."
                )
            records.append(record)
            lines.append(reader.line_num)
    if not records:
        raise InvalidInput(
            f"{path.name} must have a header with at least two columns; the first line has not. "
            "Write one record per line, with commas."
        )
    return records, lines


def _is_record(records: list[list[str]]) -> bool:
    """Return whether the first line is a record: numbers, where all other lines have numbers.

    A table without names is often written with 0, 1, 2, … or 1, 2, 3, … above its columns.
    """
    first, *rest = records
    for start in (0, 1):
        counted = [str(place) for place in range(start, start + len(first))]
        if len(first) >= FEW_COLUMNS and [each.strip() for each in first] == counted:
            return False
    found = False
    for word, others in zip(first, zip(*rest, strict=True), strict=True) if rest else ():
        if _all_numbers([other.strip() for other in others]):
            if _numbers([word.strip()]) == [None]:
                return False
            found = found or word.strip() not in MISSING
    return found


def _all_numbers(texts: list[str]) -> bool:
    """Without a word, and not all of them missing."""
    numbers = _numbers(texts)
    return None not in numbers and any(each == each for each in numbers)


def _numbers(texts: list[str]) -> list[float | None]:
    """Numbers, NaN where a value is missing, None where it is a word."""
    return [math.nan if text in MISSING else number(text) for text in texts]


def _odd(numbers: list[float | None]) -> int | None:
    """The first word among numbers: that is a slip more often than it is meant."""
    mixed = any(each is not None and not math.isnan(each) for each in numbers)
    return numbers.index(None) if mixed and None in numbers else None


def _csv_column(texts: list[str], numbers: list[float | None]) -> Column:
    if None in numbers:
        return Categories.of([None if text in MISSING else text for text in texts])
    return np.asarray(numbers, dtype=np.float64)


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
        _parquet_column(f"{path.name}, column {title!r}", read.column(place))
        for place, title in enumerate(read.column_names)
    ]
    return list(read.column_names), columns


def _parquet_column(place: str, column: Array) -> Column:
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
        return _named_columns(path)
    return SourceColumns(tuple(titles), tuple(columns), target="").by_name()


def _named_columns(path: str, text: str | None = None) -> dict[str, NumpyArray]:
    titles, columns, header, odd = csv_columns(Path(path), text)
    if odd:
        raise odd[0][1]
    if not header:
        raise InvalidInput(
            f"{path} must have a header; its first line is a record. A schema goes by the "
            "names of columns: add a line with them."
        )
    return SourceColumns(tuple(titles), tuple(columns), target="").by_name()


def pasted_columns(text: str) -> dict[str, NumpyArray]:
    """All columns of a sample that is CSV, or JSON with one object per line; kept in memory only.

    >>> pasted_columns('{"age": 41, "device": "phone"}\\n{"age": 18}')["age"]
    array([41., 18.])
    """
    if not text.lstrip().startswith("{"):
        return _named_columns("sample", text.strip() + "\n")
    rows = []
    for place, line in enumerate(text.splitlines(), start=1):
        try:
            row = json.loads(line, parse_int=float) if line.strip() else {}
        except ValueError:
            row = None
        plain = isinstance(row, dict) and not any(
            isinstance(value, (list, dict)) for value in row.values()
        )
        if not plain:
            raise InvalidInput(
                f"sample, line {place} must be a JSON object of numbers, words and truth values; "
                "it is not. Write one object per line, without lists or objects in it."
            )
        rows += [row] if row else []
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _json_column([row.get(name) for row in rows]) for name in names}


def _json_column(values: list[object]) -> NumpyArray:
    if all(value is None or isinstance(value, float) for value in values):
        numbers = np.asarray([math.nan if value is None else value for value in values], np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    made = np.empty(len(values), dtype=object)
    made[:] = [f"{each:.15g}" if isinstance(each, float) else each for each in values]
    return made


def from_frame(frame: Frame, target: str | None = None, name: str = "frame") -> Dataset:
    """The set that the columns of a frame make, as a file of them would; one is the class.

    The frame must be public: words and medians are read from all rows.
    """
    read, titles = frames.opened(frame), frames.column_names(frame)
    if len(titles) < 2 or not len(read):
        raise InvalidInput(
            f"frame must have rows of at least two columns; it has {len(read)} of {len(titles)}. "
            "Add the features, and the class."
        )
    columns = [_frame_column(title, frames.column(read, title)) for title in read.columns]
    source, classes = split_target(name, titles, columns, target)
    return from_columns(name, name, source, classes)


def _frame_column(title: str, found: frames.Column) -> Column:
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
