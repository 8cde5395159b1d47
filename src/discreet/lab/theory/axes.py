"""What the scaling experiments vary: one axis at a time, from one common cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from discreet.lab import theory
from discreet.lab.theory.known_bandits import worst_gap

GAPS = {"easy": 1 / 2, "gap 1/8": 1 / 8, "gap 1/32": 1 / 32}
"""Instances that do not depend on the horizon."""
ITEMS = "items"
"""Actions with features: one set of weights for all, on a truth that does not depend on T."""


@dataclass(frozen=True)
class Cell:
    """One point of an axis; ε matters to the private algorithms only."""

    T: int = 2**13
    A: int = 4
    F: int = 64
    epsilon: float = 1.0
    delta: float = 0.05
    instance: str = "hard"

    def gap(self, epsilon: float) -> float:
        """That of the instance; the hard one shrinks with the horizon."""
        hard = worst_gap(self.T, self.A, self.F, epsilon)
        return GAPS.get(self.instance, hard)


@dataclass(frozen=True)
class Axis:
    """What varies, over which values, on which instances; ``x`` is what regret is a power of."""

    name: str
    values: tuple[float, ...]
    words: str
    x: Callable[[float], float] = float
    instances: tuple[str, ...] = ("hard",)
    private_only: bool = False

    def cell(self, value: float, instance: str) -> Cell:
        given: Any = value if self.name == "epsilon" else int(value)
        return replace(Cell(instance=instance), **{self.name: given})

    @property
    def algorithms(self) -> list[str]:
        """Those that it concerns."""
        return [name for name in theory.STATEMENTS if not self.private_only or "private" in name]


def _axes(T: Any, A: Any, F: Any, epsilon: Any) -> tuple[Axis, ...]:
    return (
        Axis("T", tuple(T), "rounds T", instances=("hard", *GAPS, ITEMS)),
        Axis("A", tuple(A), "actions A", instances=("hard", ITEMS)),
        Axis("F", tuple(F), "functions |F|", x=math.log),
        Axis("epsilon", tuple(epsilon), "ε", x=lambda each: 1 + 1 / each, private_only=True),
    )


AXES = _axes(
    T=(2.0**k for k in range(8, 18)),
    A=(2, 4, 8, 16, 32),
    F=(2, 4, 16, 64, 256, 1024, 4096),
    epsilon=(0.1, 0.2, 0.5, 1, 2, 5, 10),
)
QUICK = _axes(T=(64, 128, 256, 512), A=(2, 4), F=(4, 16), epsilon=(0.5, 2))
