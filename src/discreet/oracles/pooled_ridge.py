"""Ridge regression on the pooled statistics of all releases: the default oracle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from discreet.linalg import solve_floored
from discreet.oracles.gaussian_scales import (
    GaussianScales,
    calibrated,
    no_noise,
    structured_scales,
)
from discreet.oracles.perturb import noisy_statistics
from discreet.oracles.ridge import uncentred
from discreet.privacy.budget import Budget
from discreet.privacy.calibrate import need_delta
from discreet.privacy.events import Event
from discreet.privacy.mechanisms import centre
from discreet.privacy.noise import Noise
from discreet.release import Fit, Gram, Predictor
from discreet.statistics import Statistics
from discreet.types import Batch
from discreet.validate import in_range, positive


@dataclass(frozen=True)
class PooledRidge:
    """Linear loss predictors from everything that was released, clipped to [0, 1].

    A batch of n records is released with noise of standard deviation σ on its Gram blocks and
    σ/ω on its responses, jointly. With w_j = n_j/(n_j + ``clear``·p·σ²) the pool is
    S = Σ_j w_j·G̃_j and r = Σ_j w_j·q̃_j, and its noise has the operator norm
    s = σ·√(2p·Σ_j w_j²). Eigenvalues of S below ``floor``·s + ``ridge``·Σ_j w_j·n_j are raised to
    it: what lies below the noise is not believed. θ = S⁺⁻¹ r, and the centre is added.

    ``response_weight`` ω shifts noise from the responses to the Grams; full information has ω = 1,
    since there the responses are many. Without a budget this is ridge regression on the whole
    past. [docs/privacy/ridge.md, "Pooled releases"; docs/results/defaults.md]

    >>> PooledRidge()
    PooledRidge(floor=0.4, ridge=1e-08, clear=10.0, response_weight=2.0)
    """

    floor: float = 0.4
    ridge: float = 1e-8
    clear: float = 10.0
    response_weight: float = 2.0
    scales: GaussianScales | None = field(default=None, repr=False, compare=False)

    mechanism = "structured"
    bounded = True
    """Predictions lie in [0, 1]."""

    def __post_init__(self) -> None:
        positive("floor", self.floor)
        positive("ridge", self.ridge)
        in_range("clear", self.clear, 0.0, math.inf)
        in_range("response_weight", self.response_weight, 0.125, math.sqrt(8.0))

    def calibrate(
        self, budget: Budget, *, feedback: str, losses: str, radii: bool, n_actions: int, p: int
    ) -> PooledRidge:
        """This oracle with its noise fixed; refuses what cannot be had."""
        need_delta(budget, "Gaussian noise")
        if not budget.private:
            return replace(self, scales=no_noise(feedback, losses, radii))
        weight = float(self.response_weight) if feedback == "bandit" else 1.0
        scales = structured_scales(budget, feedback, losses, radii, n_actions, p, weight)
        return replace(self, scales=scales)

    def event(self, records: int) -> Event:  # noqa: ARG002
        """What a fit costs; it does not depend on the number of records."""
        return calibrated(self.scales).event

    def noise_norm(self, p: int, n_actions: int) -> float:  # noqa: ARG002
        """Expected operator norm of the noise on one batch."""
        return float(calibrated(self.scales).gram * math.sqrt(2 * p))

    def fit(self, batch: Batch, noise: Noise, earlier: Statistics | None = None) -> Fit:
        """Statistics → noise → pool → solve."""
        scales = calibrated(self.scales)
        gram, response = noisy_statistics(batch, scales, noise)
        p, records, variance = gram.shape[-1], batch.records, scales.gram**2
        # Privacy: from here on only released and public numbers are used.
        # [docs/privacy/ridge.md, "Pooled releases"]
        weight = records / (records + self.clear * p * variance)
        new = Statistics(gram, response, records, variance)
        empty = Statistics(0.0 * gram, 0.0 * response, 0.0, 0.0)
        pool = (earlier or empty).plus(weight, new)
        floor = self.floor * (2 * p * pool.variance) ** 0.5 + self.ridge * pool.records
        weights = solve_floored(pool.gram, pool.response, floor)
        weights = uncentred(weights, centre(scales.losses, batch.n_actions))
        step = scales.gram * math.sqrt(2 * p) + 1e-12 * records  # positive also without noise
        kept = Gram(gram, dense=False, step=step) if scales.radii else None
        return Fit(Predictor(weights, "clip"), kept, pool)
