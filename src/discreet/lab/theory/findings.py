"""What the scaling experiments found: slopes, the worst of fixed gaps, one plain document."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from discreet.lab.theory.axes import GAPS, Axis
from discreet.lab.theory.experiments import Point
from discreet.lab.theory.slopes import Slope, fitted_slope, slope


@dataclass(frozen=True)
class Growth:
    """How the regret of one algorithm grows along an axis, beside its bound.

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
    """At each point of an axis, the fixed gap with the largest mean regret: instance "worst"."""
    rivals: dict[Any, list[Point]] = defaultdict(list)
    for point in found:
        if point.instance in GAPS:
            rivals[point.axis, point.value, point.algorithm, point.rates].append(point)
    worst = [max(each, key=lambda point: float(point.regret.mean())) for each in rivals.values()]
    return [replace(point, instance="worst") for point in worst]


def growth(found: Sequence[Point], axes: Sequence[Axis]) -> list[Growth]:
    """A slope for every algorithm, instance and kind of rates of every axis."""
    lines: dict[Any, list[Point]] = defaultdict(list)
    for point in found:
        lines[point.axis, point.instance, point.algorithm, point.rates].append(point)
    x_of = {axis.name: axis.x for axis in axes}
    told = []
    for (axis, instance, algorithm, rates), line in lines.items():
        x = [x_of[axis](point.value) for point in line]
        fit = fitted_slope(x, np.stack([point.regret for point in line]))
        late = slope(x[-3:], [point.regret.mean() for point in line[-3:]])
        bound = slope(x, [point.bound for point in line])
        told.append(Growth(axis, instance, algorithm, rates, fit, late, bound))
    return told


def document_of(found: Sequence[Point], axes: Sequence[Axis], seeds: int) -> dict[str, Any]:
    """Everything measured, as plain values: what a report is made from."""
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
