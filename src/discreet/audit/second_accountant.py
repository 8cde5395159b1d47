"""The cost of events, computed again by dp_accounting's privacy loss distributions and accountants.

Nothing of ``privacy.accounting`` is used here, so a mistake there is not repeated. Gaussian parts
go through a discretised privacy loss distribution instead of a formula, the curve of a Gaussian
objective is integrated instead of written down, and orders are chosen again.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.errors import CorruptRelease
from discreet.types import JsonMapping

STEP = 1e-4
"""Width of the discretisation of privacy losses; a recomputed ε is off by about as much."""
AGREE = 2e-3
"""Two computations agree if they differ by at most this share, or by ten steps."""
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
NO_LEDGER = (
    "ledger must be a document that discreet wrote; a part is missing or of another kind. "
    "Fetch it again."
)
KINDS = ("NonPrivate", "Gaussian", "ObjectivePerturbation", "ExponentialMechanism")
_ORDERS = (*np.linspace(1.02, 12.0, 500), *np.geomspace(12.1, 3000.0, 300))


@dataclass(frozen=True)
class Recomputed:
    """ε at δ of the worst partition of a ledger; δ is 0 where every charge is pure.

    Where the unit is a person, ``partition`` is the number of most expensive batches that count.
    """

    epsilon: float
    delta: float
    partition: str


@dataclass(frozen=True)
class Sums:
    """The costs that add up over releases on the same records."""

    pure: float = 0.0
    multipliers: tuple[float, ...] = ()
    distance: float = 0.0
    objectives: tuple[JsonMapping, ...] = ()
    private: bool = True


def epsilon_of(events: Sequence[JsonMapping], delta: float) -> float:
    """ε at δ of events (as JSON objects) on the same records; ∞ if no finite ε holds."""
    return _epsilon(_sums(events), delta)


def _sums(events: Sequence[JsonMapping], records: int = 1) -> Sums:
    """The events for a person with so many records in each release."""
    parts = [part for event in events for part in _parts(event)]
    gaussians = [part for part in parts if part["kind"] == "Gaussian"]
    objectives = tuple(
        part
        for part in parts
        if part["kind"] == "ObjectivePerturbation" and part["noise"] == "gaussian"
    )
    return Sums(
        pure=sum(_pure(part) for part in parts) * records,
        multipliers=tuple(float(part["multiplier"]) / records for part in gaussians),
        distance=sum(float(part["sampler_distance"]) for part in gaussians) * records,
        objectives=objectives,
        private=not any(part["kind"] == "NonPrivate" for part in parts)
        and (records == 1 or not objectives),
    )


def _epsilon(sums: Sums, delta: float) -> float:
    if not sums.private:
        return math.inf
    if not sums.multipliers and not sums.objectives:
        return sums.pure
    if delta <= 0.0:
        return math.inf

    def at(left: float) -> float:
        if sums.objectives:
            return _renyi_epsilon(sums.multipliers, list(sums.objectives), left)
        return _loss_epsilon(sums.multipliers, left)

    if sums.distance > 0.0:
        # What the sampler takes of δ grows with ε; the ε of half of δ is on the safe side.
        most = at(delta / 2)
        taken = (1.0 + math.exp(most)) * sums.distance if most < 700.0 else math.inf
        if taken > delta / 2:
            return math.inf
        delta -= taken
    return sums.pure + at(delta)


def recompute(document: JsonMapping) -> Recomputed:
    """The cost of a ledger's document: charges on a partition compose.

    Partitions do not, except that a person enters as many of them as the document declares.
    """
    try:
        delta = float(document["budget"]["delta"])
        partitions: dict[str, list[JsonMapping]] = {}
        for group in document["entries"]:
            for charge in group["charges"]:
                partitions.setdefault(str(charge["partition"]), []).append(charge["event"])
        often = document.get("participation")
        if often is None:
            # One partition of each cost: all batches of a plan have equal charges.
            distinct = {repr(events): name for name, events in reversed(partitions.items())}
            costs = {name: epsilon_of(partitions[name], delta) for name in distinct.values()}
        else:
            costs = _person(_batches(partitions), often, delta)
        everything = [event for events in partitions.values() for event in events]
        pure = all(math.isfinite(epsilon_of([event], 0.0)) for event in everything)
    except UNREADABLE:
        raise CorruptRelease(NO_LEDGER) from None
    worst = max(costs, key=lambda name: costs[name], default="")
    return Recomputed(costs.get(worst, 0.0), 0.0 if pure else delta, worst)


def _person(
    partitions: list[list[JsonMapping]], often: JsonMapping, delta: float
) -> dict[str, float]:
    """Every quantity that adds up, over the batches where it is largest."""
    batches, records = int(often["batches"]), int(often["records"])
    if min(batches, records) < 1:
        raise ValueError
    each = [_sums(events, records) for events in partitions]
    name = f"the {min(batches, len(each))} dearest of {len(each)} batches"

    def top(key: Callable[[Sums], float]) -> list[Sums]:
        return heapq.nlargest(batches, each, key=key)

    shifts = top(lambda sums: sum(m**-2 for m in sums.multipliers))
    curves = [part for sums in each for part in sums.objectives]
    count = sum(len(sums.objectives) for sums in top(lambda sums: len(sums.objectives)))
    if len(each) > batches and len({repr(part) for part in curves}) > 1:  # none is the largest
        above = {key: max(float(part[key]) for part in curves) for key in ("kappa", "shift")}
        curves = [{**above, "blocks": max(int(part["blocks"]) for part in curves)}]
    whole = Sums(
        pure=sum(sums.pure for sums in top(lambda sums: sums.pure)),
        multipliers=tuple(sorted(m for sums in shifts for m in sums.multipliers)),
        distance=sum(sums.distance for sums in top(lambda sums: sums.distance)),
        objectives=tuple((curves * count)[:count]),
        private=all(sums.private for sums in each),
    )
    return {name: _epsilon(whole, delta)} if each else {}


def agree(one: float, two: float) -> bool:
    """Return whether two computations of ε agree."""
    if math.isinf(one) or math.isinf(two):
        return one == two
    return abs(one - two) <= max(AGREE * max(one, two), 10 * STEP)


def _batches(partitions: Mapping[str, list[JsonMapping]]) -> list[list[JsonMapping]]:
    """The cost of each batch for a person: one of its parts, or all of them where they differ."""
    batches: dict[str, dict[str, list[JsonMapping]]] = {}
    for name, events in partitions.items():
        whole = name.removesuffix(", policy").removesuffix(", control")
        batches.setdefault(whole, {})[repr(events)] = events
    return [[event for events in parts.values() for event in events] for parts in batches.values()]


def _parts(event: JsonMapping) -> list[JsonMapping]:
    if event["kind"] == "Composed":
        return [part for each in event["events"] for part in _parts(each)]
    if event["kind"] not in KINDS:
        raise ValueError
    return [event]


def _pure(part: JsonMapping) -> float:
    gamma = part["kind"] == "ObjectivePerturbation" and part["noise"] == "gamma"
    return float(part["epsilon"]) if gamma or part["kind"] == "ExponentialMechanism" else 0.0


@lru_cache(maxsize=256)
def _loss_epsilon(multipliers: tuple[float, ...], delta: float) -> float:
    """Gaussian mechanisms by their privacy loss distribution, composed numerically."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(
        dp_accounting.NeighboringRelation.REPLACE_SPECIAL, value_discretization_interval=STEP
    )
    for multiplier, count in Counter(multipliers).items():
        accountant.compose(dp_accounting.GaussianDpEvent(multiplier), count)
    return float(accountant.get_epsilon(delta))


def _renyi_epsilon(
    multipliers: tuple[float, ...], objectives: list[JsonMapping], delta: float
) -> float:
    """Rényi curves, with the moment of a Gaussian objective by quadrature."""
    from dp_accounting import rdp

    curve = [
        sum(order / (2.0 * multiplier**2) for multiplier in multipliers)
        + sum(_objective_curve(part, order) for part in objectives)
        for order in _ORDERS
    ]
    return float(rdp.compute_epsilon(np.asarray(_ORDERS), np.asarray(curve), delta)[0])


def _objective_curve(part: JsonMapping, order: float) -> float:
    """κ + m²/2 + log E exp((α−1)·m|N|) / (α−1) for each block, N standard normal.

    The moment is integrated by the trapezoidal rule around its mode.
    """
    shift, rate = float(part["shift"]), (order - 1.0) * float(part["shift"])
    x = np.linspace(max(0.0, rate - 12.0), rate + 12.0, 4001)
    logs = rate * x - x**2 / 2 + math.log(2.0 / math.sqrt(2.0 * math.pi))
    top = float(logs.max())
    moment = top + math.log(float(np.trapezoid(np.exp(logs - top), x)))
    return int(part["blocks"]) * (float(part["kappa"]) + shift**2 / 2 + moment / (order - 1.0))
