"""Streams on which learners are attacked: which record differs, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.audit.subjects import DEFAULT_PLAN

_FAR = [-0.75, math.sqrt(7.0) / 4]
"""Unit context at c·c' = −¾ of (1, 0): with losses 1 and 0 the worst pair of one action."""


@dataclass(frozen=True)
class Version:
    """One possible content of the record in question; ``loss`` None is silence."""

    context: tuple[float, ...]
    loss: float | None


@dataclass(frozen=True)
class Scenario:
    """Two streams that differ in the record of one slot, and the mechanism that meets them."""

    name: str
    slot: int
    first: Version
    second: Version
    interrupted: bool = False
    mechanism: str = "ridge-structured"


_USUAL = (Version((1.0, 0.0), 1.0), Version(tuple(_FAR), 0.0))
_OPPOSITE = Version((-1.0, 0.0), 0.0)
_ACROSS = (_USUAL[0], Version((0.0, 1.0), 0.0))
"""The worst pair of one action where responses have half the noise."""
SCENARIOS = (
    Scenario("a record of the first batch", 0, *_USUAL),
    Scenario("a record of the last batch that is fitted", 4, *_USUAL),
    Scenario("a record of the batch that is never fitted", 7, *_USUAL),
    Scenario("opposite contexts, which may change the action", 3, _USUAL[0], _OPPOSITE),
    Scenario("an answer against silence", 1, _USUAL[0], Version((1.0, 0.0), None)),
    Scenario("through a save, a crash and a reload", 0, *_USUAL, interrupted=True),
    Scenario("a record of the last batch that is fitted", 4, *_ACROSS, mechanism=DEFAULT_PLAN),
    Scenario("through a save, a crash and a reload", 0, *_ACROSS, True, DEFAULT_PLAN),
)
