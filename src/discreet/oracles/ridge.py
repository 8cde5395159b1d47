"""Ridge regression by perturbed sufficient statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from discreet.backend import as_like, lift, namespace
from discreet.linalg import identity, solve_repaired, solve_vector
from discreet.oracles.gaussian_scales import (
    GaussianScales,
    calibrated,
    no_noise,
    paper_scales,
    structured_scales,
)
from discreet.oracles.moments import floating_moments, legal_batch
from discreet.oracles.perturb import dense_noisy_gram, noisy_statistics
from discreet.privacy.budget import Budget
from discreet.privacy.calibrate import need_delta
from discreet.privacy.events import Event
from discreet.privacy.mechanisms import centre
from discreet.privacy.noise import Noise
from discreet.release import Fit, Gram, Predictor
from discreet.statistics import Statistics
from discreet.types import Array, Batch
from discreet.validate import in_range, one_of, positive

MECHANISMS = ("structured", "paper")


@dataclass(frozen=True)
class Ridge:
    """Linear loss predictors: θ_a = (G̃_a + Λ I)⁻¹ q̃_a, Λ = n·ridge + noise_ridge·σ√(2p).

    ``structured`` noises the A blocks and centred responses in one joint Gaussian release;
    ``paper`` noises the whole (Ap)² Gram and the response by halves of a zCDP budget and
    solves plainly. Both are exact ridge regression when the budget is infinite, except that
    ``structured`` shrinks predictions to the middle of the losses and ``paper`` to 0.
    [paper, "Private quadratic oracle"; docs/privacy/ridge.md]

    >>> Ridge(ridge=0.01)
    Ridge(ridge=0.01, mechanism='structured', noise_ridge=2.0)
    """

    ridge: float = 0.01
    mechanism: str = "structured"
    noise_ridge: float = 2.0
    scales: GaussianScales | None = field(default=None, repr=False, compare=False)

    bounded = False
    """Predictions may leave [0, 1]."""

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)
        in_range("noise_ridge", self.noise_ridge, 0.0, math.inf)
        one_of("mechanism", self.mechanism, MECHANISMS)

    def calibrate(
        self, budget: Budget, *, feedback: str, losses: str, radii: bool, n_actions: int, p: int
    ) -> Ridge:
        """This oracle with its noise fixed; refuses what cannot be had."""
        need_delta(budget, "Gaussian noise")
        if not budget.private:
            return replace(self, scales=no_noise(feedback, losses, radii))
        if self.mechanism == "paper":
            return replace(self, scales=paper_scales(budget, feedback, losses, radii, n_actions))
        scales = structured_scales(budget, feedback, losses, radii, n_actions, p)
        return replace(self, scales=scales)

    def event(self, records: int) -> Event:  # noqa: ARG002
        """What a fit costs; it does not depend on the number of records."""
        return calibrated(self.scales).event

    def noise_norm(self, p: int, n_actions: int) -> float:
        """Expected operator norm of the noise on one solve."""
        size = p * n_actions if self.mechanism == "paper" else p
        return float(calibrated(self.scales).gram * math.sqrt(2 * size))

    def fit(self, batch: Batch, noise: Noise, earlier: Statistics | None = None) -> Fit:  # noqa: ARG002
        """Statistics → noise → solve."""
        if self.mechanism == "paper":
            return self._fit_paper(batch, noise)
        scales = calibrated(self.scales)
        gram, response = noisy_statistics(batch, scales, noise)
        p = gram.shape[-1]
        expected = scales.gram * math.sqrt(2 * p)
        shift = batch.records * self.ridge + self.noise_ridge * expected
        step = expected + 1e-12 * batch.records  # positive also without noise
        shifted = gram + lift(shift, gram, 3) * identity(p, gram)
        weights = solve_repaired(shifted, response, lift(step, gram, 1))
        weights = uncentred(weights, centre(scales.losses, batch.n_actions))
        kept = Gram(gram, dense=False, step=step) if scales.radii else None
        return Fit(Predictor(weights, "identity"), kept)

    def _fit_paper(self, batch: Batch, noise: Noise) -> Fit:
        """Dense noise on the whole Gram, uncentred responses, a plain solve."""
        scales = calibrated(self.scales)
        if noise.exact:
            # Privacy: Δ_G and Δ_q hold for legal rows, whatever was passed.
            # [docs/privacy/ridge.md, "Records and neighbours"]
            batch = legal_batch(batch, scales.feedback, scales.losses)
        moments = floating_moments(batch, scales.feedback, 0.0)
        A, p = batch.n_actions, batch.features.shape[-1]
        records = batch.records * (A if scales.feedback == "full" else 1)
        gram, response = moments.gram, moments.response
        if not np.any(scales.gram):  # without noise the blocks never meet
            shifted = gram + lift(records * self.ridge, gram, 3) * identity(p, gram)
            kept = Gram(gram, dense=False, step=1e-12 * records) if scales.radii else None
            return Fit(Predictor(solve_vector(shifted, response), "identity"), kept)
        gram = dense_noisy_gram(gram, A, scales.gram, noise)
        z = as_like(noise.normal("dense response", (A * p,)), gram)
        response = response.reshape(*response.shape[:-2], A * p)
        response = response + lift(scales.response, gram, 1) * z
        shifted = gram + lift(records * self.ridge, gram, 2) * identity(A * p, gram)
        weights = solve_vector(shifted, response)
        weights = weights.reshape(*weights.shape[:-1], A, p)
        kept = Gram(gram, dense=True, step=0.0) if scales.radii else None
        return Fit(Predictor(weights, "identity"), kept)


def uncentred(weights: Array, middle: float) -> Array:
    """Weights for losses from weights for centred ones: the bias feature is 1/√2."""
    shift = middle * math.sqrt(2.0)
    return namespace(weights).concat([weights[..., :1] + shift, weights[..., 1:]], axis=-1)
