"""Columns of numbers and of categories become one table of numbers.

Two rules, both of the whole set and both part of its definition:

- A category becomes one column of 0 and 1 for each word that occurs, words in sorted order. A
  missing category is a separate category, the last one.
- A missing number becomes the median of its column. A column without any value is left out.

The sets are public benchmarks, and encoding them is no private operation: words and medians are
read from all rows. With people's data, declare them in advance in a ``Schema`` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from discreet.errors import InvalidInput
from discreet.types import NumpyArray
from discreet.validate import nearest

MISSING = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null"})
"""Texts for a missing value; surrounding spaces do not matter."""


def unreadable(path: Path, error: OSError) -> NoReturn:
    """Raise an error with the file and the reason."""
    reason = error.strerror or "not a file of that kind"
    raise InvalidInput(
        f"file must be readable; {path} is not ({reason}). Check the path."
    ) from None


def number(word: str) -> float | None:
    """The number that a word writes, or None."""
    try:
        return float(word)
    except ValueError:
        return None


def in_order(words: Sequence[str]) -> list[int]:
    """Places of the words, sorted: as numbers where all are numbers (9 before 10), else as text.

    >>> in_order(["10", "9"]), in_order(["10", "9", "none"])
    ([1, 0], [0, 1, 2])
    """
    numbers = [number(word) for word in words]
    if all(each is not None and each == each for each in numbers):
        # Words of equal value, 1 and 1.0, stay separate; their text decides the order.
        return sorted(range(len(words)), key=lambda place: (numbers[place], words[place]))
    return sorted(range(len(words)), key=words.__getitem__)


MOST_CELLS = 2**28
"""Rows times columns after encoding: 2 GiB of float64, far more than any set of the paper needs."""


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of words: ``codes`` (n,) are places in ``words``, −1 where one is missing."""

    words: Sequence[str]
    codes: NumpyArray

    @classmethod
    def of(cls, values: Sequence[str | None]) -> Categories:
        """From one word per row; None means missing."""
        words = [word for word in dict.fromkeys(values) if word is not None]
        places: dict[str | None, int] = {word: place for place, word in enumerate(words)}
        codes = np.fromiter((places.get(value, -1) for value in values), np.int64, len(values))
        return cls(words, codes)


Column = NumpyArray | Categories
"""Numbers (n,) with NaN where one is missing, or categories."""


def table(name: str, columns: Sequence[Column]) -> NumpyArray:
    """The contexts (n, d) that the columns of the set ``name`` make.

    >>> table("colours", [np.array([1, np.nan, 4, 2]), Categories.of(["red", "blue", None, "red"])])
    array([[1., 0., 1., 0.],
           [2., 1., 0., 0.],
           [4., 0., 0., 1.],
           [2., 0., 1., 0.]])
    """
    rows = max((_length(column) for column in columns), default=0)
    width = sum(_width(column) for column in columns)
    if not rows or not width:
        raise InvalidInput(
            f"contexts of {name} must have rows and columns with values; got {rows} rows and "
            f"{width} such columns. Check that features come first and the class last."
        )
    check_size(name, rows, width)
    return np.concatenate([_encoded(column) for column in columns], axis=1)


def check_size(name: str, rows: int, width: int) -> None:
    """Refuse a table that would not fit, before it is made."""
    if rows * width > MOST_CELLS:
        raise InvalidInput(
            f"contexts of {name} must have at most {MOST_CELLS:,} entries; got {rows:,} rows of "
            f"{width:,} after categories became columns. Drop columns of names or identifiers."
        )


def class_column(name: str, column: Column) -> NumpyArray:
    """Labels (n,) from the class column of the set ``name``."""
    if isinstance(column, Categories):
        missing = column.codes < 0
        labels = np.asarray([*column.words, ""])[column.codes]
    else:
        missing, labels = np.isnan(column), column
    if missing.any():
        raise InvalidInput(
            f"{name} must have a class on every line; record {int(missing.argmax()) + 1} has "
            "none. Add it, or drop such records."
        )
    return labels


def _length(column: Column) -> int:
    return len(column.codes if isinstance(column, Categories) else column)


def _width(column: Column) -> int:
    if isinstance(column, Categories):
        found = np.unique(column.codes)
        return len(found) if found.max(initial=-1) >= 0 else 0
    return int(not np.isnan(column).all())


def _encoded(column: Column) -> NumpyArray:
    if not _width(column):
        return np.empty((_length(column), 0))
    if not isinstance(column, Categories):
        missing = np.isnan(column)
        return np.where(missing, np.median(column[~missing]), column)[:, None]
    found = np.unique(column.codes)
    present = found[found >= 0]
    ordered = present[in_order([column.words[code] for code in present])]
    # The missing category, −1, goes last, so that no word can be taken for it.
    places = np.concatenate([ordered, found[found < 0]])
    return np.asarray(column.codes[:, None] == places, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SourceColumns:
    """Titles and columns of the features, and the title of the class.

    ``header`` is False where a file names no columns; they are then called column 1, column 2, …
    """

    titles: tuple[str, ...]
    columns: tuple[Column, ...] = field(repr=False)
    target: str
    header: bool = True

    def by_name(self) -> dict[str, NumpyArray]:
        """Numbers with NaN, and words with None, where a value is missing."""
        twice = next((each for each in self.titles if self.titles.count(each) > 1), None)
        if twice is not None:
            raise InvalidInput(
                f"columns must have different names; got {twice!r} twice. Rename one in the file."
            )
        return {
            title: _values(column) for title, column in zip(self.titles, self.columns, strict=True)
        }


def split_target(
    name: str,
    titles: Sequence[str],
    columns: Sequence[Column],
    target: str | None,
    header: bool = True,
) -> tuple[SourceColumns, Column]:
    """The features of the file ``name``, and its class column: by default the last."""
    place = len(titles) - 1 if target is None else _place(name, titles, target)
    rest = [other for other in range(len(titles)) if other != place]
    features = SourceColumns(
        titles=tuple(titles[other] for other in rest),
        columns=tuple(columns[other] for other in rest),
        target=titles[place],
        header=header,
    )
    return features, columns[place]


def _place(name: str, titles: Sequence[str], target: str) -> int:
    """By name, or else by number, counted from 1."""
    if titles.count(target) == 1:
        return titles.index(target)
    if target.isdecimal() and 1 <= int(target) <= len(titles) and target not in titles:
        return int(target) - 1
    raise InvalidInput(
        f"target must be one of the {len(titles)} columns of {name}, by its name or by its number "
        f"from 1; got {target!r}. {nearest(target, titles)}"
    )


def _values(column: Column) -> NumpyArray:
    if isinstance(column, Categories):
        return np.asarray(np.asarray([*column.words, None], dtype=object)[column.codes])
    return column
