"""Columns of numbers and of categories become one table of numbers.

Two rules, both of the whole set and both part of its definition:

- A category becomes one column of 0 and 1 for each word that occurs, words in sorted order. A
  missing category is a category of its own, the last one.
- A missing number becomes the median of its column. A column without any value is left out.

The sets are public benchmarks, and encoding them is no private operation: words and medians are
read from all rows. With people's data, declare them in advance in a ``Schema`` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.data.reading import in_order
from discreet.errors import InvalidInput

MOST_CELLS = 2**28
"""Rows times columns after encoding: 2 GiB of float64, far more than any set of the paper needs."""


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of words: ``codes`` (n,) are places in ``words``, −1 where one is missing."""

    words: Sequence[str]
    codes: np.ndarray[Any, Any]

    @classmethod
    def of(cls, values: Sequence[str | None]) -> Categories:
        """From one word per row; None means missing."""
        words = [word for word in dict.fromkeys(values) if word is not None]
        places: dict[str | None, int] = {word: place for place, word in enumerate(words)}
        codes = np.fromiter((places.get(value, -1) for value in values), np.int64, len(values))
        return cls(words, codes)


Column = np.ndarray[Any, Any] | Categories
"""Numbers (n,) with NaN where one is missing, or categories."""


def table(name: str, columns: Sequence[Column]) -> np.ndarray[Any, Any]:
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


def class_column(name: str, column: Column) -> Any:
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


def _encoded(column: Column) -> Any:
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
    return (column.codes[:, None] == places).astype(np.float64)
