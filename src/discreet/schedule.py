"""Doubling batches: the public clock of every algorithm."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.validate import in_range, whole

LONGEST = 2**22
"""No batch is longer: exact integer sums hold so many records (docs/privacy/arithmetic.md)."""


@dataclass(frozen=True)
class Doubling:
    """Batch m has ``first``·2^(m−1) slots, at most 2²²; the horizon cuts the last one short.

    The number of rounds before batch m is the sum of the earlier lengths. With a known
    horizon T the last batch is never fitted, so there are exactly M − 1 fits; without one
    every batch is. [paper, Algorithm 2]

    >>> Doubling(horizon=10).lengths()
    [1, 2, 4, 3]
    >>> Doubling(first=4).length(3), Doubling(first=4).start(3)
    (16, 12)
    """

    first: int = 1
    horizon: int | None = None

    def __post_init__(self) -> None:
        whole("first_batch", self.first, 1)
        in_range("first_batch", self.first, 1, LONGEST)
        if self.horizon is not None:
            whole("horizon", self.horizon, 1, "Give the number of rounds, or None if it is open.")

    def nominal(self, batch: int) -> int:
        """B_m, before the horizon cuts it: the length that enters learning rates."""
        return min(self.first << min(batch - 1, LONGEST.bit_length()), LONGEST)

    def start(self, batch: int) -> int:
        """Rounds that are over when batch m begins: Σ_{j<m} B_j."""
        doublings = min(batch - 1, max(0, (LONGEST - 1) // self.first).bit_length())
        return self.first * ((1 << doublings) - 1) + (batch - 1 - doublings) * LONGEST

    def length(self, batch: int) -> int:
        """Slots of batch m: B_m, or what the horizon leaves of it (0 after the end)."""
        nominal = self.nominal(batch)
        if self.horizon is None:
            return nominal
        return max(0, min(nominal, self.horizon - self.start(batch)))

    def fitted(self, batch: int) -> bool:
        """Whether batch m is ever fitted: all but the last one before a known horizon."""
        return self.horizon is None or self.start(batch + 1) < self.horizon

    def lengths(self) -> list[int]:
        """All batch lengths up to a known horizon."""
        if self.horizon is None:
            return []
        lengths: list[int] = []
        while self.length(len(lengths) + 1) > 0:
            lengths.append(self.length(len(lengths) + 1))
        return lengths
