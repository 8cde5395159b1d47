"""Labelled sets from .csv, .parquet and .npz files, and from frames."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.dataset import Dataset, SourceColumns, labelled, number, table
from discreet.errors import InvalidInput
from discreet.features import frames
from discreet.features.schema import Schema
from discreet.types import Array, Frame, NumpyArray
from discreet.validate import installed

MISSING = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null"})
"""Texts for a missing value; surrounding spaces do not matter."""
FEW_COLUMNS = 3
"""With fewer columns 0, 1 is more often a record than a header."""
READERS = (".npz", ".csv", ".parquet")
Features = dict[str, Any]
SUFFIXES = ".npz, .csv or .parquet"


@contextmanager
def readable(
    path: str | Path, rule: str, step: str, *wrong: type[Exception], what: str = "file"
) -> Iterator[None]:
    """Raise an error with the path, where a file is not there or, by ``wrong``, not of its kind."""
    try:
        yield
    except wrong:
        raise InvalidInput(f"{what} must be {rule}; {path} is not. {step}") from None
    except OSError as error:
        reason = error.strerror or "not a file of that kind"
        raise InvalidInput(
            f"file must be readable; {path} is not ({reason}). Check the path."
        ) from None


def read_file(path: str, target: str | None = None, encoded: bool = True) -> Dataset:
    """The set in a file, named after it; ``target`` is the column of the class, else the last."""
    file = Path(path)
    if file.suffix.lower() == ".npz":
        return _read_npz(file, target)
    return replace(_file_columns(file).dataset(file.name, target, encoded), name=file.stem)


def is_file_name(name: str | Path) -> bool:
    """Return whether a name ends as the files do that can be read."""
    return Path(name).suffix.lower() in READERS


def sample_columns(path: str) -> dict[str, NumpyArray]:
    """All columns of a .csv or .parquet file by name; none of them need be a class."""
    if not is_file_name(path) or path.lower().endswith(".npz"):
        raise InvalidInput(
            f"sample must be a .csv or .parquet file; got {path!r}. Save it as CSV (UTF-8)."
        )
    return _named_columns(path, _file_columns(Path(path)))


def _named_columns(path: str, read: SourceColumns) -> dict[str, NumpyArray]:
    for complaint in read.odd.values():
        raise complaint
    if not read.header:
        raise InvalidInput(
            f"{path} must have a header; its first line is a record. A schema goes by the "
            "names of columns: add a line with them."
        )
    return read.by_name()


def _file_columns(path: Path) -> SourceColumns:
    return _parquet_columns(path) if path.suffix.lower() == ".parquet" else csv_columns(path)


def csv_columns(path: Path, text: str | None = None) -> SourceColumns:
    """Columns of numbers or words; ``text`` is read instead of the file, which then has a name.

    The first line is a header, unless it is a record itself: numbers in all columns of numbers.
    """
    step = "Save it as CSV (UTF-8)."
    with readable(path, "UTF-8 text with commas", step, UnicodeDecodeError, csv.Error):
        records, lines = _csv_records(path, text)
    header = not _is_record(records)
    titles = [f"column {place}" for place in range(1, len(records[0]) + 1)]
    if header:
        titles = [title.strip() for title in records[0]]
        records, lines = records[1:], lines[1:]
    if not records:
        raise InvalidInput(
            f"{path.name} must have records under its header; the file has none. Add some."
        )
    columns, odd = [], {}
    for title, given in zip(titles, zip(*records, strict=True), strict=True):
        words = [None if word.strip() in MISSING else word.strip() for word in given]
        numbers = _numbers(given)
        mixed = any(each is not None and not math.isnan(each) for each in numbers)
        if None in numbers and mixed:  # a slip more often than it is meant
            odd[title] = InvalidInput(
                f"{path.name}, line {lines[numbers.index(None)]}, column {title!r} must be a "
                "number, as others in that column are; got text. Correct it, write all categories "
                "as words, or make 0/1 columns."
            )
        if None in numbers:
            columns.append(np.array(words, dtype=object))
        else:
            columns.append(np.array(numbers, dtype=np.float64))
    return SourceColumns(tuple(titles), tuple(columns), header, odd)


def _csv_records(path: Path, text: str | None) -> tuple[list[list[str]], list[int]]:
    """All lines, the header too, and the place in the file where each one ends."""
    records: list[list[str]] = []
    lines: list[int] = []
    opened = path.open(newline="", encoding="utf-8-sig") if text is None else io.StringIO(text)
    with opened as file:
        reader = csv.reader(file)
        for record in reader:
            if records and not record:  # blank lines are no records
                continue
            if not records and len(record) < 2:
                break
            if records and len(record) != len(records[0]):
                raise InvalidInput(
                    f"{path.name}, line {reader.line_num} must have {len(records[0])} columns, as "
                    f"the header; it has {len(record)}. Quote values that contain commas."
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
        numbers = _numbers(others)
        if None not in numbers and any(each == each for each in numbers):  # not all are missing
            if _numbers([word]) == [None]:
                return False
            found = found or word.strip() not in MISSING
    return found


def _numbers(texts: Sequence[str]) -> list[float | None]:
    """Numbers, NaN where a value is missing, None where it is a word."""
    return [math.nan if text.strip() in MISSING else number(text) for text in texts]


def _parquet_columns(path: Path) -> SourceColumns:
    """Columns of numbers, truth values or text, null where one is missing."""
    instead = ", or write the set as .npz or .csv"
    installed("campaign", f"to read {path.name}", "pyarrow", instead=instead)
    import pyarrow
    import pyarrow.parquet

    step = "It may be cut short: write it again."
    with readable(path, "Parquet", step, pyarrow.ArrowException), path.open("rb") as file:
        read = pyarrow.parquet.read_table(file)
    titles = list(read.column_names)
    columns = [
        _parquet_column(f"{path.name}, column {title!r}", read.column(place))
        for place, title in enumerate(titles)
    ]
    return _columns_of(path.name, titles, columns, read.num_rows)


def _parquet_column(place: str, column: Array) -> NumpyArray:
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):  # what pandas writes for a category
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_string(kind) or types.is_large_string(kind):
        return np.array(column.to_pylist(), dtype=object)
    if types.is_boolean(kind):
        column, kind = column.cast(pyarrow.int8()), pyarrow.int8()
    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    if not any(is_numeric(kind) for is_numeric in numeric):
        raise _no_values(place, kind)
    # Whole numbers above 2^53 round here, as they do in every float64 table.
    numbers = column.cast(pyarrow.float64(), safe=False).combine_chunks()
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _no_values(place: str, kind: object) -> InvalidInput:
    return InvalidInput(
        f"{place} must hold numbers, truth values or text; got {kind}. "
        "Drop it, or make it numbers or categories."
    )


def _columns_of(
    name: str, titles: Sequence[str], columns: list[NumpyArray], rows: int
) -> SourceColumns:
    if len(titles) < 2 or not rows:
        raise InvalidInput(
            f"{name} must have records of at least two columns; it has {rows} of {len(titles)}. "
            "Write features first and the class last."
        )
    return SourceColumns(tuple(titles), tuple(columns))


def _read_npz(path: Path, target: str | None) -> Dataset:
    """Arrays ``X`` (n, d) of numbers, NaN where one is missing, and ``y`` (n,) of classes."""
    if target is not None:
        raise InvalidInput(
            f"target must be left out for {path.name}, whose array y is the class; got {target!r}. "
            "Write another y, or use a .csv file."
        )
    rule = "an .npz archive of plain arrays X and y"
    step = "Write it with np.savez(path, X=contexts, y=labels)."
    wrong = (ValueError, AttributeError, KeyError, zipfile.BadZipFile, zlib.error, EOFError)
    with readable(path, rule, step, *wrong), np.load(path, allow_pickle=False) as file:
        contexts, labels = file["X"], file["y"]
    if contexts.ndim == 2 and contexts.dtype.kind == "f" and np.isnan(contexts).any():
        contexts = table(path.stem, list(contexts.T.astype(np.float64)))
    return labelled(path.stem, contexts, labels)


def pasted_columns(text: str) -> dict[str, NumpyArray]:
    """All columns of a sample that is CSV, or JSON with one object per line; kept in memory only.

    >>> pasted_columns('{"age": 41, "device": "phone"}\\n{"age": 18}')["age"]
    array([41., 18.])
    """
    if not text.lstrip().startswith("{"):
        return _named_columns("sample", csv_columns(Path("sample"), text.strip() + "\n"))
    rows = []
    for place, line in enumerate(text.splitlines(), start=1):
        try:
            row = json.loads(line, parse_int=float, parse_constant=lambda _: None) if line else {}
        except ValueError:
            row = None
        if not isinstance(row, dict) or any(isinstance(x, (list, dict)) for x in row.values()):
            raise InvalidInput(
                f"sample, line {place} must be a JSON object of numbers, words and truth values; "
                "it is not. Write one object per line, without lists or objects in it."
            )
        rows += [row] if row else []
    return feature_columns(rows)


def feature_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, NumpyArray]:
    """Return columns of numbers with NaN, or of words with None, where a feature is missing; truth
    values are 1 and 0.

    >>> feature_columns([{"age": 3, "new": True}, {"age": 4.5, "device": "phone"}])["new"]
    array([ 1., nan])
    """
    given = [*rows]
    names = dict.fromkeys(name for row in given for name in row)
    return {name: _column([row.get(name) for row in given]) for name in names}


def _column(values: list[Any]) -> NumpyArray:
    if not any(isinstance(value, str) for value in values):
        return np.asarray([np.nan if value is None else float(value) for value in values])
    words = [f"{value:.15g}" if isinstance(value, float) else value for value in values]
    return np.asarray([word if word is None else str(word) for word in words], dtype=object)


def flat_features(given: Any, plain: Sequence[str] = ()) -> Features:
    """Return nested features by names with dots; a list of objects is one object.

    Names that begin with ``_`` and nulls are left out, numbers of a list are called by their
    places, and words of a list become truth values.

    >>> flat_features([{"age": 31}, {"device": {"mobile": True, "tags": ["new", "red"]}}])
    {'age': 31, 'device.mobile': True, 'device.tags.new': True, 'device.tags.red': True}
    """
    found: Features = {}
    _flatten(given, "", found, plain)
    return found


def _flatten(given: Any, before: str, found: Features, plain: Sequence[str]) -> None:
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name[:1] == "_" or value is None:
                continue
            if isinstance(value, (dict, list)):
                _flatten(value, before if name in plain else f"{before}{name}.", found, plain)
            elif found.setdefault(before + name, value) is not value:
                raise InvalidInput(
                    f"feature {before + name!r} must occur once; it occurs twice. Rename one."
                )
        return
    for place, value in enumerate(given):
        if isinstance(value, (Mapping, list)):
            inner = f"{before}{place}." if isinstance(value, list) else before
            _flatten(value, inner, found, plain)
        elif isinstance(value, str):
            found[before + value] = True
        elif value is not None:
            found[f"{before}{place}"] = value


def declared_features(schema: Schema, given: Features) -> Features:
    """Return the features that a schema declares; None where one is missing."""
    return {each.name: given.get(each.name) for each in schema.fields}


def from_frame(frame: Frame, target: str | None = None, name: str = "frame") -> Dataset:
    """The set that the columns of a frame make, as a file of them would; one is the class.

    The frame must be public: words and medians are read from all rows.
    """
    read, titles = frames.opened(frame), frames.column_names(frame)
    columns = [_frame_column(title, frames.column(read, title)) for title in read.columns]
    return _columns_of(name, titles, columns, len(read)).dataset(name, target)


def _frame_column(title: str, found: frames.Column) -> NumpyArray:
    values = found.values
    if values.dtype.kind in "biuf":
        return np.where(found.missing, np.nan, values.astype(np.float64))
    words = [None if gap else each for each, gap in zip(values, found.missing, strict=True)]
    if not all(each is None or isinstance(each, (str, int)) for each in words):
        raise _no_values(f"column {title!r}", "something else")
    return np.array([each if each is None else str(each) for each in words], dtype=object)
