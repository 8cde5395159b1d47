"""AdaPrivate-TS: Thompson sampling whose posterior counts the noise. [Riyazat and Ukwatta 2026]"""

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
from discreet.validate import in_range, one_of

GRAMS = ("protected", "clear")
LOSS = 1.0
"""A replaced loss moves Σ (y − ½)·b by ‖b‖ ≤ 1 at most."""


@dataclass(frozen=True)
class AdaPrivateTS:
    """argmin_a of L_a ~ N(bᵀA_a⁻¹u_a, bᵀ(v²A_a⁻¹ + mσ²A_a⁻²)b) after m disjoint batches.

    u_a = Σ (y − ½)·b carries noise N(0, mσ²I). ``width`` is v. The noise alone spreads A_a⁻¹u_a by
    mσ²A_a⁻² around its mean; ``inflated`` adds as much to the posterior, and without it the draw
    has v²A_a⁻¹. The source can be read in both ways.

    ``clear``: the published form. A_a = I + Σ b bᵀ has no noise, σ = 1/μ(ε, δ). It protects losses
    and **neither contexts nor actions**.
    ``protected``: A_a has noise as well, σ = √(81/32)/μ(ε, δ) on both, ridge 1 + ``shift``·σ√(2pm).
    This variant is ours.

    >>> problem = RivalProblem(n_actions=2, p=4, rounds=1000)
    >>> [round(AdaPrivateTS(gram=each).scales(problem, Budget(1.0, 1e-5)).response, 3)
    ...  for each in GRAMS]
    [5.935, 3.731]

    Privacy: one Gaussian release per person. [docs/privacy/rivals.md, "AdaPrivate-TS"]
    """

    width: float = 0.1
    gram: str = "protected"
    shift: float = 2.0
    first: int = 16
    growth: float = 1.5
    inflated: bool = True

    assumes: ClassVar[str] = "a trusted server; all others together see every later policy"

    def __post_init__(self) -> None:
        in_range("width", self.width, 0.0, math.inf)
        in_range("shift", self.shift, 0.0, math.inf)
        one_of("gram", self.gram, GRAMS)

    def clock(self, rounds: int) -> BatchClock:  # noqa: ARG002
        return BatchClock(self.first, self.growth)

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        if not budget.private:
            return Scales()
        if self.gram == "clear":
            sigma = LOSS * noise_multiplier(budget)
            return Scales(response=sigma, posterior=self.inflated * sigma)
        sigma = ridge_sensitivity("bandit", problem.n_actions) * noise_multiplier(budget)
        shift = self.shift * noise_norm(sigma, problem.p)
        return Scales(sigma, sigma, sigma, RIDGE, shift, posterior=self.inflated * sigma)
