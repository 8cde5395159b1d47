"""LinUCB without privacy, acting every round. [Li et al. 2010]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from discreet.errors import InvalidInput
from discreet.lab.rivals.rival_contract import LAG, PersonClock, RivalProblem, Scales
from discreet.privacy.budget import Budget
from discreet.validate import in_range


@dataclass(frozen=True)
class PlainLinUCB:
    """argmin_a bᵀV_a⁻¹u_a − β√(bᵀV_a⁻¹b), V_a = I + Σ b bᵀ and u_a = Σ (y − ½)·b.

    >>> PlainLinUCB().scales(RivalProblem(2, 4, 1000), Budget.none()).gram
    0.0
    """

    width: float = 0.1
    lag: float = LAG

    assumes: ClassVar[str] = "no privacy"

    def __post_init__(self) -> None:
        in_range("width", self.width, 0.0, math.inf)

    def clock(self, rounds: int) -> PersonClock:  # noqa: ARG002
        return PersonClock(self.lag)

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:  # noqa: ARG002
        if budget.private:
            raise InvalidInput(
                f"epsilon must be inf for PlainLinUCB; got {budget.epsilon:g}. "
                "Play TreeLinUCB for LinUCB with privacy."
            )
        return Scales()
