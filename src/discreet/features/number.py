"""A column of numbers with a declared range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.column_values import check_declaration, refusal
from discreet.types import NumpyArray, added_later
from discreet.validate import instance


def _number(value: object) -> float:
    """The value as a float; NaN for a word, a flag or a number too large for a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


@dataclass(frozen=True)
class Number:
    """A number in [low, high], mapped to [−1, 1].

    With ``log`` its logarithm is mapped, for amounts whose ratios matter; low is then above 0.
    ``clip`` clamps a number outside the range instead of refusing it.

    ``name`` is the key or the column. A missing value is refused, unless ``stand_in`` replaces it
    or ``indicator`` adds a feature for it.

    >>> out = np.zeros(1)
    >>> Number("income", 1_000, 1_000_000, log=True).write(10_000, out, 0)
    >>> out.round(6)
    array([-0.333333])
    """

    name: str
    low: float
    high: float
    clip: bool = False
    log: bool = added_later(False)
    stand_in: float | None = added_later(None)
    indicator: bool = added_later(False)

    def __post_init__(self) -> None:
        for option in ("clip", "log"):
            instance(f"{option} of {self.name!r}", getattr(self, option), (bool,))
        if not 0 < _number(self.high) - _number(self.low) < math.inf:  # false for NaN, ∞ − ∞
            raise InvalidInput(
                f"range of {self.name!r} must be two finite numbers low < high; "
                f"got {self.low!r}, {self.high!r}. Declare a public range."
            )
        if self.log and not (self.low > 0 and self._ends[0] < self._ends[1]):
            raise InvalidInput(
                f"range of {self.name!r} must be above 0 for a logarithm, and not too narrow; "
                f"got {self.low!r}, {self.high!r}. Declare a low above 0, or leave log out."
            )
        check_declaration(self)

    width = 1
    units = 1

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def write(self, value: object, out: NumpyArray, at: int) -> None:
        """Put the coordinate of a value at its place."""
        number = value if type(value) is float else _number(value)
        if not math.isfinite(number):
            raise self._no_number(value)
        if self.clip:
            number = min(max(number, self.low), self.high)
        elif not self.low <= number <= self.high:
            raise refusal(
                self.name,
                f"in [{self.low:g}, {self.high:g}]",
                value,
                "Clamp it yourself, or declare the number with clip=True.",
                "a number outside",
            )
        low, high = self._ends
        place = math.log(number) if self.log else number
        out[at] = 2.0 * ((place - low) / (high - low)) - 1.0

    def write_column(self, values: NumpyArray, out: NumpyArray) -> None:
        """Put the coordinates of a column into ``out`` (n, 1)."""
        if values.dtype.kind not in "iuf":
            for place, value in enumerate(values):
                self.write(value, out[place], 0)
            return
        numbers = values.astype(np.float64)
        if not bool(np.isfinite(numbers).all()):
            raise InvalidInput("some row is infinite")
        if self.clip:
            numbers = np.clip(numbers, self.low, self.high)
        elif not bool(((numbers >= self.low) & (numbers <= self.high)).all()):
            raise InvalidInput("some row is out of range")
        low, high = self._ends
        places = np.log(numbers) if self.log else numbers
        out[:, 0] = 2.0 * ((places - low) / (high - low)) - 1.0

    @property
    def rule(self) -> str:
        """The rule for a value, as errors state it."""
        return "a finite number"

    def _no_number(self, value: object) -> InvalidInput:
        """The error for what is not a finite number, with a next step that fits it."""
        step = f"Send one number, not a {type(value).__name__}."
        if isinstance(value, str):
            step = "Send a number, not a string."
        elif isinstance(value, (bool, np.bool_)):
            step = "Send a number, or declare the feature as a Flag."
        elif isinstance(value, (int, float, np.integer, np.floating)):
            step = "Send a number that is not too large for a float."
        return refusal(self.name, self.rule, value, step)
