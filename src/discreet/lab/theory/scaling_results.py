"""Results of the scaling experiments: slopes, the worst of fixed gaps, one plain document."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from discreet.lab.theory.scaling_experiments import GAPS, Axis, Point

RESAMPLES = 2000


@dataclass(frozen=True)
class Slope:
    """d log(regret)/d log(x), with a 95 % interval over seeds."""

    value: float
    low: float
    high: float


def slope(x: Any, values: Any) -> float:
    """Return the least-squares slope through (log x, log value)."""
    where, heights = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(values, dtype=float))
    where = where - where.mean(axis=-1, keepdims=True)
    return float((where * heights).sum() / (where**2).sum())


def fitted_slope(x: Any, values: Any) -> Slope:
    """Return the slope of the means of ``values`` (points, seeds), with resampled seeds.

    Percentile bootstrap. [Efron and Tibshirani 1993, chapter 13]

    >>> fit = fitted_slope([1, 4, 16], np.array([[2.0], [4.0], [8.0]]) * [0.9, 1.0, 1.1])
    >>> round(fit.value, 6), fit.low < 0.5 < fit.high
    (0.5, True)
    """
    samples = np.asarray(values, dtype=float)
    points, seeds = samples.shape
    rng = np.random.default_rng(0)
    chosen = rng.integers(seeds, size=(RESAMPLES, points, seeds))
    means = np.take_along_axis(samples[None], chosen, axis=-1).mean(axis=-1)
    where = np.log(np.asarray(x, dtype=float))
    where = where - where.mean()
    each = np.log(means) @ where / (where**2).sum()
    low, high = np.quantile(each, [0.025, 0.975])
    return Slope(slope(x, samples.mean(axis=-1)), float(low), float(high))


@dataclass(frozen=True)
class Growth:
    """Growth of the regret of one algorithm along an axis, and of its bound.

    ``late`` is the slope through the last three points: where regret is still linear in T at the
    left end and no longer so at the right one, a single line hides it.
    """

    axis: str
    instance: str
    algorithm: str
    rates: str
    measured: Slope
    late: float
    bound: float


def worst_of_gaps(found: Sequence[Point]) -> list[Point]:
    """Return for each point of an axis the fixed gap with the largest mean regret."""
    rivals: dict[Any, list[Point]] = defaultdict(list)
    for point in found:
        if point.instance in GAPS:
            rivals[point.axis, point.value, point.algorithm, point.rates].append(point)
    worst = [max(each, key=lambda point: float(point.regret.mean())) for each in rivals.values()]
    return [replace(point, instance="worst") for point in worst]


def growth(found: Sequence[Point], axes: Sequence[Axis]) -> list[Growth]:
    """Return a slope for every algorithm, instance and kind of rates of every axis."""
    lines: dict[Any, list[Point]] = defaultdict(list)
    for point in found:
        lines[point.axis, point.instance, point.algorithm, point.rates].append(point)
    x_of = {axis.name: axis.x for axis in axes}
    found_growth = []
    for (axis, instance, algorithm, rates), line in lines.items():
        x = [x_of[axis](point.value) for point in line]
        fit = fitted_slope(x, np.stack([point.regret for point in line]))
        late = slope(x[-3:], [point.regret.mean() for point in line[-3:]])
        bound = slope(x, [point.bound for point in line])
        found_growth.append(Growth(axis, instance, algorithm, rates, fit, late, bound))
    return found_growth


def document_of(found: Sequence[Point], axes: Sequence[Axis], seeds: int) -> dict[str, Any]:
    """Return all measurements as plain values, for a report."""
    every = [*found, *worst_of_gaps(found)]
    return {
        "seeds": seeds,
        "axes": [
            {"name": axis.name, "words": axis.words, "values": list(axis.values)} for axis in axes
        ],
        "points": [_plain_point(point, seeds) for point in every],
        "growth": [_plain_growth(each) for each in growth(every, axes)],
    }


def _plain_point(point: Point, seeds: int) -> dict[str, Any]:
    plain = {name: getattr(point, name) for name in ("axis", "value", "instance", "algorithm")}
    return {
        **plain,
        "rates": point.rates,
        "mean": float(point.regret.mean()),
        "standard_error": float(point.regret.std(ddof=1) / math.sqrt(seeds)),
        "population_mean": point.population,
        "T": point.horizon,
        "bound": point.bound,
        "bound_over_T": point.bound / point.horizon,
        "fits": point.fits,
    }


def _plain_growth(each: Growth) -> dict[str, Any]:
    plain = asdict(each)
    fit = plain.pop("measured")
    late, bound = plain.pop("late"), plain.pop("bound")
    return {
        **plain,
        "slope": fit["value"],
        "low": fit["low"],
        "high": fit["high"],
        "late_slope": late,
        "bound_slope": bound,
    }
