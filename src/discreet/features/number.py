"""A column of numbers with a declared range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.column_values import Field
from discreet.types import NumpyArray, added_later
from discreet.validate import as_float, instance


def _number(value: object) -> float:
    """The value as a float; NaN for a word, a flag or a number too large for a float."""
    return math.nan if isinstance(value, (bool, np.bool_)) else as_float(value)


@dataclass(frozen=True)
class Number(Field):
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

    width = 1
    rule = "a finite number"

    def __post_init__(self) -> None:
        for option in ("clip", "log"):
            instance(f"{option} of {self.name!r}", getattr(self, option), (bool,))
        wide = 0 < _number(self.high) - _number(self.low) < math.inf  # false for NaN, ∞ − ∞
        if not wide or (self.log and not (self.low > 0 and self._ends[0] < self._ends[1])):
            log = ", above 0 and not too narrow for log" * self.log
            raise InvalidInput(
                f"range of {self.name!r} must be two finite numbers low < high{log}; "
                f"got {self.low!r}, {self.high!r}. Declare a public range."
            )
        self.check_declaration()

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def write(self, value: object, out: NumpyArray, at: int) -> None:
        number = value if type(value) is float else _number(value)
        if not math.isfinite(number):
            raise self.refusal(value, "Send one number, neither text nor a flag.")
        if self.clip:
            number = min(max(number, self.low), self.high)
        elif not self.low <= number <= self.high:
            step = "Clamp it yourself, or declare the number with clip=True."
            raise self.refusal(value, step, f"in [{self.low:g}, {self.high:g}]", "a number outside")
        low, high = self._ends
        place = math.log(number) if self.log else number
        out[at] = 2.0 * ((place - low) / (high - low)) - 1.0

    def write_column(self, values: NumpyArray, out: NumpyArray) -> None:
        if values.dtype.kind not in "iuf":
            super().write_column(values, out)
            return
        numbers = values.astype(np.float64)
        inside = np.clip(numbers, self.low, self.high)
        if not np.isfinite(numbers).all() or not (self.clip or (inside == numbers).all()):
            raise InvalidInput("some row is out of range")
        low, high = self._ends
        places = np.log(inside) if self.log else inside
        out[:, 0] = 2.0 * ((places - low) / (high - low)) - 1.0
