"""A bound as the sum of its named terms, so that one can ask which of them rules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """Terms in the order of the paper's equation; ``total`` is the bound.

    >>> bound = Bound({"regression": 9.0, "contexts": 1.0})
    >>> bound.total, bound.dominant
    (10.0, 'regression')
    """

    terms: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.terms.values())

    @property
    def dominant(self) -> str:
        """The name of the largest term."""
        return max(self.terms, key=self.terms.__getitem__)
