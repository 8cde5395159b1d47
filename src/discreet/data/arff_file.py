"""Labelled sets from dense .arff files, the format of Weka and OpenML.

A header of ``@attribute NAME TYPE`` lines, then ``@data`` and one record per line; ``?`` is missing
and ``%`` begins a comment. Types are numeric (also real, integer) or a list of words in braces.
[Weka manual, chapter "ARFF"]
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.dataset import Dataset, from_columns
from discreet.data.reading import number, unreadable
from discreet.data.source_columns import split_target
from discreet.data.table import Categories, Column
from discreet.errors import InvalidInput

QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|\S+?)\s*(\{{.*\}}|\s\S.*)", re.IGNORECASE)
VALUE = re.compile(rf"\s*({QUOTED}|(?:[^,'\"\s][^,]*?)?)\s*(,|$)")
NUMERIC = ("numeric", "real", "integer")

Attribute = tuple[str, dict[str, int] | None]
"""A name, and the place of each declared word; None for numbers."""


def read_arff(path: Path, target: str | None = None, encoded: bool = True) -> Dataset:
    """Numeric and nominal attributes; the last one is the class unless ``target`` names it."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        unreadable(path, error)
    except UnicodeDecodeError:
        raise InvalidInput(
            f"file must be UTF-8 text; {path} is not. Save it as ARFF (UTF-8)."
        ) from None
    attributes, start = _header(path.name, lines)
    records = [
        _record(f"{path.name}, line {place}", line.strip(), attributes)
        for place, line in enumerate(lines[start:], start=start + 1)
        if line.strip() and not line.lstrip().startswith("%")
    ]
    if not records:
        raise InvalidInput(f"{path.name} must have records after @data; it has none. Add some.")
    values = np.asarray(records, dtype=np.float64)
    columns = [_column(values[:, place], words) for place, (_, words) in enumerate(attributes)]
    titles = [title for title, _ in attributes]
    source, classes = split_target(path.name, titles, columns, target)
    return from_columns(path.stem, path.name, source, classes, encoded)


def _header(name: str, lines: list[str]) -> tuple[list[Attribute], int]:
    """The attributes, and the number of the line that says @data."""
    attributes: list[Attribute] = []
    for place, line in enumerate(lines, start=1):
        text = line.strip()
        if text.lower().startswith("@data"):
            if len(attributes) < 2:
                break
            return attributes, place
        if text.lower().startswith("@attribute"):
            attributes.append(_attribute(f"{name}, line {place}", text))
    raise InvalidInput(
        f"{name} must have at least two @attribute lines and then @data; the file lacks them. "
        "Declare the features first and the class last."
    )


def _attribute(place: str, text: str) -> Attribute:
    found = ATTRIBUTE.fullmatch(text)
    title, kind = (found[1], found[2].strip()) if found else ("", "")
    if kind.startswith("{"):
        words = dict.fromkeys(_values(kind[1:-1]))
        return _unquoted(title), {word: code for code, word in enumerate(words)}
    if kind.lower() not in NUMERIC:
        raise InvalidInput(
            f"{place} must declare an attribute that is numeric or a list of words in braces; got "
            f"{text!r}. Drop text and dates, or make them numbers or categories."
        )
    return _unquoted(title), None


def _record(place: str, line: str, attributes: list[Attribute]) -> list[float]:
    """Numbers, and the codes of words; NaN where a value is missing."""
    values = _values(line)
    if line.startswith("{") or len(values) != len(attributes):
        raise InvalidInput(
            f"{place} must have {len(attributes)} values, one per attribute; it has more or fewer. "
            "Quote values that contain commas; a sparse file must be made dense first."
        )
    return [
        _value(place, value, *attribute)
        for value, attribute in zip(values, attributes, strict=True)
    ]


def _value(place: str, value: str, title: str, words: dict[str, int] | None) -> float:
    read = number(value) if words is None else words.get(value)
    if read is not None:
        return read
    if value == "?":
        return float("nan")
    rule = "a number" if words is None else "one of the declared words"
    raise InvalidInput(
        f"{place}, attribute {title!r} must be {rule}; got {value!r}. Correct it, or declare it."
    )


def _column(values: np.ndarray[Any, Any], words: dict[str, int] | None) -> Column:
    if words is None:
        return values
    codes = np.where(np.isnan(values), -1, values).astype(np.int64)
    return Categories(list(words), codes)


def _values(text: str) -> list[str]:
    """Values between commas; quotes, single or double, keep commas and spaces in."""
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    values = []
    place = 0
    while True:
        found = VALUE.match(text, place)
        if found is None:  # something stands behind a closing quote: no list of values
            return []
        values.append(_unquoted(found[1]))
        if not found[2]:
            return values
        place = found.end()


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
