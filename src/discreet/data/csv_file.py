"""Labelled sets from .csv files."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from discreet.data.dataset import Dataset, labelled
from discreet.data.reading import MISSING, number, unreadable
from discreet.data.table import Categories, Column, class_column, table
from discreet.errors import InvalidInput


def read_csv(path: Path) -> Dataset:
    """A header, then a record per line: numbers or categories, and the class in the last column."""
    try:
        header, records, lines = _records(path)
    except OSError as error:
        unreadable(path, error)
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(
            f"file must be UTF-8 text with commas; {path} is not. Save it as CSV (UTF-8)."
        ) from None
    if not records:
        raise InvalidInput(
            f"{path.name} must have records under its header; the file has none. Add some."
        )
    texts = [[value.strip() for value in column] for column in zip(*records, strict=True)]
    features = []
    for title, text in zip(header[:-1], texts[:-1], strict=True):
        numbers = _numbers(text)
        odd = _odd(numbers)
        if odd is not None:
            raise InvalidInput(
                f"{path.name}, line {lines[odd]}, column {title!r} must be a number, as others in "
                f"that column are; got {text[odd]!r}. Correct it, write all categories as words, "
                "or make 0/1 columns."
            )
        features.append(_column(text, numbers))
    labels = class_column(path.name, _column(texts[-1], _numbers(texts[-1])))
    return labelled(path.stem, table(path.stem, features), labels)


def _records(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """The header, the records, and the line that each one ends on."""
    records, lines = [], []
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        if len(header) < 2:
            raise InvalidInput(
                f"{path.name} must have a header with at least two columns; it has "
                f"{len(header)}. Write features first and the class last, with commas."
            )
        for record in reader:
            if not record:  # blank lines are no records
                continue
            if len(record) != len(header):
                raise InvalidInput(
                    f"{path.name}, line {reader.line_num} must have {len(header)} columns, as the "
                    f"header; it has {len(record)}. Quote values that contain commas."
                )
            records.append(record)
            lines.append(reader.line_num)
    return header, records, lines


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
