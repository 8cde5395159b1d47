"""Ridge regression from one batch: the mechanisms ``structured`` and ``paper`` of ``Ridge``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.arrays.backend import as_like, namespace, per_run
from discreet.arrays.linear_algebra import identity, solve_repaired, solve_vector
from discreet.batch import Batch
from discreet.oracles.contract import Calibrated, Problem
from discreet.oracles.mechanisms.legal_rows import legal_batch
from discreet.oracles.mechanisms.moments import floating_moments, needs_double
from discreet.oracles.mechanisms.perturb import (
    dense_noisy_gram,
    noisy_statistics,
    structured_scales,
)
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import need_delta
from discreet.privacy.events import NO_BUDGET, REAL_ARITHMETIC, Gaussian, compose
from discreet.privacy.noise import Noise
from discreet.privacy.sensitivities import centre, paper_sensitivities, zcdp
from discreet.releases.release import Fit, Gram, Predictor
from discreet.releases.statistics import Statistics
from discreet.types import Array

if TYPE_CHECKING:
    from discreet.oracles.configurations import Ridge

IDEAL = (REAL_ARITHMETIC,)


@dataclass(frozen=True)
class StructuredRidge(Calibrated["Ridge"]):
    """θ_a = (G̃_a + Λ I)⁻¹ q̃_a, Λ = n·ridge + noise_ridge·σ√(2p), from one joint release.

    Each action has its block G_a = Σ b bᵀ and response q_a = Σ (y − centre)·b over its own rows;
    full information shares one block. All are noised at once with standard deviation σ.
    [docs/privacy/ridge.md, "The structured release"]
    """

    gram: float
    response: float

    summable = True

    @classmethod
    def of(cls, oracle: Ridge, problem: Problem, budget: Budget) -> Self:
        gram, response, event = structured_scales(problem, budget)
        return cls(oracle, problem, gram, response, event=event)

    @property
    def noise_norm(self) -> float:
        """Expected operator norm of the noise on one solve."""
        return float(self.gram * math.sqrt(2 * self.problem.p))

    def fit(self, batch: Batch, noise: Noise, _earlier: Sequence[Statistics] = ()) -> Fit:
        scales, ridge = (self.gram, self.response), self.oracle.ridge
        gram, response, _ = noisy_statistics(batch, self.problem, *scales, noise, ridge=ridge)
        p = gram.shape[-1]
        expected = self.gram * math.sqrt(2 * p)
        shift = batch.records * self.oracle.ridge + self.oracle.noise_ridge * expected
        step = expected + 1e-12 * batch.records  # positive also without noise
        weights = solve_repaired(gram, response, per_run(step, gram, 1), shift)
        weights = uncentred(weights, centre(self.problem.losses, batch.n_actions))
        like = batch.features[..., :0, :]  # its type, and no row
        released = Gram(as_like(gram, like), False, step) if self.problem.radii else None
        return Fit(Predictor(as_like(weights, like), "identity"), released)


def uncentred(weights: Array, middle: float) -> Array:
    """Weights for losses from weights for centred ones: the bias feature is 1/√2."""
    shift = middle * math.sqrt(2.0)
    return namespace(weights).concat([weights[..., :1] + shift, weights[..., 1:]], axis=-1)


@dataclass(frozen=True)
class PaperRidge(Calibrated["Ridge"]):
    """θ = (G + E + nλI)⁻¹ (q + z) over all A·p features at once, without a repair.

    G is the whole (Ap)² Gram of the features e_a ⊗ b, q the response with uncentred losses,
    E = σ_G(W + Wᵀ)/2 and z ~ N(0, σ_q²I) with W standard normal. Each of G and q
    takes half of the zCDP budget: σ = Δ/√ρ, ρ = (√(log(1/δ) + ε) − √log(1/δ))².
    [paper, "Private quadratic oracle"; docs/privacy/ridge.md, "The paper's release"]
    """

    gram: float
    response: float

    @classmethod
    def of(cls, oracle: Ridge, problem: Problem, budget: Budget) -> Self:
        """Half of the zCDP budget for G and for q, in the Frobenius norm of symmetric matrices."""
        if not budget.private:
            return cls(oracle, problem, 0.0, 0.0, event=NO_BUDGET)
        need_delta(budget, "Gaussian noise")
        often = problem.participation
        # Privacy: k records in each of M batches cost k²·M times the ρ of one record.
        # [docs/privacy/users.md, "Claim"]
        rho = zcdp(budget.epsilon, budget.delta) / (often.records**2 * often.batches)
        one_label = problem.losses == "one_label"
        d_gram, d_response = paper_sensitivities(problem.feedback, problem.n_actions, one_label)
        # Privacy: σ = Δ/√ρ is ρ/2-zCDP for each of the two.
        # [docs/privacy/ridge.md, "The paper's release"]
        sigma = (d_gram / math.sqrt(rho), d_response / math.sqrt(rho))
        event = compose(
            Gaussian(sigma[0] / d_gram, d_gram, assumes=IDEAL),
            Gaussian(sigma[1] / d_response, d_response, assumes=IDEAL),
        )
        return cls(oracle, problem, *sigma, event=event)

    @property
    def couples_actions(self) -> bool:
        """True: noise is drawn for the Gram over all actions at once."""
        return True

    @property
    def noise_norm(self) -> float:
        """Expected operator norm of the noise on the one solve."""
        return float(self.gram * math.sqrt(2 * self.problem.p * self.problem.n_actions))

    def fit(self, batch: Batch, noise: Noise, _earlier: Sequence[Statistics] = ()) -> Fit:
        """Dense noise on the whole Gram, uncentred responses, a solve without a repair."""
        problem, ridge = self.problem, self.oracle.ridge
        if noise.exact:
            # Privacy: Δ_G and Δ_q hold for legal rows, so every row is made legal.
            # [docs/privacy/ridge.md, "Records and neighbours"]
            batch = legal_batch(batch, problem.feedback, problem.losses)
        double = needs_double(self.gram, self.oracle.ridge)
        moments = floating_moments(batch, problem.feedback, 0.0, double=double)
        A, p, like = batch.n_actions, batch.features.shape[-1], batch.features[..., :0, :]
        records = batch.records * problem.losses_per_record
        gram, response = moments.gram, moments.response
        if not np.any(self.gram):  # without noise the blocks are separate problems
            shifted = gram + per_run(records * ridge, gram, 3) * identity(p, gram)
            weights = as_like(solve_vector(shifted, response), like)
            released = Gram(as_like(gram, like), False, 1e-12 * records) if problem.radii else None
            return Fit(Predictor(weights, "identity"), released)
        gram = dense_noisy_gram(gram, A, self.gram, noise)
        z = as_like(noise.normal("dense response", (A * p,)), gram)
        response = response.reshape(*response.shape[:-2], A * p)
        response = response + per_run(self.response, gram, 1) * z
        shifted = gram + per_run(records * ridge, gram, 2) * identity(A * p, gram)
        weights = solve_vector(shifted, response)
        weights = as_like(weights.reshape(*weights.shape[:-1], A, p), like)
        released = Gram(as_like(gram, like), dense=True, step=0.0) if problem.radii else None
        return Fit(Predictor(weights, "identity"), released)
