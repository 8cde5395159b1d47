"""Noise scales for a budget: the inverse of accounting, rounded outward."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
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
_SECANTS = 20
"""Prices after which a search that has not ended halves its bracket, which always ends."""
_LONGEST_STEP = math.log(16.0)


def need_delta(budget: Budget, what: str) -> None:
    """Refuse δ = 0 for Gaussian noise, before any data exist."""
    if budget.private and budget.delta <= 0.0:
        raise InvalidInput(
            f"delta must be above 0 for {what}; got {budget.delta!r}. "
            "Give a delta such as 1e-5, or choose a pure mechanism: "
            "FiniteClass, or Logistic without radii."
        )


def gaussian_multiplier(budget: Budget, participation: Participation = ONCE) -> float:
    """Return σ over sensitivity for an ideal Gaussian: a good first guess for a search."""
    once = _multiplier_once(budget)
    return once * participation.records * math.sqrt(participation.batches)


@lru_cache(maxsize=1024)
def _multiplier_once(budget: Budget) -> float:
    import dp_accounting

    return float(dp_accounting.get_sigma_gaussian(budget.epsilon, budget.delta))


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
    """Return the bracket where ``_bisected`` ends for a falling price; both ends were priced."""
    too_small, enough = 0.0, math.inf  # the nearest scales with a price
    priced: list[tuple[float, float]] = []  # log scale, log of price over the most that it may be
    expected = guess
    while True:
        low, high = _bisected(guess, partial(le, expected))
        if low <= too_small and high >= enough:
            return low, high
        scale = high if high < enough else low
        cost = price(scale)
        if cost <= most:
            enough = scale
        else:
            too_small = scale
        priced.append((math.log(scale), math.log(cost / most) if cost > 0.0 else -math.inf))
        expected = _expected_root(priced, too_small, enough)


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


def _expected_root(priced: list[tuple[float, float]], too_small: float, enough: float) -> float:
    """Return a scale in (``too_small``, ``enough``], by the secant or else in the middle."""
    (x, y), (before, y_before) = priced[-1], priced[-2] if len(priced) > 1 else (0.0, math.inf)
    # With one point, take the price for one that is inverse to the scale.
    slope = (y - y_before) / (x - before) if math.isfinite(y_before) else -1.0
    if slope < 0.0 and abs(y) < -slope * _LONGEST_STEP and len(priced) <= _SECANTS:
        found = math.exp(x - y / slope)
        if too_small < found <= enough:
            return found
    if enough == math.inf:
        return too_small * 4.0 ** len(priced)
    return enough / 4.0 ** len(priced) if too_small == 0.0 else math.sqrt(too_small * enough)


def _taken_by_fast_sampler(event: Event, budget: Budget) -> float:
    """The share of δ that would pay for the fast sampler."""
    coordinates = sum(part.coordinates for part in flattened(event) if isinstance(part, Gaussian))
    return (1.0 + math.exp(min(budget.epsilon, 700.0))) * coordinates * FAST_DISTANCE
