"""A column with a declared list of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.column_values import (
    LARGEST,
    check_declaration,
    refusal,
    whole_number,
    write_one_hot,
)
from discreet.types import NumpyArray, added_later
from discreet.validate import instance

LISTED = 20
"""The number of values that an error lists."""


@dataclass(frozen=True)
class Category:
    """One of ``values``, a declared list of words or of whole numbers, one-hot.

    ``other`` adds a slot for any other word (or any other whole number).

    ``name`` is the key or the column. A missing value is refused, unless ``stand_in`` replaces it
    or ``indicator`` adds a feature for it.

    >>> import numpy as np
    >>> out = np.zeros(3)
    >>> Category("device", ["phone", "desk"], other=True).write("watch", out, 0)
    >>> out
    array([0., 0., 1.])
    """

    name: str
    values: tuple[str | int, ...]
    other: bool = False
    stand_in: str | int | None = added_later(None)
    indicator: bool = added_later(False)

    units = 1

    def __post_init__(self) -> None:
        # Python would read a single word as a list of letters.
        given = getattr(self.values, "tolist", lambda: self.values)()  # an array or a series
        listed = isinstance(given, Sequence) and not isinstance(given, str)
        values = tuple(given) if listed else ()
        words = all(isinstance(value, str) for value in values)
        numbers = [whole_number(value) for value in values]
        whole = all(number is not None and abs(number) <= LARGEST for number in numbers)
        if not values or not (words or whole) or len(set(values)) != len(values):
            raise InvalidInput(
                f"values of {self.name!r} must be a list of distinct words, or of distinct whole "
                f"numbers; got {self.values!r}. List every category once."
            )
        object.__setattr__(self, "values", values if words else tuple(numbers))
        instance(f"other of {self.name!r}", self.other, (bool,))
        check_declaration(self)

    @property
    def width(self) -> int:
        return len(self.values) + self.other

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def of_words(self) -> bool:
        """Return whether values are words, not whole numbers."""
        return isinstance(self.values[0], str)

    def write(self, value: object, out: NumpyArray, at: int) -> None:
        """Put a one at the slot of a value."""
        out[at + self._place(value)] = 1.0

    def write_column(self, values: NumpyArray, out: NumpyArray) -> None:
        """Put a one at the slots of a column into ``out`` (n, width)."""
        write_one_hot(self._place, values, out)

    def _place(self, value: object) -> int:
        known = isinstance(value, str)
        key = value
        if not self.of_words:
            key = whole_number(value)
            known = key is not None
        place = self._places.get(key) if known else None
        if place is None and known and self.other:
            place = len(self.values)
        if place is None:
            raise refusal(self.name, self.rule, value, self._step(value))
        return place

    @property
    def rule(self) -> str:
        """The rule for a value, as errors state it."""
        kind = "word" if self.of_words else "whole number"
        more = f" and {len(self.values) - LISTED} more" if len(self.values) > LISTED else ""
        either = f", or any other {kind}" if self.other else ""
        return f"one of {list(self.values[:LISTED])}{more}{either}"

    def _step(self, value: object) -> str:
        if isinstance(value, np.ndarray):
            return "Send one value and not an array, such as array.item() or array[row]."
        if not self.of_words:
            return "Send a whole number, not a string." if isinstance(value, str) else "Choose one."
        if not isinstance(value, str):
            return f"Send a string, not {type(value).__name__}."
        # The nearest of the values would reveal something of this one.
        return "Compare its spelling, capitals and blanks with the list."
