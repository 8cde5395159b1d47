"""A column that is true or false."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.column_values import check_declaration, refusal
from discreet.types import NumpyArray, added_later


@dataclass(frozen=True)
class Flag:
    """True or false (or the numbers 1 and 0), mapped to +1 and −1.

    ``name`` is the key or the column. A missing value is refused, unless ``stand_in`` replaces it
    or ``indicator`` adds a feature for it.

    >>> out = np.zeros(1)
    >>> Flag("member").write(False, out, 0)
    >>> out
    array([-1.])
    """

    name: str
    stand_in: bool | None = added_later(None)
    indicator: bool = added_later(False)

    width = 1
    units = 1
    rule = "true or false, or 1 or 0"

    def __post_init__(self) -> None:
        check_declaration(self)
        if self.stand_in is not None:
            object.__setattr__(self, "stand_in", bool(self.stand_in))

    def write(self, value: object, out: NumpyArray, at: int) -> None:
        """Put the coordinate of a value at its place."""
        known = isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))
        if not known or (value != 0 and value != 1):
            step = "Send true or false, not a word." if isinstance(value, str) else "Send one."
            raise refusal(self.name, self.rule, value, step)
        out[at] = 1.0 if value else -1.0

    def write_column(self, values: NumpyArray, out: NumpyArray) -> None:
        """Put the coordinates of a column into ``out`` (n, 1)."""
        if values.dtype.kind not in "biuf":
            for place, value in enumerate(values):
                self.write(value, out[place], 0)
            return
        if not bool(((values == 0) | (values == 1)).all()):
            raise InvalidInput("some row is neither")
        out[:, 0] = np.where(values, 1.0, -1.0)
