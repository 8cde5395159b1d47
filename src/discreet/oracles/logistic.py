"""Logistic regression by objective perturbation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.backend import as_like, lift, namespace
from discreet.errors import InvalidInput
from discreet.oracles.exact_sums import attainable_norm
from discreet.oracles.moments import (
    GRID,
    exact_moments,
    floating_moments,
    legal_batch,
    legal_rows,
)
from discreet.oracles.newton import CURVATURE, minimise, ridge_like
from discreet.oracles.perturb import dense_noisy_gram, noisy_gram
from discreet.privacy.budget import Budget
from discreet.privacy.calibrate import gaussian_multiplier, need_delta, smallest_scale
from discreet.privacy.events import (
    STACKED,
    Event,
    Gaussian,
    NonPrivate,
    ObjectivePerturbation,
    compose,
)
from discreet.privacy.mechanisms import LARGEST_BATCH, paper_sensitivities, sampler_distance, zcdp
from discreet.privacy.noise import LARGEST_EXPONENTIAL, LARGEST_NORMAL, Noise
from discreet.release import Fit, Gram, Predictor
from discreet.statistics import Statistics
from discreet.types import Batch
from discreet.validate import one_of, positive

MECHANISMS = ("structured", "paper")
NOISES = ("auto", "gamma", "gaussian")
TOLERANCE = 1e-8
"""Public bound on the gradient norm of a returned minimiser; never the achieved value. Large
batches with a small ridge have a larger one: see ``public_tolerance``."""
OUTPUT_MULTIPLIER = 50.0
"""Gaussian output noise is 50 times the solver's sensitivity, 50/ε times below ε = 1: a sliver
of the budget, and still far below what a prediction can show."""
OUTPUT_SHARE = 0.01
"""Share of a pure ε that covers the solver's error."""
IDEAL = ("exact minimiser", "real arithmetic")
CONTINUOUS = (
    "the objective's noise is a rounded continuous draw",
    "the exponential function is accurate to 4 units in the last place",
)


@dataclass(frozen=True)
class ObjectiveScales:
    """What calibration fixed: which noise, how much of it, how small a ridge is allowed."""

    noise: str
    epsilon: float
    sigma: float
    gram: float
    least_ridge: float
    feedback: str
    losses: str
    radii: bool
    event: Event = field(repr=False, metadata={"stacked": STACKED})


@dataclass(frozen=True)
class Logistic:
    """Loss predictors σ(θ_a·b), θ = argmin Σ f(x·θ, y) + (Λ/2)‖θ‖² + noise·θ, Λ = n·ridge.

    ``structured`` separates by action: ``noise="gamma"`` is pure ε, ``"gaussian"`` is (ε, δ) by
    Rényi accounting, ``"auto"`` takes the smaller expected noise for the public p. ``paper`` is
    Chaudhuri et al. 2011, Algorithm 2. [paper, "Private logistic oracle"; docs/privacy/logistic.md]

    >>> Logistic(ridge=0.01)
    Logistic(ridge=0.01, mechanism='structured', noise='auto', least_ridge=5.0)
    """

    ridge: float = 0.01
    mechanism: str = "structured"
    noise: str = "auto"
    least_ridge: float = 5.0
    scales: ObjectiveScales | None = field(default=None, repr=False, compare=False)

    bounded = True
    """Predictions lie in [0, 1]."""

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)
        positive("least_ridge", self.least_ridge)
        one_of("mechanism", self.mechanism, MECHANISMS)
        one_of("noise", self.noise, NOISES)

    def calibrate(
        self, budget: Budget, *, feedback: str, losses: str, radii: bool, n_actions: int, p: int
    ) -> Logistic:
        """This oracle with its noise fixed; refuses what cannot be had."""
        common = (feedback, losses, radii)
        if not budget.private:
            nothing = NonPrivate("no privacy budget was set")
            # Which noise is absent matters only to stacks: the kind that most budgets would take.
            small = self.noise == "auto" and not radii and p <= 16
            gamma = self.mechanism == "paper" or self.noise == "gamma" or small
            kind = "gamma" if gamma else "gaussian"
            scales = ObjectiveScales(kind, math.inf, 0.0, 0.0, 0.0, *common, nothing)
            return replace(self, scales=scales)
        if radii:
            need_delta(budget, "confidence radii")
            if self.noise == "gamma" and self.mechanism == "structured":
                raise InvalidInput(
                    "noise must be 'gaussian' or 'auto' for a policy with radii; got 'gamma'. "
                    "A pure release has no Gram: drop noise='gamma' or choose another policy."
                )
        if self.mechanism == "paper":
            return replace(self, scales=_paper_scales(budget, *common, n_actions))
        pure = _gamma_scales(budget, *common)
        if self.noise == "gamma" or (self.noise == "auto" and budget.delta == 0.0):
            return replace(self, scales=pure)
        need_delta(budget, "Gaussian noise")
        normal = _gaussian_scales(budget, *common, n_actions, p, self.least_ridge)
        blocks = n_actions if feedback == "full" else 1
        gamma_norm = 2.0 * p * blocks / ((1 - OUTPUT_SHARE) * budget.epsilon)
        smaller = gamma_norm < normal.sigma * math.sqrt(p)
        choose_pure = self.noise == "auto" and not radii and smaller
        return replace(self, scales=pure if choose_pure else normal)

    def event(self, records: int) -> Event:  # noqa: ARG002
        """What a fit costs; it does not depend on the number of records."""
        return _calibrated(self.scales).event

    def noise_norm(self, p: int, n_actions: int) -> float:
        """Expected norm of the perturbation of one block's gradient."""
        scales = _calibrated(self.scales)
        if scales.noise == "gaussian":
            return float(scales.sigma * math.sqrt(p))
        blocks = n_actions if scales.feedback == "full" else 1
        size = p * n_actions if self.mechanism == "paper" else p
        return float(2.0 * size * blocks / scales.epsilon)

    def fit(self, batch: Batch, noise: Noise, earlier: Statistics | None = None) -> Fit:  # noqa: ARG002
        """Statistics → noise → solve."""
        scales = _calibrated(self.scales)
        grid = None
        if noise.exact:
            legal = legal_rows(batch, scales.feedback, scales.losses)
            features, weights, labels = legal.features, legal.weights, legal.targets
            grid = legal.grid
        else:
            features, xp = batch.features, namespace(batch.features)
            weights = xp.astype(batch.observed, features.dtype)
            labels = xp.where(xp.isfinite(batch.losses), batch.losses, 0.0)  # NaN: not observed
        if weights.shape[-1] != labels.shape[-1]:
            weights = weights + 0.0 * labels
        A, p = labels.shape[-1], features.shape[-1]
        ridge, scale = self._ridge_and_scale(batch.records, A)
        if self.mechanism == "paper":
            drawn = noise.ball("objective", (A * p,))
            tilt = drawn.reshape(*drawn.shape[:-1], A, p)
        elif scales.noise == "gamma":
            tilt = noise.ball("objective blocks", (A, p))
        else:
            tilt = noise.normal("objective blocks", (A, p))
        tilt = as_like(tilt, features) * lift(scale, features)
        tolerance = self._tolerance(batch.records, A, p)
        # Half of the public bound, shared by the blocks: the rest covers rounding.
        least = 0.5 * float(np.min(tolerance)) / math.sqrt(A)
        theta = minimise(features, weights, labels, ridge_like(ridge, features), tilt, least, grid)
        theta = theta + lift(self._output_scale(ridge, tolerance), theta) * as_like(
            self._output_noise(noise, A, p), theta
        )
        return Fit(Predictor(theta, "logistic"), self._gram(batch, noise))

    def _ridge_and_scale(self, records: int, n_actions: int) -> tuple[Any, Any]:
        """Λ on the sum scale and the scale of the noise, both public."""
        scales = _calibrated(self.scales)
        blocks = n_actions if scales.feedback == "full" else 1
        if self.mechanism == "paper":
            rows = records * blocks
            extra, share = chaudhuri(np.asarray(scales.epsilon) / blocks, rows, self.ridge)
            return rows * (self.ridge + extra), 2.0 / share
        ridge = records * np.asarray(self.ridge)
        if scales.noise == "gaussian":
            return np.maximum(ridge, scales.least_ridge), scales.sigma
        main = (1.0 - OUTPUT_SHARE) * np.asarray(scales.epsilon) / blocks
        # Privacy: where the logistic loss bends most its slope is small, so a ridge of 2/ε pays
        # for the determinant term and the noise keeps the whole ε.
        # [docs/privacy/logistic.md, "Pure ε"]
        return np.maximum(ridge, 2.0 / main), 2.0 / main

    def _tolerance(self, records: int, n_actions: int, p: int) -> Any:
        """The public bound τ on the gradient norm over all blocks."""
        ridge, scale = self._ridge_and_scale(records, n_actions)
        if _calibrated(self.scales).noise == "gaussian":
            largest = LARGEST_NORMAL * math.sqrt(p)
        else:
            largest = LARGEST_EXPONENTIAL * (p * n_actions if self.mechanism == "paper" else p)
        return public_tolerance(records, n_actions, p, ridge, largest * np.asarray(scale))

    def _output_scale(self, ridge: Any, tolerance: Any) -> Any:
        """Scale of the noise that hides the solver's error, of sensitivity 2τ/Λ."""
        scales = _calibrated(self.scales)
        if self.mechanism == "paper" or not np.any(np.isfinite(scales.epsilon)):
            return 0.0
        sensitivity = 2.0 * tolerance / ridge
        if scales.noise == "gaussian":
            return sensitivity * output_multiplier(scales.epsilon) * np.isfinite(scales.epsilon)
        return sensitivity / (OUTPUT_SHARE * np.asarray(scales.epsilon))

    def _output_noise(self, noise: Noise, n_actions: int, p: int) -> Any:
        scales = _calibrated(self.scales)
        if self.mechanism == "paper" or not np.any(np.isfinite(scales.epsilon)):
            return np.zeros((n_actions, p))
        if scales.noise == "gaussian":
            return noise.normal("output", (n_actions, p))
        drawn = noise.ball("output", (n_actions * p,))
        return drawn.reshape(*drawn.shape[:-1], n_actions, p)

    def _gram(self, batch: Batch, noise: Noise) -> Gram | None:
        scales = _calibrated(self.scales)
        if not scales.radii:
            return None
        p = batch.features.shape[-1]
        step = scales.gram * math.sqrt(2 * p) + 1e-12 * batch.records
        if self.mechanism == "paper":
            if noise.exact:
                batch = legal_batch(batch, scales.feedback, scales.losses)
            blocks = floating_moments(batch, scales.feedback, 0.0).gram
            if not np.any(scales.gram):
                return Gram(blocks, dense=False, step=step)
            values = dense_noisy_gram(blocks, batch.n_actions, scales.gram, noise)
            return Gram(values, dense=True, step=step)
        if noise.exact:
            moments = exact_moments(batch, scales.feedback, scales.losses)
        else:
            moments = floating_moments(batch, scales.feedback, 0.0)
        return Gram(noisy_gram(moments, scales.gram, noise, batch.features), False, step)


def public_tolerance(records: int, n_actions: int, p: int, ridge: Any, largest_tilt: Any) -> Any:
    """τ: 1e-8, or what floating point can certify for so many records.

    Privacy: a function of public numbers; the output noise is in proportion to it.
    [docs/privacy/logistic.md, "Rounding"]
    """
    attainable = attainable_norm(records, p, ridge, largest_tilt)
    return np.maximum(TOLERANCE, 2.0 * math.sqrt(n_actions) * attainable)


def output_multiplier(epsilon: Any) -> Any:
    """Output noise over the solver's sensitivity, for Gaussian noise."""
    return OUTPUT_MULTIPLIER * np.maximum(1.0, 1.0 / np.asarray(epsilon))


def chaudhuri(epsilon: Any, rows: int, ridge: Any) -> tuple[Any, Any]:
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


def _paper_scales(
    budget: Budget, feedback: str, losses: str, radii: bool, n_actions: int
) -> ObjectiveScales:
    """The full ε for the predictor, or halves for predictor and Gram."""
    if not radii:
        event: Event = ObjectivePerturbation("gamma", epsilon=budget.epsilon, assumes=IDEAL)
        return ObjectiveScales(
            "gamma", budget.epsilon, 0.0, 0.0, 0.0, feedback, losses, radii, event
        )
    half = budget.epsilon / 2
    # Privacy: Δ_G = √2 (√(2A) with full feedback, where A equal blocks are noised) at
    # ρ(ε/2, δ), so the pair is (ε, δ)-DP. [docs/privacy/logistic.md, "The paper's mechanism"]
    d_gram, _ = paper_sensitivities(feedback, n_actions)
    sigma = d_gram / math.sqrt(2.0 * zcdp(half, budget.delta))
    event = compose(
        ObjectivePerturbation("gamma", epsilon=half, assumes=IDEAL),
        Gaussian(sigma / d_gram, d_gram, assumes=IDEAL),
    )
    return ObjectiveScales("gamma", half, 0.0, sigma, 0.0, feedback, losses, radii, event)


def _gamma_scales(budget: Budget, feedback: str, losses: str, radii: bool) -> ObjectiveScales:
    event = ObjectivePerturbation("gamma", epsilon=budget.epsilon, assumes=CONTINUOUS)
    return ObjectiveScales("gamma", budget.epsilon, 0.0, 0.0, 0.0, feedback, losses, radii, event)


@lru_cache(maxsize=4096)
def _gaussian_scales(
    budget: Budget, feedback: str, losses: str, radii: bool, n_actions: int, p: int, least: float
) -> ObjectiveScales:
    """One Rényi budget for objective, solver error and, with radii, the Gram.

    Privacy: a larger ridge only lowers κ, so calibrating at the least one covers every batch.
    [docs/privacy/logistic.md, "Gaussian noise"]
    """
    blocks = n_actions if feedback == "full" else 1
    # The determinant terms of all blocks may take at most a quarter of ε.
    least = max(least, CURVATURE / math.expm1(budget.epsilon / (4.0 * blocks)))
    kappa = math.log1p(CURVATURE / least)
    coordinates = p * (p + 1)

    def event_at(sigma: float) -> Event:
        largest_tilt = LARGEST_NORMAL * math.sqrt(p) * sigma
        tolerance = public_tolerance(LARGEST_BATCH, n_actions, p, least, largest_tilt)
        parts: list[Event] = [
            ObjectivePerturbation(
                "gaussian", kappa=kappa, shift=2.0 / sigma, blocks=blocks, assumes=CONTINUOUS
            ),
            Gaussian(
                float(output_multiplier(budget.epsilon)),
                2.0 * float(tolerance) / least,
                assumes=CONTINUOUS,
            ),
        ]
        if radii:  # equal noise multipliers: √2/σ_G = 2/σ
            distance = sampler_distance(coordinates, sigma / math.sqrt(2.0) * GRID**2)
            gram = Gaussian(sigma / 2.0, math.sqrt(2.0), distance, coordinates=coordinates)
            parts.append(gram)
        return compose(*parts)

    sigma = smallest_scale(event_at, budget, 2.0 * gaussian_multiplier(budget))
    gram = sigma / math.sqrt(2.0) if radii else 0.0
    return ObjectiveScales(
        "gaussian", budget.epsilon, sigma, gram, least, feedback, losses, radii, event_at(sigma)
    )


def _calibrated(scales: ObjectiveScales | None) -> ObjectiveScales:
    if scales is None:
        raise TypeError("an oracle must be calibrated by a Plan before it is used")
    return scales
