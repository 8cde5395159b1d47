"""A public description of a context: names, ranges, categories -> features.

The schema is fixed before the first person arrives and scales by declared ranges, never by
data: a scale that is learned from data would itself be a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.unit_ball import with_bias
from discreet.validate import instance, nearest


def _number(value: Any) -> float:
    """The value as a float; NaN for a word, a flag or a number too large for a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


@dataclass(frozen=True)
class Number:
    """A number in [low, high], mapped to [−1, 1]. ``clip`` clamps instead of refusing."""

    name: str
    low: float
    high: float
    clip: bool = False

    def __post_init__(self) -> None:
        if not 0 < _number(self.high) - _number(self.low) < math.inf:  # false for NaN, ∞ − ∞
            raise InvalidInput(
                f"range of {self.name!r} must be two finite numbers low < high; "
                f"got {self.low!r}, {self.high!r}. Declare a public range."
            )

    @property
    def width(self) -> int:
        return 1

    def write(self, value: Any, out: np.ndarray[Any, Any]) -> None:
        number = _number(value)
        if not math.isfinite(number):
            raise InvalidInput(
                f"feature {self.name!r} must be a finite number; got {value!r}. "
                "Send a JSON number, not a string."
            )
        if self.clip:
            number = min(max(number, self.low), self.high)
        if not self.low <= number <= self.high:
            raise InvalidInput(
                f"feature {self.name!r} must be in [{self.low:g}, {self.high:g}]; got {value!r}. "
                "Clamp it yourself, or declare the number with clip=True."
            )
        out[0] = 2.0 * ((number - self.low) / (self.high - self.low)) - 1.0


@dataclass(frozen=True)
class Category:
    """One of a declared list of words, one-hot; ``other`` adds a slot for any other word."""

    name: str
    values: tuple[str, ...]
    other: bool = False

    def __post_init__(self) -> None:
        # Python would read a single word as a list of letters.
        values = () if isinstance(self.values, str) else tuple(self.values)
        words = all(isinstance(value, str) for value in values)
        if not values or not words or len(set(values)) != len(values):
            raise InvalidInput(
                f"values of {self.name!r} must be a list of distinct words; got {self.values!r}. "
                "Declare every category once."
            )
        object.__setattr__(self, "values", values)

    @property
    def width(self) -> int:
        return len(self.values) + self.other

    def write(self, value: Any, out: np.ndarray[Any, Any]) -> None:
        if isinstance(value, str) and value in self.values:
            out[self.values.index(value)] = 1.0
        elif isinstance(value, str) and self.other:
            out[-1] = 1.0
        else:
            raise InvalidInput(
                f"feature {self.name!r} must be one of {list(self.values)}; got {value!r}. "
                f"{nearest(value, self.values)}"
            )


Field = Number | Category

FEW_NUMBERS = 12
"""Up to so many numbers their squares are worth their noise: docs/results/defaults.md."""


@dataclass(frozen=True)
class Schema:
    """Contexts are dicts with exactly these fields.

    Every field contributes a vector of length at most 1. With ``squares`` each number contributes
    (3x² − 1)/2 as well, so that the best value may lie in the middle of a range; None means: for up
    to 12 numbers. Dividing by √(all of these) puts the context into the unit ball without a
    projection that depends on the person.

    >>> schema = Schema([Number("age", 0, 100), Category("device", ["phone", "desk"])])
    >>> schema.p
    5
    >>> (schema.map({"age": 75, "device": "desk"}) * 6**0.5).round(6)
    array([[ 1.732051,  0.5     , -0.125   ,  0.      ,  1.      ]])
    """

    fields: tuple[Field, ...]
    squares: bool | None = None

    def __init__(self, fields: Sequence[Field], squares: bool | None = None) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        if squares is None:
            squares = len(self._numbers) <= FEW_NUMBERS
        object.__setattr__(self, "squares", instance("squares", squares, (bool,)))
        names = [field.name for field in self.fields]
        if not names or len(set(names)) != len(names):
            raise InvalidInput(
                f"fields must be one or more, with distinct names; got {names}. Rename one."
            )

    @property
    def p(self) -> int:
        """Number of features, bias included."""
        return 1 + sum(field.width for field in self.fields) + len(self._squared)

    @property
    def _numbers(self) -> list[Field]:
        return [field for field in self.fields if isinstance(field, Number)]

    @property
    def _squared(self) -> list[Field]:
        return self._numbers if self.squares else []

    def map(self, contexts: Any) -> np.ndarray[Any, Any]:
        """One dict, or a sequence of dicts -> features (n, p)."""
        many = isinstance(contexts, Iterable) and not self.is_single(contexts)
        rows = list(contexts) if many else [contexts]
        encoded = np.zeros((len(rows), self.p - 1))
        for row, out in zip(rows, encoded, strict=True):
            self._write(row, out)
        return with_bias(encoded / math.sqrt(len(self.fields) + len(self._squared)))

    def is_single(self, contexts: Any) -> bool:
        """Whether this is one context rather than a list of them."""
        return isinstance(contexts, Mapping)

    def _write(self, row: Any, out: np.ndarray[Any, Any]) -> None:
        if not isinstance(row, Mapping):
            raise InvalidInput(
                f"context must be a dict of features; got {type(row).__name__}. "
                "Pass {name: value} with the names of the schema."
            )
        names = [field.name for field in self.fields]
        for name in row:
            if name not in names:
                raise InvalidInput(
                    f"feature {name!r} must be in the schema; it is unknown. {nearest(name, names)}"
                )
        start = 0
        for field in self.fields:
            if field.name not in row:
                raise InvalidInput(
                    f"feature {field.name!r} must be given; it is missing. "
                    "Send every feature of the schema."
                )
            field.write(row[field.name], out[start : start + field.width])
            start += field.width
            if self.squares and isinstance(field, Number):
                out[start] = 1.5 * out[start - 1] ** 2 - 0.5
                start += 1
