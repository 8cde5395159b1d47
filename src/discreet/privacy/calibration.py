"""Noise scales for a budget: the inverse of accounting, rounded outward."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from operator import le

from discreet.errors import InvalidInput
from discreet.privacy.accounting import epsilon, person_event
from discreet.privacy.budget import ONCE, Budget, Participation
from discreet.privacy.events import FAST_DISTANCE, Event, Gaussian, fast_sampled, flattened

OUTWARD = 1.0 + 1e-6
"""Every scale is multiplied by this, so that rounding never favours utility over privacy."""
_PRECISION = 1.0 + 1e-7
_LARGEST = 1e12
"""A budget that needs a larger scale is refused."""
_ROUNDED = 0.01
"""dp_accounting finds ε to within 1e-12: below this, prices of near scales may rise with them."""
_TINY = 1e-20
"""Prices are cut off so far from the budget, as infinite ones have no slope."""


def need_delta(budget: Budget, what: str) -> None:
    """Refuse δ = 0 for Gaussian noise, before any data exist."""
    if budget.private and budget.delta <= 0.0:
        raise InvalidInput(
            f"delta must be above 0 for {what}; got {budget.delta!r}. "
            "Give a delta such as 1e-5, or choose a pure mechanism: "
            "FiniteClass, or Logistic without radii."
        )


@lru_cache(maxsize=1024)
def gaussian_multiplier(budget: Budget, participation: Participation = ONCE) -> float:
    """Return σ over sensitivity for an ideal Gaussian: a good first guess for a search."""
    import dp_accounting

    once = float(dp_accounting.get_sigma_gaussian(budget.epsilon, budget.delta))
    return once * participation.records * math.sqrt(participation.batches)


def pure_share(budget: Budget, participation: Participation) -> float:
    """Return ε of one record in one release, where pure costs add up.

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
    """Return the smallest scale s at which a person costs at most ε at δ.

    ``event_at(s)`` is the cost of one record in one release, which falls with s; a person takes
    part as ``participation`` allows. The search widens a bracket around the ``guess``, then
    bisects; only scales where it may end are priced. The result was proven sufficient. A release
    may use either sampler, so the scale leaves δ for the fast one if it takes at most half of it.
    """

    def cost_at(scale: float) -> Event:
        return person_event(event_at(scale), participation)

    room = _taken_by_fast_sampler(cost_at(guess), budget) <= budget.delta / 2

    def price(scale: float) -> float:
        event = cost_at(scale)
        return epsilon(fast_sampled(event) if room else event, budget.delta)

    if budget.epsilon < _ROUNDED:
        _, high = _bisected(guess, lambda scale: price(scale) <= budget.epsilon)
    else:
        _, high = _last_bracket(price, budget.epsilon, guess)
    if high == math.inf:
        raise InvalidInput(
            f"budget must be attainable; no amount of noise attains {budget.text}. "
            "Raise epsilon, delta or the ridge."
        )
    return high * OUTWARD


def _last_bracket(
    price: Callable[[float], float], most: float, guess: float
) -> tuple[float, float]:
    """Return the bracket where ``_bisected`` ends for a falling price, from the root of the price.

    Both ends are priced; where they do not enclose the root, every step of the search is.
    """
    from scipy.optimize import brentq

    priced = cache(price)

    def excess(x: float) -> float:
        """Log of price over the most that it may be, at a log scale."""
        return min(math.log(max(priced(math.exp(x)) / most, _TINY)), -math.log(_TINY))

    low = high = math.log(guess)
    step = 0.25 if excess(low) > 0.0 else -0.25
    while (excess(high) > 0.0) == (step > 0.0):
        low, high, step = high, high + step, 2.0 * step
        if high > math.log(_LARGEST):
            return _LARGEST, math.inf
    root = math.exp(brentq(excess, low, high, xtol=1e-11))
    below, above = _bisected(guess, partial(le, root))
    if priced(below) > most >= priced(above):
        return below, above
    return _bisected(guess, lambda scale: priced(scale) <= most)


def _bisected(guess: float, affordable: Callable[[float], bool]) -> tuple[float, float]:
    """Widen a bracket around the guess, then bisect; return the last bracket.

    Released scales are these numbers: a faster search must not change their last bits.
    """
    low, high, widening = guess, guess, _PRECISION
    if affordable(guess):
        while affordable(low := high / widening):
            high, widening = low, widening**2
    else:
        while not affordable(high := low * widening):
            low, widening = high, widening**2
            if low > _LARGEST:
                return low, math.inf
    while high / low > _PRECISION:
        middle = (high * low) ** 0.5
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return low, high


def _taken_by_fast_sampler(event: Event, budget: Budget) -> float:
    """The share of δ that would pay for the fast sampler."""
    coordinates = sum(part.coordinates for part in flattened(event) if isinstance(part, Gaussian))
    return (1.0 + math.exp(min(budget.epsilon, 700.0))) * coordinates * FAST_DISTANCE
