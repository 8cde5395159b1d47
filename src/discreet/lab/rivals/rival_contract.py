"""Contract of rivals that play LinUCB on noisy sums: clocks of noise, public noise scales.

The sums of the first t people carry independent units of noise: one per node of a tree, one per
person, or one per batch. A clock says how many, and which of them a later sum shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple, Protocol

from discreet.arrays.backend import namespace
from discreet.design.schedule import Schedule
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import gaussian_multiplier, need_delta, smallest_scale
from discreet.privacy.events import REAL_ARITHMETIC, Gaussian
from discreet.types import Array
from discreet.validate import in_range, one_of

Draw = Callable[[int], Array]
"""Standard normal draws of one unit of noise, by its number."""

NODES = 2**23
"""Numbers of nodes on one level of a tree: more than a run has rounds."""


class NoiseClock(Protocol):
    """Accumulation of noise over the rounds of a run."""

    def ends(self, rounds: int) -> list[int]:
        """Return the numbers of people after which the policy changes; the last is ``rounds``."""

    def units(self, people: int) -> int:
        """Return the number of units of noise in the sums of the first ``people``."""

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Array]:
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
class PersonClock:
    """Every person brings a unit of noise."""

    lag: float = 0.0

    def ends(self, rounds: int) -> list[int]:
        return lagged_ends(rounds, self.lag)

    def units(self, people: int) -> int:
        return people

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Array]:
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

    def noise(self, ends: Sequence[int], draw: Draw) -> Iterator[Array]:
        return _walk(self, ends, draw)


def _walk(clock: NoiseClock, ends: Sequence[int], draw: Draw) -> Iterator[Array]:
    """Units that are never taken back: their sum grows by what is new."""
    total, before = 0.0, 0
    for end in ends:
        now = clock.units(end)
        if now > before:
            total = total + math.sqrt(now - before) * draw(end)
        before = now
        yield total


LAG = 0.02
"""Of clocks that change with every round (``lagged_ends``): the mean loss is that of every round
within chance error. [docs/results/table.md, "Every round"]"""
RIDGE = 1.0
"""Ridge without noise, as LinUCB has it. [Li et al. 2010]"""
CONSTANTS = ("tight", "published")
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


@dataclass(frozen=True)
class RivalProblem:
    """Public inputs of calibration: actions, length of features, and rounds."""

    n_actions: int
    p: int
    rounds: int


class Rival(Protocol):
    """A published algorithm: a frozen dataclass of words and numbers."""

    assumes: ClassVar[str]
    """Trust model: who sees which data, and the meaning of ε."""

    @property
    def width(self) -> float:
        """β: how much of the confidence radius is subtracted from a predicted loss."""

    def clock(self, rounds: int) -> NoiseClock:
        """Return the clock of noise and policy changes."""

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        """Return noise and ridge; no noise at ε = ∞."""


@dataclass(frozen=True)
class ShiftedLinUCB:
    """Parameters of LinUCB on sums whose noise a ridge must cover: ``width`` β, ``shift`` in units
    of the noise's norm, whose ``constants``, and the ``lag`` of its clock."""

    width: float = 0.1
    shift: float = 2.0
    constants: str = CONSTANTS[0]
    lag: float = LAG

    def __post_init__(self) -> None:
        in_range("width", self.width, 0.0, math.inf)
        in_range("shift", self.shift, 0.0, math.inf)
        one_of("constants", self.constants, CONSTANTS)


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


class RivalRows(NamedTuple):
    """Features (S, 1, T, p), labels (S, 1, T) or losses (S, 1, T, A), and uniforms (S, 1, T, 2).

    Rows are in each seed's order.
    """

    features: Array
    truth: Array
    uniforms: Array

    def losses(self, chosen: Array, start: int, end: int) -> Array:
        """Return the losses (S, R, n) of the actions chosen in some rounds; booleans for labels."""
        if self.truth.ndim == 3:
            return chosen != self.truth[..., start:end]
        some, xp = self.truth[..., start:end, :], namespace(chosen)
        shape = (*chosen.shape, some.shape[-1])
        return xp.take_along_axis(xp.broadcast_to(some, shape), chosen[..., None], axis=-1)[..., 0]


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
