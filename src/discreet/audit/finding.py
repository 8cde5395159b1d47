"""Findings of an audit: one row per question, with a verdict."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

HOLDS, WEAK, FAILS = "holds", "weak", "FAILS"
POWER = 0.7
"""An attack that shows less than this share of what it should has lost its power."""
ROUNDING = 1e-6
"""Relative tolerance for floating-point rounding where two exact numbers are compared."""


@dataclass(frozen=True)
class Finding:
    """One question about one mechanism, and its answer.

    ``claimed``, ``exact``, ``measured``, ``attainable`` and ``halved`` are values of ε: what is
    promised, what is true by computation, what an attacker proved, what the same attack should
    prove of the mechanism as declared, and what it would have proved of half the noise. A number
    that the question does not have is None. ``statements`` counts what was tested at ``alpha``.
    """

    part: str
    subject: str
    question: str
    verdict: str
    said: str
    claimed: float | None = None
    exact: float | None = None
    measured: float | None = None
    attainable: float | None = None
    halved: float | None = None
    trials: int = 0
    alpha: float = 0.0
    level: float | None = None

    @property
    def failed(self) -> bool:
        return self.verdict == FAILS

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def worst(verdicts: Collection[str]) -> str:
    """The gravest of the verdicts; ``holds`` if there is none."""
    return next((each for each in (FAILS, WEAK) if each in verdicts), HOLDS)


def exact_verdict(found: float, claimed: float) -> str:
    """A computed bound must not exceed the claim."""
    return HOLDS if found <= claimed * (1.0 + ROUNDING) else FAILS


def measured_verdict(measured: float, claimed: float, enough: float = 0.0) -> str:
    """A proven lower bound above the claim refutes it; below ``enough`` the attack is broken."""
    if measured > claimed:
        return FAILS
    return WEAK if measured < enough else HOLDS
