"""Contract of rivals that play LinUCB on noisy sums: clocks of noise, public noise scales.

The sums of the first t people carry independent units of noise: one per node of a tree, one per
person, or one per batch. A clock says how many, and which of them a later sum shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar

from discreet.design.schedule import Schedule
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import gaussian_multiplier, need_delta, smallest_scale
from discreet.privacy.events import REAL_ARITHMETIC, Gaussian
from discreet.types import Array
from discreet.validate import in_range, one_of, whole

Draw = Callable[[int], Array]
"""Standard normal draws of one unit of noise, by its number."""

NODES = 2**23
"""Numbers of nodes on one level of a tree: more than a run has rounds."""


class NoiseClock:
    """Accumulation of noise over the rounds of a run."""

    def ends(self, rounds: int) -> list[int]:
        """Return the numbers of people after which the policy changes; the last is ``rounds``."""
        raise NotImplementedError

    def units(self, people: int) -> int:
        """Return the number of units of noise in the sums of the first ``people``."""
        raise NotImplementedError

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Array]:
        """Yield the noise of the sums at each end: units that are never taken back add up."""
        total, before = 0.0, 0
        for end in ends:
            now = self.units(end)
            if now > before:
                total = total + math.sqrt(now - before) * draw(end)
            before = now
            yield total


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
class PersonClock(NoiseClock):
    """Every person brings a unit of noise."""

    lag: float = 0.0

    def ends(self, rounds: int) -> list[int]:
        return lagged_ends(rounds, self.lag)

    def units(self, people: int) -> int:
        return people


@dataclass(frozen=True)
class TreeClock(PersonClock):
    """Sums over the nodes of a binary tree: popcount(t) of them make the first t people.

    [Dwork et al. 2010; Chan et al. 2011]

    >>> TreeClock().units(7), TreeClock().units(8)
    (3, 1)
    """

    def units(self, people: int) -> int:
        return people.bit_count()

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Array]:
        held: dict[int, tuple[int, Array]] = {}
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
class BatchClock(NoiseClock):
    """Every batch that is complete brings a unit of noise; the policy changes with it."""

    first: int
    growth: float

    def ends(self, rounds: int) -> list[int]:
        if self.growth > 1.0:
            lengths = Schedule(first=self.first, growth=self.growth, horizon=rounds).lengths()
        else:
            lengths = [self.first] * math.ceil(rounds / self.first)
        return [*list(accumulate(lengths))[:-1], rounds]

    def units(self, people: int) -> int:
        return sum(end <= people for end in self.ends(people + 1)[:-1])


LAG = 0.02
"""Of clocks that change with every round (``lagged_ends``): the mean loss is that of every round
within chance error. [docs/results/table.md, "Every round"]"""
RIDGE = 1.0
"""Ridge without noise, as LinUCB has it. [Li et al. 2010]"""
CONSTANTS = ("tight", "published")
TRUSTED = "a trusted server; all others together see every later policy"
FAILURE = 0.1
"""α of the papers: how often noise may leave the bound that a published shift covers."""


@dataclass(frozen=True)
class Scales:
    """Noise scales and ridge of one run, all public.

    One unit of noise has standard deviation ``gram`` on √2 × an off-diagonal entry of a Gram block,
    ``diagonal`` on a diagonal entry and ``response`` on an entry of Σ (y − centre)·b. The ridge of
    sums that carry k units is ``ridge`` + ``shift``·√k. ``posterior`` is the noise of a unit that
    a sampled policy counts.
    """

    gram: float = 0.0
    diagonal: float = 0.0
    response: float = 0.0
    ridge: float = RIDGE
    shift: float = 0.0
    centre: float = 0.5
    posterior: float = 0.0

    @classmethod
    def tight(cls, sigma: float, p: int, shift: float, **more: float) -> Scales:
        """Return one σ for all sums in svec coordinates, and a ridge in units of its norm."""
        return cls(sigma, sigma, sigma, RIDGE, shift * noise_norm(sigma, p), **more)


@dataclass(frozen=True)
class RivalProblem:
    """Public inputs of calibration: actions, length of features, and rounds."""

    n_actions: int
    p: int
    rounds: int


CHOICES = {
    "constants": CONSTANTS,
    "gram": ("protected", "clear"),
    "protocol": ("amplified", "vector-sum"),
}
"""Words that a parameter of a rival may be."""


class Rival:
    """A published algorithm: a frozen dataclass of words and numbers.

    ``width`` is β: how much of the confidence radius is subtracted from a predicted loss.
    ``shift`` is a ridge, in units of the noise's norm, that covers the noise of the sums.
    """

    assumes: ClassVar[str]
    """Trust model: who sees which data, and the meaning of ε."""
    width: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name in ("width", "shift"):
                in_range(name, value, 0.0, math.inf)
            elif name in ("codes", "batches"):
                whole(name, value, 1)
            elif name in CHOICES:
                one_of(name, value, CHOICES[name])

    def clock(self, rounds: int) -> NoiseClock:
        """Return the clock of noise and policy changes."""
        raise NotImplementedError

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        """Return noise and ridge; no noise at ε = ∞."""
        return self.private_scales(problem, budget) if budget.private else Scales()

    def private_scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        """Return noise and ridge at a finite ε."""
        raise NotImplementedError


def published_norm(problem: RivalProblem) -> float:
    """Return 4√p + 2 log(2T/α), the bound of both papers on the norm of unit noise."""
    return 4 * math.sqrt(problem.p) + 2 * math.log(2 * problem.rounds / FAILURE)


@dataclass(frozen=True)
class RivalPlan:
    """One run of a rival, on one problem with one budget."""

    rival: Rival
    n_actions: int
    p: int
    budget: Budget

    schedule: ClassVar[Schedule] = Schedule(first=16, growth=1.5)
    """Rounds at which its loss is recorded: the ends of the default plan's batches."""

    def scales(self, rounds: int) -> Scales:
        """Return the noise scales of a run with this number of rounds."""
        return self.rival.scales(RivalProblem(self.n_actions, self.p, rounds), self.budget)


@lru_cache(maxsize=4096)
def noise_multiplier(budget: Budget) -> float:
    """Return σ over sensitivity of one Gaussian release with this budget, rounded outward."""
    need_delta(budget, "Gaussian noise")

    def event_at(multiplier: float) -> Gaussian:
        return Gaussian(multiplier, 1.0, assumes=(REAL_ARITHMETIC,))

    return smallest_scale(event_at, budget, gaussian_multiplier(budget))


def noise_norm(sigma: float, p: int) -> float:
    """Return the expected operator norm of symmetric noise with σ in svec coordinates: σ√(2p)."""
    return sigma * math.sqrt(2 * p)
