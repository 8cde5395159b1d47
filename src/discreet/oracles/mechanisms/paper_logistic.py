"""Logistic regression as the paper writes it: the mechanism ``paper`` of ``Logistic``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.batch import Batch
from discreet.oracles.contract import Calibrated, Problem
from discreet.oracles.mechanisms.legal_rows import legal_batch
from discreet.oracles.mechanisms.moments import floating_moments
from discreet.oracles.mechanisms.newton import CURVATURE, perturbed_minimum, public_tolerance
from discreet.oracles.mechanisms.perturb import dense_noisy_gram
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import need_delta, pure_share
from discreet.privacy.events import (
    NO_BUDGET,
    REAL_ARITHMETIC,
    Event,
    Gaussian,
    ObjectivePerturbation,
    compose,
)
from discreet.privacy.noise import LARGEST_EXPONENTIAL, Noise
from discreet.privacy.sensitivities import paper_sensitivities, zcdp
from discreet.releases.release import Fit, Gram, Predictor
from discreet.releases.statistics import Statistics
from discreet.types import Numbers

if TYPE_CHECKING:
    from discreet.oracles.logistic import Logistic

IDEAL = ("exact minimiser", REAL_ARITHMETIC)


@dataclass(frozen=True)
class PaperLogistic(Calibrated["Logistic"]):
    """θ = argmin (1/n)Σ f(x·θ, y) + ((λ + κ)/2)‖θ‖² + (1/n)b·θ, b of density ∝ exp(−ε'‖b‖/2).

    One vector θ over all A·p features at once, so b is one vector too. ε' = ε − 2·log(1 + 1/(4nλ))
    and κ = 0 if that ε' > 0; else ε' = ε/2 and κ = 1/(4n(e^{ε/4} − 1)) − λ. With radii, the
    predictor and a Gram with dense Gaussian noise take half of ε each.
    [Chaudhuri et al. 2011, Algorithm 2; paper, "Private logistic oracle";
    docs/privacy/logistic.md, "The paper's mechanism"]
    """

    epsilon: float
    gram: float

    @classmethod
    def of(cls, oracle: Logistic, problem: Problem, budget: Budget) -> Self:
        """The full ε for the predictor, or halves for predictor and Gram."""
        if not budget.private:
            return cls(oracle, problem, math.inf, 0.0, event=NO_BUDGET)
        often = problem.participation
        share = pure_share(budget, often)
        if not problem.radii:
            event: Event = ObjectivePerturbation("gamma", epsilon=share, assumes=IDEAL)
            return cls(oracle, problem, share, 0.0, event=event)
        need_delta(budget, "confidence radii")
        half = share / 2
        # Privacy: Δ_G = √2 (√(2A) with full feedback, where A equal blocks are noised) at
        # ρ(ε/2, δ), so the pair is (ε, δ)-DP. [docs/privacy/logistic.md, "The paper's mechanism"]
        d_gram, _ = paper_sensitivities(problem.feedback, problem.n_actions)
        rho = zcdp(budget.epsilon / 2, budget.delta) / (often.records**2 * often.batches)
        sigma = d_gram / math.sqrt(2.0 * rho)
        event = compose(
            ObjectivePerturbation("gamma", epsilon=half, assumes=IDEAL),
            Gaussian(sigma / d_gram, d_gram, assumes=IDEAL),
        )
        return cls(oracle, problem, half, sigma, event=event)

    @property
    def couples_actions(self) -> bool:
        """True if it releases a Gram, over all actions at once."""
        return self.problem.radii

    @property
    def noise_norm(self) -> float:
        """Expected norm of the perturbation of the gradient."""
        size = self.problem.p * self.problem.n_actions
        return float(2.0 * size * self.problem.losses_per_record / self.epsilon)

    def fit(self, batch: Batch, noise: Noise, _earlier: Sequence[Statistics] = ()) -> Fit:
        """Statistics → noise → solve."""
        problem = self.problem
        A, p = problem.n_actions, problem.p
        ridge, scale = self._ridge_and_scale(batch.records)
        drawn = noise.ball("objective", (A * p,))
        tilt = drawn.reshape(*drawn.shape[:-1], A, p)
        largest = LARGEST_EXPONENTIAL * A * p * np.asarray(scale)
        tolerance = public_tolerance(batch.records, problem, ridge, largest)
        theta = perturbed_minimum(batch, problem, tilt, scale, ridge, tolerance, exact=noise.exact)
        return Fit(Predictor(theta, "logistic"), self._gram(batch, noise))

    def _ridge_and_scale(self, records: int) -> tuple[Numbers, Numbers]:
        """Λ on the sum scale and the scale of the noise, both public."""
        ridge, rows = self.oracle.ridge, records * self.problem.losses_per_record
        extra, share = chaudhuri(
            np.asarray(self.epsilon) / self.problem.losses_per_record, rows, ridge
        )
        return rows * (ridge + extra), 2.0 / share

    def _gram(self, batch: Batch, noise: Noise) -> Gram | None:
        problem = self.problem
        if not problem.radii:
            return None
        step = self.gram * math.sqrt(2 * problem.p) + 1e-12 * batch.records
        if noise.exact:
            batch = legal_batch(batch, problem.feedback, problem.losses)
        blocks = floating_moments(batch, problem.feedback, 0.0).gram
        if not np.any(self.gram):
            return Gram(blocks, dense=False, step=step)
        values = dense_noisy_gram(blocks, batch.n_actions, self.gram, noise)
        return Gram(values, dense=True, step=step)


def chaudhuri(epsilon: Numbers, rows: int, ridge: Numbers) -> tuple[Numbers, Numbers]:
    """Extra ridge κ_j (mean scale) and ε'_j of Algorithm 2. [paper, "Private logistic oracle"]

    >>> chaudhuri(1.0, rows=1000, ridge=0.01)
    (array(0.), array(0.95061...))
    """
    epsilon, ridge = np.asarray(epsilon, dtype=float), np.asarray(ridge, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        left = epsilon - 2.0 * np.log1p(CURVATURE / (rows * ridge))
        extra = CURVATURE / (rows * np.expm1(epsilon / 4.0)) - ridge
    enough = left > 0
    return np.where(enough, 0.0, extra), np.where(enough, left, epsilon / 2.0)
