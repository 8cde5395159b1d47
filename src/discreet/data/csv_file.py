"""Labelled sets from .csv files."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from discreet.data.dataset import Dataset, from_columns
from discreet.data.table import MISSING, Categories, Column, number, split_target, unreadable
from discreet.errors import InvalidInput

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
    path: Path,
) -> tuple[list[str], list[Column], bool, list[tuple[Column, InvalidInput]]]:
    """Titles and columns of a file, whether it has a header, and columns with a slip in them.

    The first line is a header, unless it is a record itself: numbers in all columns of numbers.
    """
    try:
        records, lines = _records(path)
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
    columns = [_column(text, read) for text, read in zip(texts, numbers, strict=True)]
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


def _records(path: Path) -> tuple[list[list[str]], list[int]]:
    """All lines, the header too, and the place in the file where each one ends."""
    records, lines = [], []
    with path.open(newline="", encoding="utf-8-sig") as file:
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


def _column(texts: list[str], numbers: list[float | None]) -> Column:
    if None in numbers:
        return Categories.of([None if text in MISSING else text for text in texts])
    return np.asarray(numbers, dtype=np.float64)
