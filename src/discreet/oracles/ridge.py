"""Ridge regression by perturbed sufficient statistics: its configuration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.oracles.contract import Mechanism, Problem
from discreet.oracles.mechanisms.paper_ridge import PaperRidge
from discreet.oracles.mechanisms.structured_ridge import StructuredRidge
from discreet.privacy.budget import Budget
from discreet.validate import in_range, one_of, positive

MECHANISMS: dict[str, type[StructuredRidge | PaperRidge]] = {
    "structured": StructuredRidge,
    "paper": PaperRidge,
}


@dataclass(frozen=True)
class Ridge:
    """Linear loss predictors: θ_a = (G̃_a + Λ I)⁻¹ q̃_a, Λ = n·ridge + noise_ridge·σ√(2p).

    ``structured`` noises the A blocks and centred responses in one joint Gaussian release;
    ``paper`` noises the whole (Ap)² Gram and the response, with half of a zCDP budget each, and
    solves without a repair. Both are exact ridge regression for an infinite budget, except that
    ``structured`` shrinks predictions to the middle of the losses and ``paper`` to 0.
    [paper, "Private quadratic oracle"; docs/privacy/ridge.md]

    >>> Ridge(ridge=0.01)
    Ridge(ridge=0.01, mechanism='structured', noise_ridge=2.0)
    """

    ridge: float = 0.01
    mechanism: str = "structured"
    noise_ridge: float = 2.0

    bounded = False
    """Predictions may leave [0, 1]."""

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)
        in_range("noise_ridge", self.noise_ridge, 0.0, math.inf)
        one_of("mechanism", self.mechanism, MECHANISMS)

    def calibrate(self, problem: Problem, budget: Budget) -> Mechanism:
        """The mechanism that ``mechanism`` names, with its noise fixed."""
        return MECHANISMS[self.mechanism].of(self, problem, budget)
