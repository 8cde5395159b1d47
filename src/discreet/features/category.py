"""A column with a declared list of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.errors import InvalidInput
from discreet.features.column_values import LARGEST, Field, whole_number
from discreet.text import listed
from discreet.types import NumpyArray, added_later
from discreet.validate import instance

LISTED = 20
"""The number of values that an error lists."""


@dataclass(frozen=True)
class Category(Field):
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

    def __post_init__(self) -> None:
        # Python would read a single word as a list of letters.
        given = getattr(self.values, "tolist", lambda: self.values)()  # an array or a series
        several = isinstance(given, Sequence) and not isinstance(given, str)
        values = tuple(given) if several else ()
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
        self.check_declaration()

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.values) + self.other

    @cached_property
    def _slots(self) -> dict[Any, int]:
        return {value: slot for slot, value in enumerate(self.values)}

    @cached_property
    def of_words(self) -> bool:
        """Return whether values are words, not whole numbers."""
        return isinstance(self.values[0], str)

    def write(self, value: object, out: NumpyArray, at: int) -> None:
        key: Any = value if isinstance(value, str) else None
        if not self.of_words:
            key = whole_number(value)
        slot = self._slots.get(key)
        if slot is None and key is not None and self.other:
            slot = len(self.values)
        if slot is None:
            # The nearest of the values would reveal something of this one.
            step = "Compare its type, spelling, capitals and blanks with the list."
            raise self.refusal(value, step)
        out[at + slot] = 1.0

    @property
    def rule(self) -> str:
        kind = "word" if self.of_words else "whole number"
        either = f", or any other {kind}" if self.other else ""
        return f"one of [{listed([repr(value) for value in self.values], LISTED)}]{either}"
