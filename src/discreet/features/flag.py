"""A column that is true or false."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.features.column_values import Field
from discreet.types import NumpyArray, added_later


@dataclass(frozen=True)
class Flag(Field):
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
    rule = "true or false, or 1 or 0"

    def __post_init__(self) -> None:
        self.check_declaration()
        if self.stand_in is not None:
            object.__setattr__(self, "stand_in", bool(self.stand_in))

    def write(self, value: object, out: NumpyArray, at: int) -> None:
        known = isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))
        if not known or (value != 0 and value != 1):
            raise self.refusal(value, "Send true or false, not a word.")
        out[at] = 1.0 if value else -1.0
