"""Ridge regression by perturbed sufficient statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from discreet.backend import as_like, lift, namespace
from discreet.linalg import identity, solve_repaired, solve_vector
from discreet.oracles.moments import GRID, exact_moments, floating_moments, legal_batch
from discreet.oracles.perturb import dense_noisy_gram, noisy_gram, noisy_response
from discreet.privacy.budget import Budget
from discreet.privacy.calibrate import gaussian_multiplier, need_delta, smallest_scale
from discreet.privacy.events import STACKED, Event, Gaussian, NonPrivate, compose
from discreet.privacy.mechanisms import (
    centre,
    paper_sensitivities,
    ridge_sensitivity,
    sampler_distance,
    zcdp,
)
from discreet.privacy.noise import Noise
from discreet.release import Fit, Gram, Predictor
from discreet.types import Batch
from discreet.validate import in_range, one_of, positive

MECHANISMS = ("structured", "paper")
IDEAL = ("real arithmetic",)


@dataclass(frozen=True)
class GaussianScales:
    """Standard deviations in natural units, fixed once by the plan; zero without privacy."""

    gram: float
    response: float
    feedback: str
    losses: str
    radii: bool
    event: Event = field(repr=False, metadata={"stacked": STACKED})


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
            nothing = NonPrivate("no privacy budget was set")
            return replace(self, scales=GaussianScales(0.0, 0.0, feedback, losses, radii, nothing))
        make = _paper_scales if self.mechanism == "paper" else _structured_scales
        return replace(self, scales=make(budget, feedback, losses, radii, n_actions, p))

    def event(self, records: int) -> Event:  # noqa: ARG002
        """What a fit costs; it does not depend on the number of records."""
        return _calibrated(self.scales).event

    def noise_norm(self, p: int, n_actions: int) -> float:
        """Expected operator norm of the noise on one solve."""
        size = p * n_actions if self.mechanism == "paper" else p
        return float(_calibrated(self.scales).gram * math.sqrt(2 * size))

    def fit(self, batch: Batch, noise: Noise) -> Fit:
        """Statistics → noise → solve."""
        if self.mechanism == "paper":
            return self._fit_paper(batch, noise)
        scales = _calibrated(self.scales)
        middle = centre(scales.losses, batch.n_actions)
        if noise.exact:
            moments = exact_moments(batch, scales.feedback, scales.losses)
        else:
            moments = floating_moments(batch, scales.feedback, middle)
        gram = noisy_gram(moments, scales.gram, noise, batch.features)
        response = noisy_response(moments, scales.response, noise, batch.features)
        p = gram.shape[-1]
        expected = scales.gram * math.sqrt(2 * p)
        shift = batch.records * self.ridge + self.noise_ridge * expected
        step = expected + 1e-12 * batch.records  # positive also without noise
        shifted = gram + lift(shift, gram, 3) * identity(p, gram)
        weights = solve_repaired(shifted, response, lift(step, gram, 1))
        # Losses were centred; the bias feature is 1/√2, so the middle is a bias weight of √2·it.
        xp = namespace(weights)
        bias = xp.concat([weights[..., :1] + middle * math.sqrt(2.0), weights[..., 1:]], axis=-1)
        kept = Gram(gram, dense=False, step=step) if scales.radii else None
        return Fit(Predictor(bias, "identity"), kept)

    def _fit_paper(self, batch: Batch, noise: Noise) -> Fit:
        """Dense noise on the whole Gram, uncentred responses, a plain solve."""
        scales = _calibrated(self.scales)
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


@lru_cache(maxsize=4096)
def _paper_scales(
    budget: Budget,
    feedback: str,
    losses: str,
    radii: bool,
    n_actions: int,
    p: int,  # noqa: ARG001
) -> GaussianScales:
    """Half of the zCDP budget each, in the Frobenius geometry of symmetric matrices."""
    rho = zcdp(budget.epsilon, budget.delta)
    d_gram, d_response = paper_sensitivities(feedback, n_actions, losses == "one_label")
    # Privacy: σ = Δ/√ρ is ρ/2-zCDP for each of the two.
    # [docs/privacy/ridge.md, "The paper's release"]
    sigma = (d_gram / math.sqrt(rho), d_response / math.sqrt(rho))
    event = compose(
        Gaussian(sigma[0] / d_gram, d_gram, assumes=IDEAL),
        Gaussian(sigma[1] / d_response, d_response, assumes=IDEAL),
    )
    return GaussianScales(*sigma, feedback, losses, radii, event)


@lru_cache(maxsize=4096)
def _structured_scales(
    budget: Budget, feedback: str, losses: str, radii: bool, n_actions: int, p: int
) -> GaussianScales:
    """One standard deviation for all blocks and responses."""
    sensitivity = ridge_sensitivity(feedback, n_actions, losses == "one_label")
    blocks = 2 if feedback == "bandit" else 1
    coordinates = blocks * p * (p + 1) // 2 + (2 if blocks == 2 else n_actions) * p

    def event_at(multiplier: float) -> Gaussian:
        grid_sigma = multiplier * sensitivity * GRID**2  # the coarsest coordinate
        return Gaussian(multiplier, sensitivity, sampler_distance(coordinates, grid_sigma))

    multiplier = smallest_scale(event_at, budget, gaussian_multiplier(budget))
    # Privacy: one joint Gaussian release of all blocks.
    # [docs/privacy/ridge.md, "The structured release"]
    sigma = multiplier * sensitivity
    return GaussianScales(sigma, sigma, feedback, losses, radii, event_at(multiplier))


def _calibrated(scales: GaussianScales | None) -> GaussianScales:
    if scales is None:
        raise TypeError("an oracle must be calibrated by a Plan before it is used")
    return scales
