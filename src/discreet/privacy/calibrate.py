"""From a budget to noise: the inverse of accounting, rounded outward."""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import InvalidInput
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Budget
from discreet.privacy.events import Event

OUTWARD = 1.0 + 1e-6
"""Every scale is multiplied by this, so that rounding never favours utility over privacy."""


def need_delta(budget: Budget, what: str) -> None:
    """Gaussian noise needs δ > 0; say so before any data exist."""
    if budget.private and budget.delta <= 0.0:
        raise InvalidInput(
            f"delta must be above 0 for {what}; got {budget.delta!r}. "
            "Give Budget(epsilon, delta=1e-5), or choose a pure mechanism: "
            "FiniteClass, or Logistic without radii."
        )


def smallest_scale(event_at: Callable[[float], Event], budget: Budget) -> float:
    """The smallest scale s with cost(event_at(s)) ≤ ε at δ, for a cost that falls with s.

    Bisection keeps the scale that was proven sufficient, so the answer errs on the safe side.
    """

    def affordable(scale: float) -> bool:
        return epsilon(event_at(scale), budget.delta) <= budget.epsilon

    high = 1.0
    while not affordable(high):
        high *= 2.0
        if high > 1e12:
            raise InvalidInput(
                f"budget must be attainable; ε = {budget.epsilon:g}, δ = {budget.delta:g} is not, "
                "with any amount of noise. Raise epsilon, delta or the ridge."
            )
    low = high / 2.0
    while affordable(low):
        high, low = low, low / 2.0
    while high / low > 1.0 + 1e-7:
        middle = (high * low) ** 0.5
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return high * OUTWARD
