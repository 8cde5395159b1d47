"""A column as its distinct values: words are read once each, not once a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

LARGEST = 2**53 - 1
"""The largest whole number that every client reads exactly."""


def whole_number(value: Any) -> int | None:
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


def distinct_values(values: np.ndarray[Any, Any]) -> tuple[Iterable[Any], np.ndarray[Any, Any]]:
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


def write_one_hot(
    place: Callable[[Any], int], values: np.ndarray[Any, Any], out: np.ndarray[Any, Any]
) -> None:
    """A one in the column that ``place`` gives for the value of each row."""
    distinct, codes = distinct_values(values)
    places = np.fromiter(map(place, distinct), np.intp)
    out[np.arange(len(values)), places[codes]] = 1.0
