"""Joint-DP LinUCB on disjoint batches: every person is in one release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from discreet.lab.rivals.rival_contract import (
    RIDGE,
    BatchClock,
    RivalProblem,
    Scales,
    noise_multiplier,
    noise_norm,
)
from discreet.privacy.budget import Budget
from discreet.privacy.sensitivities import ridge_sensitivity
from discreet.validate import in_range


@dataclass(frozen=True)
class BatchedLinUCB:
    """LinUCB on the sum of all releases so far, one for each batch, σ = Δ/μ(ε, δ).

    Batch m closes with noisy Σ b bᵀ and Σ (y − ½)·b of its own people; after m batches an entry's
    noise has variance m·σ². The policy changes when a batch closes. No paper fixes constants for
    this form, so it has tight ones only: Δ = √(81/32), ridge 1 + ``shift``·σ√(2pm).

    >>> problem = RivalProblem(n_actions=2, p=4, rounds=1000)
    >>> round(BatchedLinUCB().scales(problem, Budget(1.0, 1e-5)).gram, 3)
    5.935

    Privacy: one Gaussian release per person. [docs/privacy/rivals.md, "Disjoint batches"]
    """

    width: float = 0.1
    shift: float = 2.0
    first: int = 16
    growth: float = 1.5

    assumes: ClassVar[str] = "a trusted server; all others together see every later policy"

    def __post_init__(self) -> None:
        in_range("width", self.width, 0.0, math.inf)
        in_range("shift", self.shift, 0.0, math.inf)

    def clock(self, rounds: int) -> BatchClock:  # noqa: ARG002
        return BatchClock(self.first, self.growth)

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        if not budget.private:
            return Scales()
        sigma = ridge_sensitivity("bandit", problem.n_actions) * noise_multiplier(budget)
        return Scales(sigma, sigma, sigma, RIDGE, self.shift * noise_norm(sigma, problem.p))
