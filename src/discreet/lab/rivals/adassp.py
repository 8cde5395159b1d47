"""AdaSSP: ridge regression whose ridge adapts to a private smallest eigenvalue. [Wang 2018]"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays.backend import as_like, at_least, namespace, per_run
from discreet.arrays.linear_algebra import identity, solve_repaired
from discreet.batch import Batch
from discreet.lab.rivals.rival_contract import CONSTANTS, noise_multiplier
from discreet.oracles.contract import Calibrated, Problem
from discreet.oracles.mechanisms.moments import exact_moments, floating_moments, needs_double
from discreet.oracles.mechanisms.perturb import noisy_gram, noisy_totals
from discreet.oracles.mechanisms.ridge import uncentred
from discreet.privacy.budget import Budget
from discreet.privacy.events import NO_BUDGET, REAL_ARITHMETIC, Composed, Gaussian
from discreet.privacy.noise import Noise
from discreet.privacy.sensitivities import centre
from discreet.releases.release import Fit, Predictor
from discreet.releases.statistics import Statistics
from discreet.validate import in_range, one_of

PARTS = 3
"""Smallest eigenvalues, Grams and responses share the budget evenly."""
EIGENVALUES = math.sqrt(2.0)
"""A replaced record leaves one block and enters another: two smallest eigenvalues by at most 1."""
GRAM = math.sqrt(2.0)
RESPONSE = 1.0
"""Centred at ½, ‖(y − ½)b − (y' − ½)b'‖ ≤ ½ + ½."""


@dataclass(frozen=True)
class AdaSSP:
    """θ_a = (G̃_a + λ_a I)⁻¹ q̃_a with λ_a = max(0, √(p log(2p²/ϱ))·σ_G − λ̃_a).

    λ̃_a = max(0, λ_min(G_a) + σ_λ z − σ_λ√(2 log(1/ϱ))) is a private lower bound of the smallest
    eigenvalue: where the data are many, no ridge is left. ``failure`` is ϱ.

    ``published``: σ = √(log(6/δ))/(ε/3) for each of the three parts; the paper has it on every
    entry of the triangle, here off-diagonal entries have σ/√2.
    ``tight``: σ = √3·Δ/μ(ε, δ) with Δ_λ = Δ_G = √2 and Δ_q = 1 under replacement of one record.

    Privacy: three Gaussian releases. [docs/privacy/rivals.md, "AdaSSP"]
    """

    constants: str = "tight"
    failure: float = 0.05

    bounded = False
    """Predictions may leave [0, 1]."""

    def __post_init__(self) -> None:
        one_of("constants", self.constants, CONSTANTS)
        in_range("failure", self.failure, 1e-9, 0.5)

    def calibrate(self, problem: Problem, budget: Budget) -> AdaptiveRidge:
        """Three parts of the budget; bandit feedback alone has a bound."""
        if not budget.private:
            return AdaptiveRidge(self, problem, 0.0, 0.0, 0.0, event=NO_BUDGET)
        one_of("feedback", problem.feedback, ("bandit",))
        one_of("radii", str(bool(problem.radii)), ("False",))
        moves = (EIGENVALUES, GRAM, RESPONSE)
        if self.constants == "published":
            sigma = PARTS * math.sqrt(math.log(6 / budget.delta)) / budget.epsilon
            scales = (sigma, sigma, sigma)
        else:
            each = math.sqrt(PARTS) * noise_multiplier(budget)
            scales = (each * moves[0], each * moves[1], each * moves[2])
        assumes = (REAL_ARITHMETIC,)
        parts = [
            Gaussian(scale / move, move, assumes=assumes)
            for scale, move in zip(scales, moves, strict=True)
        ]
        return AdaptiveRidge(self, problem, *scales, event=Composed(tuple(parts)))


@dataclass(frozen=True)
class AdaptiveRidge(Calibrated[AdaSSP]):
    """AdaSSP, calibrated for a problem and a budget."""

    eigenvalue: float
    gram: float
    response: float

    @property
    def noise_norm(self) -> float:
        """Expected operator norm of the noise on one solve."""
        return float(self.gram * math.sqrt(2 * self.problem.p))

    def fit(self, batch: Batch, noise: Noise, _earlier: Sequence[Statistics] = ()) -> Fit:
        """Statistics → noise → solve."""
        feedback, losses = self.problem.feedback, self.problem.losses
        middle = centre(losses, batch.n_actions)
        if noise.exact:
            moments = exact_moments(batch, feedback, losses)
        else:
            double = needs_double(self.gram)
            moments = floating_moments(batch, feedback, middle, double=double)
        xp: Any = namespace(moments.gram)
        smallest = xp.linalg.eigvalsh(moments.gram * moments.gram_unit)[..., 0]  # (..., A or 1)
        gram = noisy_gram(moments, self.gram, noise)
        unit = moments.response_unit
        response = noisy_totals("response", moments.response, 2, self.response, unit, noise)
        p = gram.shape[-1]
        rare = np.log(1.0 / np.asarray(self.oracle.failure))  # a stack has arrays here
        scale = per_run(self.eigenvalue, smallest, 1)
        drawn = as_like(noise.normal("smallest eigenvalue", (smallest.shape[-1],)), smallest)
        bound = smallest + scale * drawn - per_run(self.eigenvalue * np.sqrt(2 * rare), smallest, 1)
        norm = per_run(self.gram * np.sqrt(p * (rare + math.log(2 * p**2))), smallest, 1)
        ridge = at_least(norm - at_least(bound, 0.0), 0.0)
        ridge = ridge + 1e-6 * batch.records  # without data or noise there is something to solve
        shifted = gram + ridge[..., None, None] * identity(p, gram)
        step = per_run(self.gram, smallest, 1) * math.sqrt(2 * p) + 1e-6 * batch.records
        weights = solve_repaired(shifted, response, step + 0.0 * ridge)
        weights = as_like(uncentred(weights, middle), batch.features[..., :0, :])
        return Fit(Predictor(weights, "identity"))
