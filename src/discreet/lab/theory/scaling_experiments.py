"""The scaling experiments: regret against T, A, |F| and ε.

Five algorithms play a class of functions with one good action a context (``gap_class``). The hard
instance has the gap that the horizon can just not resolve; others have a fixed gap; ``items`` are
actions with features (``joint_class``), where one set of weights serves all. Each algorithm
runs with the rates of its theorem and with ``practical`` ones: the same formulas with the error
bound left out, eight times the speed and an eighth of the bonus.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np

from discreet.arrays.stacking import stack
from discreet.lab import theory
from discreet.lab.theory.known_bandits import gap_class, joint_class, mechanism_for, worst_gap
from discreet.lab.theory.measured_regret import LeastSquares, Regret, play_known, vanilla_po
from discreet.policies import BonusPO, Policy, VanillaPO
from discreet.simulate.engine import Family

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
        """Return the gap of the instance; the hard one shrinks with the horizon."""
        hard = worst_gap(self.T, self.A, self.F, epsilon)
        return GAPS.get(self.instance, hard)


@dataclass(frozen=True)
class Axis:
    """A varied quantity, its values and instances; regret is a power of ``x``."""

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
        """Algorithms of this axis."""
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


RATES = ("theorem", "practical")
SPEED = 8.0
"""Factor of practical rates over those of Err = 1; the default of VanillaPO."""


@dataclass(frozen=True)
class Point:
    """The regret of one algorithm at one point: (seeds,), with its bound.

    ``population`` is the mean regret over the context distribution, where it was measured.
    """

    axis: str
    value: float
    instance: str
    algorithm: str
    rates: str
    regret: np.ndarray[Any, Any]
    bound: float
    horizon: int
    fits: int
    population: float | None = None


@dataclass(frozen=True)
class Place:
    """An algorithm at one point of an axis."""

    axis: str
    value: float
    algorithm: str
    cell: Cell


def points(axes: tuple[Axis, ...] = AXES, seeds: int = 30, workers: int = 1) -> Iterator[Point]:
    """Yield every point of every axis; points are independent, so processes can share them."""
    places = [
        Place(axis.name, value, name, axis.cell(value, instance))
        for axis in axes
        for instance, value, name in product(axis.instances, axis.values, axis.algorithms)
    ]
    measure = partial(measured, seeds=seeds)
    if workers == 1:
        yield from chain.from_iterable(map(measure, places))
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from chain.from_iterable(pool.map(measure, places))


def measured(place: Place, seeds: int) -> list[Point]:
    """Return both kinds of rates at one point."""
    cell, name = place.cell, place.algorithm
    guarantee = theory.statement(name, cell.T, cell.A, cell.F, cell.delta, cell.epsilon)
    regret = _play(name, cell, guarantee, seeds)
    everywhere = None if regret.population is None else regret.population.sum(axis=0)
    return [
        Point(
            axis=place.axis,
            value=place.value,
            instance=cell.instance,
            algorithm=name,
            rates=rates,
            regret=regret.total[run],
            bound=guarantee.regret_bound.total,
            horizon=cell.T,
            fits=regret.fits,
            population=None if everywhere is None else float(everywhere[run].mean()),
        )
        for run, rates in enumerate(RATES)
    ]


def _play(name: str, cell: Cell, guarantee: theory.Statement, seeds: int) -> Regret:
    """Play both kinds of rates on the same seeds."""
    epsilon = cell.epsilon if "private" in name else math.inf
    if cell.instance == ITEMS:
        truth = joint_class(cell.F, cell.A)
    else:
        truth = gap_class(cell.F, cell.A, cell.gap(epsilon))
    rounds = truth.draw(cell.T, seeds)
    if name == "vanilla":
        fast = min(1.0, SPEED * math.sqrt((1 + math.log(cell.A * cell.T)) / (cell.A * cell.T)))
        oracle = LeastSquares(truth, seeds, rates=2)
        return vanilla_po(truth, rounds, oracle, (guarantee.learning_rate, fast))
    policies: list[Policy]
    given: Any = {
        "horizon": cell.T,
        "functions": cell.F,
        "delta": cell.delta,
        "epsilon": epsilon,
    }
    if name.endswith("vanilla"):
        policies = [VanillaPO.theoretical(**given), VanillaPO(scale=SPEED)]
    else:
        fast_bonus = BonusPO(rate_scale=SPEED, bonus_scale=1 / SPEED)
        policies = [BonusPO.theoretical(**given), fast_bonus]
    family = Family(stack(policies), mechanism_for(truth, epsilon), "bandit")
    return play_known(family, truth, rounds)
