"""Values of a column: missing ones, distinct ones, and the errors for illegal ones.

A missing value is an absent key, None, NaN, or the NaT and NA of NumPy and pandas. It is refused
unless the field declares a ``stand_in``, a legal value that is used instead, or an ``indicator``:
one coordinate that is 1 for a missing value, when all others of the field are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from discreet.errors import InvalidInput, kind_of
from discreet.types import NumpyArray
from discreet.validate import instance


class Fillable(Protocol):
    """The part of a field that the check of its declaration reads."""

    @property
    def name(self) -> str: ...
    @property
    def stand_in(self) -> Any: ...
    @property
    def indicator(self) -> bool: ...
    @property
    def width(self) -> int: ...
    def write(self, value: object, out: NumpyArray, at: int) -> None: ...


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


def check_declaration(field: Fillable) -> None:
    """Refuse a field without a name, with both ways to fill a gap, or with an illegal stand-in."""
    if not isinstance(field.name, str) or not field.name:
        raise InvalidInput(
            f"name of a field must be a word; got {field.name!r}. Use the name of the column."
        )
    instance(f"indicator of {field.name!r}", field.indicator, (bool,))
    if field.stand_in is None:
        return
    if field.indicator:
        raise InvalidInput(
            f"stand_in of {field.name!r} must be left out with indicator=True; "
            f"got {field.stand_in!r}. Choose one of them."
        )
    try:
        if is_missing(field.stand_in):
            raise InvalidInput("missing")
        field.write(field.stand_in, np.zeros(field.width), 0)
    except InvalidInput:
        raise InvalidInput(
            f"stand_in of {field.name!r} must be a legal value of the field; "
            f"got {field.stand_in!r}. Choose one that a context may have."
        ) from None


def refusal(name: str, rule: str, value: object, step: str, got: str | None = None) -> InvalidInput:
    """The error for a value that breaks the rule of its feature; ``got`` describes the value
    where its kind does not."""
    return InvalidInput(f"feature {name!r} must be {rule}; got {got or kind_of(value)}. {step}")


def missing(name: str, rule: str) -> InvalidInput:
    """The error for None, NaN and their like in a feature that declares nothing for them."""
    return InvalidInput(
        f"feature {name!r} must be {rule}; got a missing value. "
        "Send a value, or declare the feature with stand_in=… or indicator=True."
    )


LARGEST = 2**53 - 1
"""The largest whole number that every client reads exactly."""


def whole_number(value: object) -> int | None:
    """The value as an int; None for a word, a flag or a fraction.

    A float may be whole: a frame holds a column of whole numbers with gaps as floats.

    >>> [whole_number(value) for value in (3, 3.0, 2.5, True, "3")]
    [3, 3, None, None, None]
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    return None


def distinct_values(values: NumpyArray) -> tuple[Iterable[Any], NumpyArray]:
    """The distinct values, and for each row the place of its value among them."""
    if values.dtype.kind in "biuf":
        return np.unique(values, return_inverse=True)
    # With their types, since True, 1 and 1.0 are equal.
    keys = list(zip(map(type, values), values, strict=True))
    try:
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    except TypeError:  # lists and the like, which are refused one by one
        return values, np.arange(len(values))
    codes = np.fromiter(map(places.__getitem__, keys), np.intp, len(keys))
    return [value for _, value in places], codes


def write_one_hot(place: Callable[[Any], int], values: NumpyArray, out: NumpyArray) -> None:
    """A one in the column that ``place`` gives for the value of each row."""
    distinct, codes = distinct_values(values)
    places = np.fromiter(map(place, distinct), np.intp)
    out[np.arange(len(values)), places[codes]] = 1.0
