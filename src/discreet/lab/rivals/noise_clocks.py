"""Public clocks of a run: the rounds at which noise is added and the policy changes.

The sums of the first t people carry some independent units of noise: one per node of a tree, one
per person, one per batch. A clock says how many, and which of them a later sum shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.design.schedule import Schedule

Draw = Callable[[int], Any]
"""Standard normal draws of one unit of noise, by its number."""

NODES = 2**23
"""Numbers of nodes on one level of a tree: more than a run has rounds."""


class NoiseClock(Protocol):
    """Accumulation of noise over the rounds of a run."""

    def ends(self, rounds: int) -> list[int]:
        """Return the numbers of people after which the policy changes; the last is ``rounds``."""

    def units(self, people: int) -> int:
        """Return the number of units of noise in the sums of the first ``people``."""

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Any]:
        """Yield the noise of the sums at each end."""


def lagged_ends(rounds: int, lag: float) -> list[int]:
    """Every round at first; then a policy serves for ``lag`` × as many rounds as came before.

    A policy hardly changes from one round to the next; 0 is every round, as published.

    >>> lagged_ends(12, 0.25)
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]
    """
    ends, end = [], 0
    while end < rounds:
        end = min(rounds, end + max(1, math.floor(lag * end)))
        ends.append(end)
    return ends


@dataclass(frozen=True)
class TreeClock:
    """Sums over the nodes of a binary tree: popcount(t) of them make the first t people.

    [Dwork et al. 2010; Chan et al. 2011]

    >>> TreeClock().units(7), TreeClock().units(8)
    (3, 1)
    """

    lag: float = 0.0

    def ends(self, rounds: int) -> list[int]:
        return lagged_ends(rounds, self.lag)

    def units(self, people: int) -> int:
        return people.bit_count()

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Any]:
        held: dict[int, tuple[int, Any]] = {}
        for end in ends:
            levels = [level for level in range(end.bit_length()) if end >> level & 1]
            for level in levels:
                node = end >> level  # the node of that level which ends last
                if level not in held or held[level][0] != node:
                    held[level] = node, draw(level * NODES + node)
            yield sum(held[level][1] for level in levels)

    @staticmethod
    def levels(rounds: int) -> int:
        """The most nodes that hold one person: 1 + ⌊log₂ T⌋."""
        return rounds.bit_length()


@dataclass(frozen=True)
class PersonClock:
    """Every person brings a unit of noise."""

    lag: float = 0.0

    def ends(self, rounds: int) -> list[int]:
        return lagged_ends(rounds, self.lag)

    def units(self, people: int) -> int:
        return people

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Any]:
        return _walk(self, ends, draw)


@dataclass(frozen=True)
class BatchClock:
    """Every batch that is complete brings a unit of noise; the policy changes with it."""

    first: int
    growth: float

    def ends(self, rounds: int) -> list[int]:
        if self.growth > 1.0:
            lengths = Schedule(first=self.first, growth=self.growth, horizon=rounds).lengths()
        else:
            lengths = [self.first] * math.ceil(rounds / self.first)
        ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
        return [*ends[:-1], rounds]

    def units(self, people: int) -> int:
        return sum(end <= people for end in self.ends(people + 1)[:-1])

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Any]:
        return _walk(self, ends, draw)


def _walk(clock: NoiseClock, ends: Sequence[int], draw: Draw) -> Iterator[Any]:
    """Units that are never taken back: their sum grows by what is new."""
    total, before = 0.0, 0
    for end in ends:
        now = clock.units(end)
        if now > before:
            total = total + math.sqrt(now - before) * draw(end)
        before = now
        yield total
