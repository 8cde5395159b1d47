"""Local-DP LinUCB: people send noisy statistics; the server is not trusted. [Zheng et al. 2020]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from discreet.lab.rivals.rival_contract import (
    RIDGE,
    PersonClock,
    RivalProblem,
    Scales,
    ShiftedLinUCB,
    noise_multiplier,
    noise_norm,
    published_norm,
)
from discreet.privacy.budget import Budget
from discreet.privacy.sensitivities import ridge_sensitivity


@dataclass(frozen=True)
class LocalLinUCB(ShiftedLinUCB):
    """Person t sends b bᵀ + B_t and (y − c)·b + ξ_t for all actions, zeros where not played.

    The server sums what it receives: after t people the noise of an entry has variance t·σ². The
    action is argmin_a bᵀV_a⁻¹u_a − β√(bᵀV_a⁻¹b).

    ``published``: σ = 4√(2 log(2.5/δ))/ε, half of the budget for the matrix and half for the
    vector, independent entries on and above the diagonal, and the shift 2γ_t,
    γ_t = σ√t·(4√p + 2 log(2T/α)), with rewards 1 − y, so c = 1.
    ``tight``: σ = Δ/μ(ε, δ) with the joint sensitivity Δ = √(81/32) at c = ½, and the ridge
    1 + ``shift``·σ√(2pt), in units of the noise's norm.

    >>> problem = RivalProblem(n_actions=2, p=4, rounds=1000)
    >>> [round(LocalLinUCB(constants=each).scales(problem, Budget(1.0, 1e-5)).response, 1)
    ...  for each in ("tight", "published")]
    [5.9, 19.9]

    Privacy: one Gaussian release per person. [docs/privacy/rivals.md, "Every person alone"]
    """

    shift: float = 4.0

    assumes: ClassVar[str] = "nobody is trusted: the server sees what each person sends"

    def clock(self, rounds: int) -> PersonClock:  # noqa: ARG002
        return PersonClock(self.lag)

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        if not budget.private:
            return Scales()
        if self.constants == "tight":
            sensitivity = ridge_sensitivity("bandit", problem.n_actions)
            sigma = sensitivity * noise_multiplier(budget)
            return Scales(sigma, sigma, sigma, RIDGE, self.shift * noise_norm(sigma, problem.p))
        sigma = 4 * math.sqrt(2 * math.log(2.5 / budget.delta)) / budget.epsilon
        shift = 2 * sigma * published_norm(problem)
        return Scales(math.sqrt(2.0) * sigma, sigma, sigma, 0.0, shift, centre=1.0)
