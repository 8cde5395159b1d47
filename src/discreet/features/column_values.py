"""Base of all kinds of columns: values, missing values, and the errors for illegal ones.

A missing value is an absent key, None, NaN, or the NaT and NA of NumPy and pandas. It is refused
unless the field declares a ``stand_in``, a legal value that is used instead, or an ``indicator``:
one coordinate that is 1 for a missing value, when all others of the field are 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidInput, kind_of
from discreet.types import NumpyArray
from discreet.validate import instance

LARGEST = 2**53 - 1
"""The largest whole number that every client reads exactly."""


class Field(ABC):
    """A column: a public rule that writes each value as a vector of squared length ``units``."""

    name: str
    width: int
    stand_in: Any
    indicator: bool
    units: int = 1

    @property
    @abstractmethod
    def rule(self) -> str:
        """The rule for a value, as errors state it."""

    @abstractmethod
    def write(self, value: object, out: NumpyArray, at: int) -> None:
        """Write the coordinates of a value from ``at`` on, into zeros."""

    def write_column(self, values: NumpyArray, out: NumpyArray) -> None:
        """Write the coordinates of a column into ``out`` (n, width)."""
        distinct, codes = _distinct_values(values)
        rows = np.zeros((len(distinct), self.width))
        for value, row in zip(distinct, rows, strict=True):
            self.write(value, row, 0)
        out[:] = rows[codes]

    def check_declaration(self) -> None:
        """Refuse a field without a name, with both ways to fill a gap, or an illegal stand-in."""
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInput(
                f"name of a field must be a word; got {self.name!r}. Use the name of the column."
            )
        instance(f"indicator of {self.name!r}", self.indicator, (bool,))
        if self.stand_in is None:
            return
        try:
            if self.indicator or is_missing(self.stand_in):
                raise InvalidInput("two rules for a gap, or none")
            self.write(self.stand_in, np.zeros(self.width), 0)
        except InvalidInput:
            raise InvalidInput(
                f"stand_in of {self.name!r} must be a legal value of the field, without "
                f"indicator=True; got {self.stand_in!r}. Choose one that a context may have."
            ) from None

    def refusal(self, value: object, step: str, rule: str = "", got: str = "") -> InvalidInput:
        """Return the error for a value that breaks the rule; ``got`` describes a legal kind."""
        words = f"{rule or self.rule}; got {got or kind_of(value)}. {step}"
        return InvalidInput(f"feature {self.name!r} must be {words}")

    def filled(self) -> Any:
        """Return the value that replaces a missing one; raise if none is declared."""
        if self.stand_in is None:
            step = "Send a value, or declare the feature with stand_in=… or indicator=True."
            raise self.refusal(None, step, got="a missing value")
        return self.stand_in


def is_missing(value: object) -> bool:
    """Return whether there is no value.

    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT"), 0, "", [])]
    [True, True, True, False, False, False]
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        return False
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):  # pandas.NA has no truth value; nor has an array
        return kind.__name__ == "NAType"


def whole_number(value: object) -> int | None:
    """Return the value as an int; None for a word, a flag or a fraction.

    A float may be whole: a frame holds a column of whole numbers with gaps as floats.

    >>> [whole_number(value) for value in (3, 3.0, 2.5, True, "3")]
    [3, 3, None, None, None]
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    return None


def _distinct_values(values: NumpyArray) -> tuple[Sequence[Any] | NumpyArray, NumpyArray]:
    """Return the distinct values, and for each row the index of its value among them."""
    if values.dtype.kind in "biuf":
        return np.unique(values, return_inverse=True)
    # With their types, since True, 1 and 1.0 are equal.
    keys = list(zip(map(type, values), values, strict=True))
    try:
        index = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    except TypeError:  # lists and the like, which are refused one by one
        return values, np.arange(len(values))
    codes = np.fromiter(map(index.__getitem__, keys), np.intp, len(keys))
    return [value for _, value in index], codes
