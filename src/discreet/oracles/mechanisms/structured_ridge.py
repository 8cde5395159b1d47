"""Ridge regression on noisy blocks: the mechanism ``structured`` of ``Ridge``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from discreet.arrays.backend import as_like, namespace, per_run
from discreet.arrays.linear_algebra import solve_repaired
from discreet.batch import Batch
from discreet.oracles.contract import Calibrated, Problem
from discreet.oracles.mechanisms.perturb import noisy_statistics, structured_scales
from discreet.privacy.budget import Budget
from discreet.privacy.noise import Noise
from discreet.privacy.sensitivities import centre
from discreet.releases.release import Fit, Gram, Predictor
from discreet.releases.statistics import Statistics
from discreet.types import Array

if TYPE_CHECKING:
    from discreet.oracles.ridge import Ridge


@dataclass(frozen=True)
class StructuredRidge(Calibrated["Ridge"]):
    """θ_a = (G̃_a + Λ I)⁻¹ q̃_a, Λ = n·ridge + noise_ridge·σ√(2p), from one joint release.

    Each action has its block G_a = Σ b bᵀ and response q_a = Σ (y − centre)·b over its own rows;
    full information shares one block. All are noised at once with standard deviation σ.
    [docs/privacy/ridge.md, "The structured release"]
    """

    gram: float
    response: float

    @classmethod
    def of(cls, oracle: Ridge, problem: Problem, budget: Budget) -> Self:
        """With its noise fixed; refuses δ = 0."""
        gram, response, event = structured_scales(problem, budget)
        return cls(oracle, problem, gram, response, event=event)

    @property
    def summable(self) -> bool:
        """True: one joint release of sums."""
        return True

    @property
    def noise_norm(self) -> float:
        """Expected operator norm of the noise on one solve."""
        return float(self.gram * math.sqrt(2 * self.problem.p))

    def fit(self, batch: Batch, noise: Noise, _earlier: Sequence[Statistics] = ()) -> Fit:
        """Statistics → noise → solve."""
        scales, ridge = (self.gram, self.response), self.oracle.ridge
        gram, response, _ = noisy_statistics(batch, self.problem, *scales, noise, ridge=ridge)
        p = gram.shape[-1]
        expected = self.gram * math.sqrt(2 * p)
        shift = batch.records * self.oracle.ridge + self.oracle.noise_ridge * expected
        step = expected + 1e-12 * batch.records  # positive also without noise
        weights = solve_repaired(gram, response, per_run(step, gram, 1), shift)
        weights = uncentred(weights, centre(self.problem.losses, batch.n_actions))
        like = batch.features[..., :0, :]  # its type, and no row
        kept = Gram(as_like(gram, like), False, step) if self.problem.radii else None
        return Fit(Predictor(as_like(weights, like), "identity"), kept)


def uncentred(weights: Array, middle: float) -> Array:
    """Weights for losses from weights for centred ones: the bias feature is 1/√2."""
    shift = middle * math.sqrt(2.0)
    return namespace(weights).concat([weights[..., :1] + shift, weights[..., 1:]], axis=-1)
