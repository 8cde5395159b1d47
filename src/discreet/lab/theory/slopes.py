"""How fast regret grows: the slope of a line through logarithms, with a confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 2000


@dataclass(frozen=True)
class Slope:
    """d log(regret)/d log(x), with a 95 % interval over seeds."""

    value: float
    low: float
    high: float


def slope(x: Any, values: Any) -> float:
    """Least squares through (log x, log value)."""
    where, heights = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(values, dtype=float))
    where = where - where.mean(axis=-1, keepdims=True)
    return float((where * heights).sum() / (where**2).sum())


def fitted_slope(x: Any, values: Any) -> Slope:
    """The slope of the means of ``values`` (points, seeds); seeds are resampled at each point.

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
