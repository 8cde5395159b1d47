"""The scaling experiments: regret against T, A, |F| and ε.

Five algorithms play a class of functions with one good action a context (``gap_class``). The hard
instance has the gap that the horizon can just not resolve; others have a fixed gap; ``items`` are
actions with features (``joint_class``), where one set of weights serves all. Each algorithm
runs with the rates of its theorem and with ``practical`` ones: the same formulas with the error
bound left out, eight times the speed and an eighth of the bonus.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product, starmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays.stacking import stack
from discreet.lab import theory
from discreet.lab.theory import known_bandits
from discreet.policies import BonusPO, Policy, VanillaPO
from discreet.simulate.engine import Family
from discreet.types import JsonObject, NumpyArray

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


def _axes(
    T: Iterable[float], A: Iterable[float], F: Iterable[float], epsilon: Iterable[float]
) -> tuple[Axis, ...]:
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
    """The regret of one algorithm at one point, (seeds,), with its mean and its bound.

    ``population_mean`` is the mean regret over the context distribution, where it was measured.
    """

    axis: str
    value: float
    instance: str
    algorithm: str
    rates: str
    mean: float
    standard_error: float
    population_mean: float | None
    T: int
    bound: float
    bound_over_T: float  # noqa: N815
    fits: int
    regret: NumpyArray


def points(axes: tuple[Axis, ...] = AXES, seeds: int = 30, workers: int = 1) -> Iterator[Point]:
    """Yield every point of every axis; points are independent, so processes can share them."""
    places = [
        (axis.name, value, name, axis.cell(value, instance))
        for axis in axes
        for instance, value, name in product(axis.instances, axis.values, axis.algorithms)
    ]
    measure = partial(measured, seeds=seeds)
    if workers == 1:
        yield from chain.from_iterable(starmap(measure, places))
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from chain.from_iterable(pool.map(measure, *zip(*places, strict=True)))


def measured(axis: str, value: float, name: str, cell: Cell, seeds: int) -> list[Point]:
    """Return both kinds of rates at one point."""
    guarantee = theory.statement(name, cell.T, cell.A, cell.F, cell.delta, cell.epsilon)
    played, bound = _play(name, cell, guarantee, seeds), guarantee.regret_bound.total
    found = []
    for run, rates in enumerate(RATES):
        regret, everywhere = played.total[run], played.population
        mean, error = float(regret.mean()), float(regret.std(ddof=1) / math.sqrt(seeds))
        population = None if everywhere is None else float(everywhere.sum(axis=0)[run].mean())
        place = axis, value, cell.instance, name, rates
        bounds = cell.T, bound, bound / cell.T, played.fits
        found.append(Point(*place, mean, error, population, *bounds, regret))
    return found


def _play(name: str, cell: Cell, guarantee: theory.Statement, seeds: int) -> known_bandits.Regret:
    """Play both kinds of rates on the same seeds."""
    epsilon = cell.epsilon if "private" in name else math.inf
    if cell.instance == ITEMS:
        truth = known_bandits.joint_class(cell.F, cell.A)
    else:
        hard = known_bandits.worst_gap(
            cell.T, cell.A, cell.F, epsilon
        )  # it shrinks with the horizon
        truth = known_bandits.gap_class(cell.F, cell.A, GAPS.get(cell.instance, hard))
    rounds = truth.draw(cell.T, seeds)
    if name == "vanilla":
        fast = min(1.0, SPEED * math.sqrt((1 + math.log(cell.A * cell.T)) / (cell.A * cell.T)))
        oracle = known_bandits.LeastSquares(truth, seeds, rates=2)
        return known_bandits.vanilla_po(truth, rounds, oracle, (guarantee.learning_rate, fast))
    policies: list[Policy]
    given: JsonObject = {"horizon": cell.T, "functions": cell.F, "delta": cell.delta}
    given["epsilon"] = epsilon
    if name.endswith("vanilla"):
        policies = [VanillaPO.theoretical(**given), VanillaPO(scale=SPEED)]
    else:
        fast_bonus = BonusPO(rate_scale=SPEED, bonus_scale=1 / SPEED)
        policies = [BonusPO.theoretical(**given), fast_bonus]
    family = Family(stack(policies), known_bandits.mechanism_for(truth, epsilon), "bandit")
    return known_bandits.play_known(family, truth, rounds)


RESAMPLES = 2000


def slope(x: ArrayLike, values: ArrayLike) -> NumpyArray:
    """Return the least-squares slopes through (log x, log value), over the last axis."""
    where = np.log(np.asarray(x, dtype=float))
    where = where - where.mean()
    return np.asarray(np.log(np.asarray(values, dtype=float)) @ where / (where**2).sum())


def fitted_slope(x: ArrayLike, values: NumpyArray) -> tuple[float, float, float]:
    """Return the slope of the means of ``values`` (points, seeds), with its 95 % interval.

    Percentile bootstrap over seeds. [Efron and Tibshirani 1993, chapter 13]

    >>> fit, low, high = fitted_slope([1, 4, 16], np.array([[2.0], [4.0], [8.0]]) * [0.9, 1.0, 1.1])
    >>> round(fit, 6), low < 0.5 < high
    (0.5, True)
    """
    chosen = np.random.default_rng(0).integers(values.shape[1], size=(RESAMPLES, *values.shape))
    means = np.take_along_axis(values[None], chosen, axis=-1).mean(axis=-1)
    low, high = np.quantile(slope(x, means), [0.025, 0.975])
    return float(slope(x, values.mean(axis=-1))), float(low), float(high)


def worst_of_gaps(found: Sequence[Point]) -> list[Point]:
    """Return for each point of an axis the fixed gap with the largest mean regret."""
    rivals: dict[tuple[str | float, ...], list[Point]] = defaultdict(list)
    for point in found:
        if point.instance in GAPS:
            rivals[point.axis, point.value, point.algorithm, point.rates].append(point)
    worst = [max(each, key=lambda point: point.mean) for each in rivals.values()]
    return [replace(point, instance="worst") for point in worst]


def growth(found: Sequence[Point], axes: Sequence[Axis]) -> list[JsonObject]:
    """Return the growth of regret for every algorithm, instance and kind of rates of every axis.

    ``late_slope`` is the slope through the last three points: where regret is still linear in T at
    the left end and no longer so at the right one, a single line hides it.
    """
    lines: dict[tuple[str, ...], list[Point]] = defaultdict(list)
    for point in found:
        lines[point.axis, point.instance, point.algorithm, point.rates].append(point)
    x_of = {axis.name: axis.x for axis in axes}
    made: list[JsonObject] = []
    for key, line in lines.items():
        x = [x_of[key[0]](point.value) for point in line]
        fit, low, high = fitted_slope(x, np.stack([point.regret for point in line]))
        made.append(
            {
                **dict(zip(("axis", "instance", "algorithm", "rates"), key, strict=True)),
                "slope": fit,
                "low": low,
                "high": high,
                "late_slope": float(slope(x[-3:], [point.mean for point in line[-3:]])),
                "bound_slope": float(slope(x, [point.bound for point in line])),
            }
        )
    return made


def document_of(found: Sequence[Point], axes: Sequence[Axis], seeds: int) -> JsonObject:
    """Return all measurements as plain values, for a report."""
    every = [*found, *worst_of_gaps(found)]
    return {
        "seeds": seeds,
        "axes": [
            {"name": axis.name, "words": axis.words, "values": list(axis.values)} for axis in axes
        ],
        "points": [
            {name: value for name, value in vars(point).items() if name != "regret"}
            for point in every
        ],
        "growth": growth(every, axes),
    }
