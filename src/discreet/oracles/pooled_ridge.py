"""Ridge regression on the pooled statistics of all releases: the default oracle."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.oracles.contract import Problem
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.privacy.budget import Budget
from discreet.validate import in_range, one_of, positive


@dataclass(frozen=True)
class PooledRidge:
    """Linear loss predictors from everything that was released, clipped to [0, 1].

    A batch of n records is released with noise of standard deviation σ on its Gram blocks and
    σ/ω on its responses, jointly. With ``geometry`` "learned" its rows are stretched by a matrix
    that earlier releases give, and normalised, so that directions in which contexts differ little
    are not lost in the noise; "plain" takes the features as they are, as does a plan without a
    budget or with confidence radii.

    The pool adds all batches up with weights w = n/(n + ``clear``·p·σ²). Eigenvalues of its Gram
    below ``floor`` times its noise, plus ``ridge``·Σ w·n, are raised to it: what lies below the
    noise is not believed. ``response_weight`` ω shifts noise from the responses to the Grams; full
    information has ω = 1, since there the responses are many. Without a budget this is ridge
    regression on the whole past. [docs/privacy/ridge.md; docs/results/defaults.md]

    >>> PooledRidge()
    PooledRidge(floor=0.6, ridge=1e-08, clear=10.0, response_weight=2.0, geometry='learned')
    """

    floor: float = 0.6
    ridge: float = 1e-8
    clear: float = 10.0
    response_weight: float = 2.0
    geometry: str = "learned"

    bounded = True
    """Predictions lie in [0, 1]."""

    def __post_init__(self) -> None:
        one_of("geometry", self.geometry, ("learned", "plain"))
        positive("floor", self.floor)
        positive("ridge", self.ridge)
        in_range("clear", self.clear, 0.0, math.inf)
        in_range("response_weight", self.response_weight, 0.125, math.sqrt(8.0))

    def calibrate(self, problem: Problem, budget: Budget) -> PooledStatistics:
        """The mechanism with its noise fixed."""
        return PooledStatistics.of(self, problem, budget)
