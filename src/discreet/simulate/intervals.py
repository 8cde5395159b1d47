"""Intervals of mean losses: over seeds, and over the rounds of one run."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np


class LossInterval(NamedTuple):
    """A mean, its standard error and its interval; NaN where there is no spread to tell."""

    loss: float
    standard_error: float
    low: float
    high: float


def over_seeds(losses: Any, confidence: float) -> LossInterval:
    """Student's t over the seeds (seeds,) that have a loss; NaN where one has none."""
    from scipy.special import stdtrit

    known = np.asarray(losses)[~np.isnan(losses)]
    if len(known) < 2:
        return LossInterval(float(known.sum()) if len(known) else math.nan, *[math.nan] * 3)
    mean, error = float(known.mean()), float(known.std(ddof=1) / math.sqrt(len(known)))
    wide = float(stdtrit(len(known) - 1, 0.5 + confidence / 2)) * error
    return LossInterval(mean, error, mean - wide, mean + wide)


def over_rounds(losses: np.ndarray[Any, Any], confidence: float) -> LossInterval:
    """Wilson's interval of the losses in [0, 1] of one run.

    A loss in [0, 1] with mean m has a variance of at most m(1 − m), with equality for 0 and 1, and
    rounds whose means differ have a mean variance below that of their mean: so the interval is
    wide enough for all of them, also where every loss was 0. [Wilson 1927]

    >>> [round(each, 3) for each in over_rounds(np.zeros(20), 0.95)]
    [0.0, 0.0, 0.0, 0.161]
    """
    from scipy.special import ndtri

    rounds = len(losses)
    if not rounds:
        return LossInterval(*[math.nan] * 4)
    mean, z = float(losses.mean()), float(ndtri(0.5 + confidence / 2))
    variance = mean * (1.0 - mean) / rounds
    middle = (mean + z**2 / (2 * rounds)) / (1 + z**2 / rounds)
    wide = z * math.sqrt(variance + (z / (2 * rounds)) ** 2) / (1 + z**2 / rounds)
    low, high = max(0.0, middle - wide), min(1.0, middle + wide)
    return LossInterval(mean, math.sqrt(variance), min(low, mean), max(high, mean))
