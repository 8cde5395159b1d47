"""How much privacy may be spent on one record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.text import guarantee_text
from discreet.validate import in_range


@dataclass(frozen=True)
class Budget:
    """(ε, δ)-differential privacy under replacement of one record; ε = ∞ means no privacy.

    Args:
        epsilon: Above 0; ``Budget.none()`` is ε = ∞.
        delta: In [0, 1); keep it well below one over the number of records. 0 is pure.

    >>> Budget(epsilon=1.0, delta=1e-5)
    Budget(epsilon=1.0, delta=1e-05)
    >>> Budget.none().private
    False
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        epsilon: Any = self.epsilon
        if isinstance(epsilon, str):
            raise InvalidInput(
                f"epsilon must be a number; got the text {epsilon!r}. Write it without quotes."
            )
        number = isinstance(epsilon, (int, float, np.integer, np.floating))
        if isinstance(epsilon, bool) or not number or not epsilon > 0:
            raise InvalidInput(
                f"epsilon must be above 0; got {epsilon!r}. "
                "Without privacy it is Budget.none(), or --epsilon inf."
            )
        in_range("delta", self.delta, 0.0, 1.0, "Choose it well below 1 / records.", open_high=True)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))

    @classmethod
    def none(cls) -> Budget:
        """The non-private setting."""
        return cls(epsilon=math.inf, delta=0.0)

    @property
    def text(self) -> str:
        """``ε = 1, δ = 1e-05``."""
        return guarantee_text(self.epsilon, self.delta)

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)
