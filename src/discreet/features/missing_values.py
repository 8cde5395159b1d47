"""Values that are missing, and what a field may declare for them.

A missing value is an absent key, None, NaN, or the NaT and NA of NumPy and pandas. It is refused
unless the field declares a ``stand_in``, a legal value that is used instead, or an ``indicator``:
one coordinate that is 1 for a missing value, when all others of the field are 0.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from discreet.errors import InvalidInput
from discreet.validate import instance


class Fillable(Protocol):
    """What the check of a declaration reads of a field."""

    @property
    def name(self) -> str: ...
    @property
    def stand_in(self) -> Any: ...
    @property
    def indicator(self) -> bool: ...
    @property
    def width(self) -> int: ...
    def write(self, value: Any, out: np.ndarray[Any, Any], at: int) -> None: ...


def is_missing(value: Any) -> bool:
    """Whether there is no value.

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
