"""Logistic regression by objective perturbation: ``structured`` and ``paper`` of ``Logistic``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.arrays.backend import as_like, per_run
from discreet.batch import Batch
from discreet.errors import InvalidInput
from discreet.oracles.contract import Calibrated, Problem
from discreet.oracles.mechanisms.legal_rows import GRID, legal_batch
from discreet.oracles.mechanisms.moments import exact_moments, floating_moments
from discreet.oracles.mechanisms.newton import CURVATURE, perturbed_minimum, public_tolerance
from discreet.oracles.mechanisms.perturb import dense_noisy_gram, noisy_gram
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import (
    gaussian_multiplier,
    need_delta,
    pure_share,
    smallest_scale,
)
from discreet.privacy.events import (
    NO_BUDGET,
    REAL_ARITHMETIC,
    Event,
    Gaussian,
    ObjectivePerturbation,
    compose,
)
from discreet.privacy.noise import LARGEST_EXPONENTIAL, LARGEST_NORMAL, Noise
from discreet.privacy.sensitivities import (
    LARGEST_BATCH,
    paper_sensitivities,
    sampler_distance,
    zcdp,
)
from discreet.releases.release import Fit, Gram, Predictor
from discreet.releases.statistics import Statistics
from discreet.types import Numbers

if TYPE_CHECKING:
    from discreet.oracles.configurations import Logistic

OUTPUT_MULTIPLIER = 50.0
"""Gaussian output noise is 50 times the solver's sensitivity (50/ε times for ε < 1): it costs
little of the budget, and predictions hardly change."""
OUTPUT_SHARE = 0.01
"""Share of a pure ε that covers the solver's error."""
CONTINUOUS = (
    "the objective's noise is a rounded continuous draw",
    "the exponential function is accurate to 4 units in the last place",
)
IDEAL = ("exact minimiser", REAL_ARITHMETIC)


@dataclass(frozen=True)
class StructuredLogistic(Calibrated["Logistic"]):
    """θ_a = argmin Σ f(x·θ, y) + (Λ/2)‖θ‖² + b_a·θ for each action, and noise on the minimiser.

    ``noise`` "gamma": b_a of density ∝ exp(−ε‖b‖/2), Λ ≥ 2/ε, pure ε. "gaussian": b_a ~ N(0, σ²I),
    Λ ≥ ``least_ridge``, and a noisy Gram where the policy asks for radii.
    [docs/privacy/logistic.md]
    """

    noise: str
    epsilon: float
    sigma: float
    gram: float
    least_ridge: float

    @classmethod
    def of(cls, oracle: Logistic, problem: Problem, budget: Budget) -> Self:
        radii, p = problem.radii, problem.p
        if not budget.private:
            # Without a budget, the kind matters only in stacks: take the one that most budgets use.
            gamma = oracle.noise == "gamma" or (oracle.noise == "auto" and not radii and p <= 16)
            noise = "gamma" if gamma else "gaussian"
            return cls(oracle, problem, noise, math.inf, 0.0, 0.0, 0.0, event=NO_BUDGET)
        if radii:
            need_delta(budget, "confidence radii")
            if oracle.noise == "gamma":
                raise InvalidInput(
                    "noise must be 'gaussian' or 'auto' for a policy with radii; got 'gamma'. "
                    "A pure release has no Gram: drop noise='gamma' or choose another policy."
                )
        share = pure_share(budget, problem.participation)
        event: Event = ObjectivePerturbation("gamma", epsilon=share, assumes=CONTINUOUS)
        pure = cls(oracle, problem, "gamma", share, 0.0, 0.0, 0.0, event=event)
        several = problem.participation.records > 1 and not radii
        if oracle.noise == "gamma" or (oracle.noise == "auto" and (budget.delta == 0.0 or several)):
            return pure
        need_delta(budget, "Gaussian noise")
        sigma, gram, least, event = gaussian_objective(problem, budget, oracle.least_ridge)
        gamma_norm = 2.0 * p * problem.losses_per_record / ((1 - OUTPUT_SHARE) * share)
        if oracle.noise == "auto" and not radii and gamma_norm < sigma * math.sqrt(p):
            return pure
        level = per_release(problem, budget)
        return cls(oracle, problem, "gaussian", level, sigma, gram, least, event=event)

    @property
    def noise_norm(self) -> float:
        """Expected norm of the perturbation of one block's gradient."""
        if self.noise == "gaussian":
            return float(self.sigma * math.sqrt(self.problem.p))
        return float(2.0 * self.problem.p * self.problem.losses_per_record / self.epsilon)

    def fit(self, batch: Batch, noise: Noise, _earlier: Sequence[Statistics] = ()) -> Fit:
        problem, shape = self.problem, (self.problem.n_actions, self.problem.p)
        ridge, scale = self._ridge_and_scale(batch.records)
        tolerance = self._tolerance(batch.records)
        draw = noise.ball if self.noise == "gamma" else noise.normal
        tilt = draw("objective blocks", shape)
        theta = perturbed_minimum(batch, problem, tilt, scale, ridge, tolerance, exact=noise.exact)
        output = as_like(self._output_noise(noise, *shape), theta)
        theta = theta + per_run(self._output_scale(ridge, tolerance), theta) * output
        return Fit(Predictor(theta, "logistic"), self._gram(batch, noise))

    def _ridge_and_scale(self, records: int) -> tuple[Numbers, Numbers]:
        """Λ on the sum scale and the scale of the noise, both public."""
        ridge = records * np.asarray(self.oracle.ridge)
        if self.noise == "gaussian":
            return np.maximum(ridge, self.least_ridge), self.sigma
        main = (1.0 - OUTPUT_SHARE) * np.asarray(self.epsilon) / self.problem.losses_per_record
        # Privacy: where the logistic loss bends most its slope is small, so a ridge of 2/ε pays
        # for the determinant term and the noise keeps the whole ε.
        # [docs/privacy/logistic.md, "Pure ε"]
        return np.maximum(ridge, 2.0 / main), 2.0 / main

    def _tolerance(self, records: int) -> Numbers:
        """The public bound τ on the gradient norm over all blocks."""
        ridge, scale = self._ridge_and_scale(records)
        p = self.problem.p
        normal = self.noise == "gaussian"
        largest = LARGEST_NORMAL * math.sqrt(p) if normal else LARGEST_EXPONENTIAL * p
        return public_tolerance(records, self.problem, ridge, largest * np.asarray(scale))

    def _output_scale(self, ridge: Numbers, tolerance: Numbers) -> Numbers:
        """Scale of the noise that hides the solver's error, of sensitivity 2τ/Λ."""
        if not np.any(np.isfinite(self.epsilon)):
            return 0.0
        sensitivity = 2.0 * tolerance / ridge
        if self.noise == "gaussian":
            return sensitivity * output_multiplier(self.epsilon) * np.isfinite(self.epsilon)
        return sensitivity / (OUTPUT_SHARE * np.asarray(self.epsilon))

    def _output_noise(self, noise: Noise, n_actions: int, p: int) -> Numbers:
        if not np.any(np.isfinite(self.epsilon)):
            return np.zeros((n_actions, p))
        if self.noise == "gaussian":
            return noise.normal("output", (n_actions, p))
        drawn = noise.ball("output", (n_actions * p,))
        return drawn.reshape(*drawn.shape[:-1], n_actions, p)

    def _gram(self, batch: Batch, noise: Noise) -> Gram | None:
        problem = self.problem
        if not problem.radii:
            return None
        step = self.gram * math.sqrt(2 * problem.p) + 1e-12 * batch.records
        if noise.exact:
            moments = exact_moments(batch, problem.feedback, problem.losses)
        else:
            moments = floating_moments(batch, problem.feedback, 0.0)
        return Gram(noisy_gram(moments, self.gram, noise), False, step)


def output_multiplier(epsilon: Numbers) -> Numbers:
    """Output noise over the solver's sensitivity, for Gaussian noise."""
    return OUTPUT_MULTIPLIER * np.maximum(1.0, 1.0 / np.asarray(epsilon))


def per_release(problem: Problem, budget: Budget) -> float:
    """The ε by which the noise that hides the solver's error is chosen: ε/√M, as noise adds up."""
    return budget.epsilon / math.sqrt(problem.participation.batches)


@lru_cache(maxsize=4096)
def gaussian_objective(
    problem: Problem, budget: Budget, least: float
) -> tuple[float, float, float, Event]:
    """σ of objective and Gram, least ridge and event: one Rényi budget, solver error included.

    Privacy: a larger ridge only lowers κ, so calibrating at the least one covers every batch.
    [docs/privacy/logistic.md, "Gaussian noise"]
    """
    blocks, p = problem.losses_per_record, problem.p
    radii, often = problem.radii, problem.participation
    # The determinant terms of all blocks of all releases may take at most a quarter of ε.
    least = max(least, CURVATURE / math.expm1(budget.epsilon / (4.0 * blocks * often.batches)))
    kappa = math.log1p(CURVATURE / least)
    coordinates = p * (p + 1)

    def event_at(sigma: float) -> Event:
        largest_tilt = LARGEST_NORMAL * math.sqrt(p) * sigma
        tolerance = public_tolerance(LARGEST_BATCH, problem, least, largest_tilt)
        parts: list[Event] = [
            ObjectivePerturbation(
                "gaussian", kappa=kappa, shift=2.0 / sigma, blocks=blocks, assumes=CONTINUOUS
            ),
            Gaussian(
                float(output_multiplier(per_release(problem, budget))),
                2.0 * float(tolerance) / least,
                assumes=CONTINUOUS,
            ),
        ]
        if radii:  # equal noise multipliers: √2/σ_G = 2/σ
            distance = sampler_distance(coordinates, sigma / math.sqrt(2.0) * GRID**2)
            gram = Gaussian(sigma / 2.0, math.sqrt(2.0), distance, coordinates=coordinates)
            parts.append(gram)
        return compose(*parts)

    guess = 2.0 * gaussian_multiplier(budget, often)
    sigma = smallest_scale(event_at, budget, guess, often)
    gram = sigma / math.sqrt(2.0) if radii else 0.0
    return sigma, gram, least, event_at(sigma)


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
