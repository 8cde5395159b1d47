"""From a budget to noise: the inverse of accounting, rounded outward."""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet.errors import InvalidInput
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Budget
from discreet.privacy.events import FAST_DISTANCE, Composed, Event, Gaussian, fast_sampled
from discreet.privacy.groups import person_event
from discreet.privacy.participation import ONCE, Participation

OUTWARD = 1.0 + 1e-6
"""Every scale is multiplied by this, so that rounding never favours utility over privacy."""
_PRECISION = 1.0 + 1e-7


def need_delta(budget: Budget, what: str) -> None:
    """Refuse δ = 0 for Gaussian noise, before any data exist."""
    if budget.private and budget.delta <= 0.0:
        raise InvalidInput(
            f"delta must be above 0 for {what}; got {budget.delta!r}. "
            "Give a delta such as 1e-5, or choose a pure mechanism: "
            "FiniteClass, or Logistic without radii."
        )


def gaussian_multiplier(budget: Budget, participation: Participation = ONCE) -> float:
    """σ over sensitivity for an ideal Gaussian: a good first guess for a search."""
    import dp_accounting

    once = float(dp_accounting.get_sigma_gaussian(budget.epsilon, budget.delta))
    return once * participation.records * math.sqrt(participation.batches)


def pure_share(budget: Budget, participation: Participation) -> float:
    """ε of one record in one release, where pure costs add up.

    Privacy: k records in each of M batches cost kM times as much. [docs/privacy/users.md, "Claim"]
    """
    times = participation.records * participation.batches
    # As many shares as a person has records must not exceed ε when they are added up.
    return budget.epsilon if times == 1 else budget.epsilon / (times * OUTWARD)


def smallest_scale(
    event_at: Callable[[float], Event],
    budget: Budget,
    guess: float = 1.0,
    participation: Participation = ONCE,
) -> float:
    """The smallest scale s at which a person costs at most ε at δ, for a cost that falls with s.

    ``event_at(s)`` is what one record costs in one release, and a person takes part as
    ``participation`` allows. The search widens a bracket around the guess, then bisects. It returns
    a scale that was proven sufficient, so the answer errs on the safe side. A release may use
    either sampler, so the scale leaves room for the fast one wherever that sampler takes at most
    half of δ.
    """

    def cost_at(scale: float) -> Event:
        return person_event(event_at(scale), participation)

    room = _taken_by_fast_sampler(cost_at(guess), budget) <= budget.delta / 2

    def affordable(scale: float) -> bool:
        event = cost_at(scale)
        return epsilon(fast_sampled(event) if room else event, budget.delta) <= budget.epsilon

    low, high, widening = guess, guess, _PRECISION
    if affordable(guess):
        while affordable(low := high / widening):
            high, widening = low, widening**2
    else:
        while not affordable(high := low * widening):
            low, widening = high, widening**2
            if low > 1e12:
                raise InvalidInput(
                    f"budget must be attainable; no amount of noise attains {budget.text}. "
                    "Raise epsilon, delta or the ridge."
                )
    while high / low > _PRECISION:
        middle = (high * low) ** 0.5
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return high * OUTWARD


def _taken_by_fast_sampler(event: Event, budget: Budget) -> float:
    """The share of δ that would pay for the fast sampler."""
    parts = event.events if isinstance(event, Composed) else (event,)
    coordinates = sum(part.coordinates for part in parts if isinstance(part, Gaussian))
    return (1.0 + math.exp(min(budget.epsilon, 700.0))) * coordinates * FAST_DISTANCE
