"""Labelled sets from .csv, .parquet and .npz files, and from frames."""

from __future__ import annotations

import csv
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.dataset import Dataset, SourceColumns, labelled, number, table
from discreet.errors import InvalidInput
from discreet.features import frames
from discreet.features.schema import Schema
from discreet.types import Frame, NumpyArray
from discreet.validate import installed, usable

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
    with usable(path):
        try:
            yield
        except wrong:
            raise InvalidInput(f"{what} must be {rule}; {path} is not. {step}") from None


def read_file(
    path: str, target: str | None = None, encoded: bool = True, user: str | None = None
) -> Dataset:
    """Return the set in a file; ``target`` is the column of the class, by default the last."""
    file = Path(path)
    if file.suffix.lower() == ".npz":
        return _read_npz(file, target or user)
    return replace(_file_columns(file).dataset(file.name, target, encoded, user), name=file.stem)


def is_file_name(name: str | Path) -> bool:
    """Return whether a name ends as the files do that can be read."""
    return Path(name).suffix.lower() in READERS


def sample_columns(path: str) -> dict[str, NumpyArray]:
    """Return all columns of a .csv or .parquet file by name; none of them need be a class."""
    if not is_file_name(path) or path.lower().endswith(".npz"):
        raise InvalidInput(
            f"sample must be a .csv or .parquet file; got {path!r}. Save it as CSV (UTF-8)."
        )
    return _named_columns(path, _file_columns(Path(path)))


def _named_columns(path: str, read: SourceColumns) -> dict[str, NumpyArray]:
    if not read.header:
        raise InvalidInput(
            f"{path} must have a header; its first line is a record. A schema goes by the "
            "names of columns: add a line with them."
        )
    return dict(read.columns)


def _file_columns(path: Path) -> SourceColumns:
    if path.suffix.lower() == ".parquet":
        return _parquet_columns(path)
    with usable(path), path.open(newline="", encoding="utf-8-sig") as file:
        return csv_columns(path.name, file)


def csv_columns(name: str, lines: Iterable[str]) -> SourceColumns:
    """Return columns of numbers or words of CSV.

    The first line is a header, unless it is a record itself: numbers in all columns of numbers.
    """
    reader, step = csv.reader(lines), "Save it as CSV (UTF-8)."
    with readable(name, "UTF-8 text with commas", step, UnicodeDecodeError, csv.Error):
        records = [(reader.line_num, record) for record in reader if record]
    rows = [[word.strip() for word in record] for _, record in records]
    if not rows or len(rows[0]) < 2:
        raise InvalidInput(
            f"{name} must have a header with at least two columns; the first line has not. "
            "Write one record per line, with commas."
        )
    titles = [f"column {number}" for number in range(1, len(rows[0]) + 1)]
    for line, record in records:
        if len(record) != len(titles):
            raise InvalidInput(
                f"{name}, line {line} must have {len(titles)} columns, as the header; it has "
                f"{len(record)}. Quote values that contain commas."
            )
    header = not _is_record(rows[0], rows[1:])
    if header:
        titles, records = rows.pop(0), records[1:]
    if not rows:
        raise InvalidInput(
            f"{name} must have records under its header; the file has none. Add some."
        )
    if len(set(titles)) < len(titles):
        twice = next(title for title in titles if titles.count(title) > 1)
        raise InvalidInput(f"{name} must have distinct columns; got {twice!r} twice. Rename one.")
    columns = {}
    for title, words in zip(titles, zip(*rows, strict=True), strict=True):
        numbers = _numbers(words)
        if None not in numbers:
            columns[title] = np.array(numbers, dtype=np.float64)
            continue
        if any(each is not None and each == each for each in numbers):
            line, _ = records[numbers.index(None)]  # a slip more often than it is meant
            raise InvalidInput(
                f"{name}, line {line}, column {title!r} must be a number, as others in that column "
                "are; got text. Correct it, write all categories as words, or make 0/1 columns."
            )
        known = [None if word in MISSING else word for word in words]
        columns[title] = np.array(known, dtype=object)
    return SourceColumns(columns, header)


def _is_record(first: list[str], rest: list[list[str]]) -> bool:
    """Return whether the first line has numbers wherever all other lines have numbers.

    A table without names is often written with 0, 1, 2, … or 1, 2, 3, … above its columns.
    """
    counts = [[str(start + place) for place in range(len(first))] for start in (0, 1)]
    if len(first) >= FEW_COLUMNS and first in counts:
        return False
    above_numbers = []
    for word, others in zip(first, zip(*rest, strict=True), strict=False):
        numbers = _numbers(others)
        missing = word in MISSING or all(each != each for each in numbers)
        if None not in numbers and not missing:
            above_numbers.append(word)
    return bool(above_numbers) and None not in _numbers(above_numbers)


def _numbers(words: Iterable[str]) -> list[float | None]:
    """Return numbers, NaN where a value is missing, None where it is a word."""
    return [math.nan if word in MISSING else number(word) for word in words]


def _parquet_columns(path: Path) -> SourceColumns:
    instead = ", or write the set as .npz or .csv"
    installed("campaign", f"to read {path.name}", "pyarrow", "narwhals", instead=instead)
    import pyarrow
    import pyarrow.parquet

    step = "It may be cut short: write it again."
    with readable(path, "Parquet", step, pyarrow.ArrowException), path.open("rb") as file:
        return _columns_of(path.name, pyarrow.parquet.read_table(file))


def from_frame(frame: Frame, target: str | None = None, name: str = "frame") -> Dataset:
    """Return the set that the columns of a frame make, as a file of them would.

    The frame must be public: words and medians are read from all rows.
    """
    return _columns_of(name, frame).dataset(name, target)


def _columns_of(name: str, frame: Frame) -> SourceColumns:
    read = frames.opened(frame)
    if len(read.columns) < 2 or not len(read):
        raise InvalidInput(
            f"{name} must have records of at least two columns; it has {len(read)} of "
            f"{len(read.columns)}. Write features first and the class last."
        )
    columns = {}
    for title in read.columns:
        # Whole numbers above 2^53 round here, as they do in every float64 table.
        found = frames.column(read, title).filled("biuf")
        if found.dtype.kind == "O":
            if not all(each is None or isinstance(each, (str, Real)) for each in found):
                raise InvalidInput(
                    f"{name}, column {title!r} must hold numbers, truth values or text; got "
                    f"{read.schema[title]}. Drop it, or make it numbers or categories."
                )
            found = _numbers_or_words(found.tolist())
        columns[str(title)] = found
    return SourceColumns(columns)


def _read_npz(path: Path, column: str | None) -> Dataset:
    """Read arrays ``X`` (n, d) of numbers, NaN where one is missing, and ``y`` (n,) of classes."""
    if column is not None:
        raise InvalidInput(
            f"target must be left out for {path.name}, whose array y is the class, and so must a "
            f"user; got {column!r}. Use a .csv file."
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
    """Return all columns of a sample that is CSV, or JSON with one object per line.

    >>> pasted_columns('{"age": 41, "device": "phone"}\\n{"age": 18}')["age"]
    array([41., 18.])
    """
    if not text.lstrip().startswith("{"):
        return _named_columns("sample", csv_columns("sample", text.strip().splitlines(True)))
    rows = []
    for place, line in enumerate(text.splitlines(), start=1):
        with suppress(ValueError):
            row = json.loads(line or "{}", parse_int=float, parse_constant=lambda _: None)
            if isinstance(row, dict) and not any(isinstance(x, (list, dict)) for x in row.values()):
                rows += [row] if row else []
                continue
        raise InvalidInput(
            f"sample, line {place} must be a JSON object of numbers, words and truth values; it is "
            "not. Write one object per line, without lists or objects in it."
        )
    return feature_columns(rows)


def feature_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, NumpyArray]:
    """Return columns of numbers with NaN, or of words with None, where a feature is missing; truth
    values are 1 and 0.

    >>> feature_columns([{"age": 3, "new": True}, {"age": 4.5, "device": "phone"}])["new"]
    array([ 1., nan])
    """
    given = [*rows]
    names = dict.fromkeys(name for row in given for name in row)
    return {name: _numbers_or_words([row.get(name) for row in given]) for name in names}


def _numbers_or_words(values: list[Any]) -> NumpyArray:
    if not any(isinstance(value, str) for value in values):
        return np.asarray([np.nan if value is None else float(value) for value in values])
    words = [f"{value:.15g}" if isinstance(value, float) else value for value in values]
    return np.asarray([word if word is None else str(word) for word in words], dtype=object)


def flat_features(given: Any, plain: Sequence[str] = ()) -> Features:
    """Return nested features by names with dots; a list of objects is one object.

    Names that begin with ``_`` and nulls are left out, numbers of a list are called by their
    positions, and words of a list become truth values. Names of ``plain`` objects are left out.

    >>> flat_features([{"age": 31}, {"device": {"mobile": True, "tags": ["new", "red"]}}])
    {'age': 31, 'device.mobile': True, 'device.tags.new': True, 'device.tags.red': True}
    """
    found: Features = {}
    for name, value in _flattened(given, "", plain):
        if found.setdefault(name, value) is not value:
            raise InvalidInput(f"feature {name!r} must occur once; it occurs twice. Rename one.")
    return found


def _flattened(given: Any, before: str, plain: Sequence[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name[:1] == "_" or value is None:
                continue
            if isinstance(value, (dict, list)):
                yield from _flattened(value, before if name in plain else f"{before}{name}.", plain)
            else:
                yield before + name, value
        return
    for position, value in enumerate(given):
        if isinstance(value, Mapping):
            yield from _flattened(value, before, plain)
        elif isinstance(value, list):
            yield from _flattened(value, f"{before}{position}.", plain)
        elif isinstance(value, str):
            yield before + value, True
        elif value is not None:
            yield f"{before}{position}", value


def declared_features(schema: Schema, given: Features) -> Features:
    """Return the features that a schema declares; None where one is missing."""
    return {each.name: given.get(each.name) for each in schema.fields}
