"""Ridge regression on everything that was released: the mechanism of ``PooledRidge``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from discreet.arrays.linear_algebra import solve_floored
from discreet.oracles.mechanisms.gaussian_scales import structured_scales
from discreet.oracles.mechanisms.perturb import noisy_statistics
from discreet.oracles.mechanisms.structured_ridge import uncentred
from discreet.oracles.problem import Problem
from discreet.privacy.budget import Budget
from discreet.privacy.events import STACKED, Event
from discreet.privacy.noise import Noise
from discreet.privacy.sensitivities import centre
from discreet.releases.pool import Statistics
from discreet.releases.release import Fit, Gram, Predictor
from discreet.rows.batch import Batch

if TYPE_CHECKING:
    from discreet.oracles.pooled_ridge import PooledRidge


@dataclass(frozen=True)
class PooledStatistics:
    """θ = S⁺⁻¹ r with S = Σ_j w_j·G̃_j and r = Σ_j w_j·q̃_j over all releases j.

    One batch is released as by ``StructuredRidge``, with σ/ω on responses; the equations and their
    parameters are those of ``PooledRidge``. [docs/privacy/ridge.md, "Pooled releases"]
    """

    oracle: PooledRidge
    problem: Problem
    gram: float
    response: float
    event: Event = field(metadata={"stacked": STACKED})

    @classmethod
    def of(cls, oracle: PooledRidge, problem: Problem, budget: Budget) -> Self:
        """With its noise fixed; refuses δ = 0."""
        weight = float(oracle.response_weight) if problem.feedback == "bandit" else 1.0
        return cls(oracle, problem, *structured_scales(problem, budget, weight))

    @property
    def noise_norm(self) -> float:
        """Expected operator norm of the noise on one batch."""
        return float(self.gram * math.sqrt(2 * self.problem.p))

    def fit(self, batch: Batch, noise: Noise, earlier: Statistics | None = None) -> Fit:
        """Statistics → noise → pool → solve."""
        oracle = self.oracle
        gram, response = noisy_statistics(batch, self.problem, self.gram, self.response, noise)
        p, records, variance = gram.shape[-1], batch.records, self.gram**2
        # Privacy: from here on only released and public numbers are used.
        # [docs/privacy/ridge.md, "Pooled releases"]
        weight = records / (records + oracle.clear * p * variance)
        new = Statistics(gram, response, records, variance)
        empty = Statistics(0.0 * gram, 0.0 * response, 0.0, 0.0)
        pool = (earlier or empty).plus(weight, new)
        floor = oracle.floor * (2 * p * pool.variance) ** 0.5 + oracle.ridge * pool.records
        weights = solve_floored(pool.gram, pool.response, floor)
        weights = uncentred(weights, centre(self.problem.losses, batch.n_actions))
        step = self.gram * math.sqrt(2 * p) + 1e-12 * records  # positive also without noise
        kept = Gram(gram, dense=False, step=step) if self.problem.radii else None
        return Fit(Predictor(weights, "clip"), kept, pool)
