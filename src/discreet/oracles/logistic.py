"""Logistic regression by objective perturbation: its configuration."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.oracles.contract import Mechanism, Problem
from discreet.oracles.mechanisms.paper_logistic import PaperLogistic
from discreet.oracles.mechanisms.structured_logistic import StructuredLogistic
from discreet.privacy.budget import Budget
from discreet.validate import one_of, positive

MECHANISMS: dict[str, type[StructuredLogistic | PaperLogistic]] = {
    "structured": StructuredLogistic,
    "paper": PaperLogistic,
}
NOISES = ("auto", "gamma", "gaussian")


@dataclass(frozen=True)
class Logistic:
    """Loss predictors σ(θ_a·b), θ = argmin Σ f(x·θ, y) + (Λ/2)‖θ‖² + noise·θ, Λ = n·ridge.

    ``structured`` separates by action: ``noise="gamma"`` is pure ε, ``"gaussian"`` is (ε, δ) by
    Rényi accounting, ``"auto"`` takes the smaller expected noise for the public p. ``paper`` is
    Algorithm 2 of Chaudhuri et al. [Chaudhuri et al. 2011; paper, "Private logistic oracle";
    docs/privacy/logistic.md]

    >>> Logistic(ridge=0.01)
    Logistic(ridge=0.01, mechanism='structured', noise='auto', least_ridge=5.0)
    """

    ridge: float = 0.01
    mechanism: str = "structured"
    noise: str = "auto"
    least_ridge: float = 5.0

    bounded = True
    """Predictions lie in [0, 1]."""

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)
        positive("least_ridge", self.least_ridge)
        one_of("mechanism", self.mechanism, MECHANISMS)
        one_of("noise", self.noise, NOISES)

    def calibrate(self, problem: Problem, budget: Budget) -> Mechanism:
        """The mechanism that ``mechanism`` names, with its noise fixed."""
        return MECHANISMS[self.mechanism].of(self, problem, budget)
