"""The columns of a file as they were read, by name, and which of them is the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.data.table import Categories, Column
from discreet.errors import InvalidInput
from discreet.validate import nearest


@dataclass(frozen=True, eq=False)
class SourceColumns:
    """Titles and columns of the features, and the title of the class.

    ``header`` is False where a file names no columns; they are then called column 1, column 2, …
    """

    titles: tuple[str, ...]
    columns: tuple[Column, ...] = field(repr=False)
    target: str
    header: bool = True

    def by_name(self) -> dict[str, np.ndarray[Any, Any]]:
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
    """The features of the file ``name``, and its class column: the last unless it is said."""
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


def _values(column: Column) -> np.ndarray[Any, Any]:
    if isinstance(column, Categories):
        return np.asarray(np.asarray([*column.words, None], dtype=object)[column.codes])
    return column
