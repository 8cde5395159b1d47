"""Cost of an event: ε at a given δ, for one record and for a person with several records.

ε comes from dp_accounting and is rounded outward. That library takes a second to import, so it is
imported only where a private event is priced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from discreet.errors import InvalidInput
from discreet.privacy.budget import Participation
from discreet.privacy.events import (
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    NonPrivate,
    ObjectivePerturbation,
    compose,
    flattened,
    is_renyi,
    pure_epsilon,
)
from discreet.types import Floats

RENYI_ORDERS = tuple(np.concatenate([1 + np.geomspace(0.01, 8, 120), np.geomspace(9.5, 2000, 120)]))


@lru_cache(maxsize=4096)
def epsilon(event: Event, delta: float) -> float:
    """Return the smallest ε that we can prove for ``event`` at ``delta``; ∞ if there is none."""
    parts = flattened(event)
    if any(isinstance(part, NonPrivate) for part in parts):
        return math.inf
    pure = sum((pure_epsilon(part) for part in parts), 0.0)
    gaussians = [part for part in parts if isinstance(part, Gaussian)]
    objectives = tuple(part for part in parts if is_renyi(part))
    if not gaussians and not objectives:
        return pure
    multipliers = tuple(part.multiplier for part in gaussians)
    distance = sum(part.sampler_distance for part in gaussians)
    # Privacy: an ideal sampler that is (ε, δ') makes ours (ε, δ' + (1 + e^ε)·d), d the total
    # variation between them. The ε at δ/2 bounds the ε at any δ' ≥ δ/2, so the exponent may
    # use it as long as the sampler takes at most half of δ.
    # [docs/privacy/arithmetic.md, "What δ pays for it"]
    loose = _approximate_epsilon(multipliers, objectives, delta / 2)
    if not math.isfinite(loose) or loose > 700:
        return math.inf
    taken = (1.0 + math.exp(loose)) * distance
    if taken > delta / 2:
        return math.inf
    return pure + _approximate_epsilon(multipliers, objectives, delta - taken)


@lru_cache(maxsize=4096)  # events of problems that differ in sensitivities alone cost the same
def _approximate_epsilon(
    multipliers: tuple[float, ...], objectives: tuple[ObjectivePerturbation, ...], delta: float
) -> float:
    if delta <= 0.0:
        return math.inf
    import dp_accounting

    # Gaussian mechanisms compose into one: 1/multiplier² add up.
    inverse_square = sum(multiplier**-2 for multiplier in multipliers)
    if not objectives:
        return float(dp_accounting.get_epsilon_gaussian(inverse_square**-0.5, delta))
    orders = np.asarray(RENYI_ORDERS)
    curve = orders * inverse_square / 2
    for part in objectives:
        curve = curve + objective_renyi(part, orders)
    return float(dp_accounting.rdp.compute_epsilon(orders, curve, delta)[0])


def objective_renyi(event: ObjectivePerturbation, orders: Floats) -> Floats:
    """Rényi divergence of Gaussian objective perturbation under replacement.

    ε(α) = κ + m²/2 + [m²(α−1)²/2 + log(2Φ(m(α−1)))]/(α−1), m = 2/σ, for each block.
    [Redberg et al. 2023; replacement in docs/privacy/logistic.md]
    """
    from scipy.special import log_ndtr

    m, excess = event.shift, np.asarray(orders) - 1.0
    moment = m**2 * excess**2 / 2 + math.log(2.0) + log_ndtr(m * excess)
    return np.asarray(event.blocks * (event.kappa + m**2 / 2 + moment / excess))


def person_event(event: Event, participation: Participation) -> Event:
    """Return the cost of a person whose records enter releases of ``event``, as one event.

    Privacy: k records in each of M batches are one Gaussian with μ·k·√M; a pure ε becomes kMε; the
    Rényi curve of a Gaussian objective is taken M times. [docs/privacy/users.md, "Claim"]

    >>> person_event(Gaussian(12.0, 1.0), Participation(batches=4, records=3)).multiplier
    2.0
    """
    batch = scaled_event(event, participation.records)
    if batch is None:
        raise InvalidInput(
            "records_per_batch must be 1 for a perturbed objective with Gaussian noise; "
            f"got {participation.records}. No bound is known for several records of one person in "
            "one such release: choose Ridge or PooledRidge, or Logistic(noise='gamma')."
        )
    # The releases of several batches on one person's records, as one event.
    return _scaled(batch, math.sqrt(participation.batches), participation.batches)


def epsilon_in_different_batches(event: Event, delta: float, records: int) -> float:
    """ε of a person whose records lie in different batches, each released by ``event``.

    Privacy: releases of different batches on one person's records compose.
    [docs/privacy/threat-model.md, "Several records of one person"]

    >>> round(epsilon_in_different_batches(Gaussian(1 / 0.26805, 1.0), 1e-5, 2), 2)
    1.47
    """
    return epsilon(compose(*[event] * records), delta)


def epsilon_in_one_batch(event: Event, delta: float, records: int) -> float:
    """ε of a person whose records all lie in one batch, released by ``event``.

    Privacy: Gaussian statistics move k times as far; a pure ε becomes kε; other events are
    priced record by record. [docs/privacy/threat-model.md, "Several records of one person"]

    >>> round(epsilon_in_one_batch(Gaussian(1 / 0.26805, 1.0), 1e-5, 2), 2)
    2.15
    """
    together = scaled_event(event, records)
    if together is None:
        return _group_epsilon(event, delta, records)
    return epsilon(together, delta)


def scaled_event(event: Event, records: int) -> Event | None:
    """Return the event for k times the sensitivity; None where no event describes this."""
    if records == 1:
        return event
    if any(map(is_renyi, flattened(event))):
        return None
    return _scaled(event, float(records), records)


def _scaled(event: Event, shift: float, times: int) -> Event:
    """Return an event with so many times the shift of Gaussians, and the costs that add up."""
    if isinstance(event, Composed):
        return Composed(tuple(_scaled(part, shift, times) for part in event.events))
    if isinstance(event, Gaussian):
        return replace(
            event,
            multiplier=event.multiplier / shift,
            sensitivity=event.sensitivity * shift,
            sampler_distance=event.sampler_distance * times,
            coordinates=event.coordinates * times,
        )
    if is_renyi(event):
        return replace(event, blocks=event.blocks * times)
    if isinstance(event, (ExponentialMechanism, ObjectivePerturbation)):
        return replace(event, epsilon=event.epsilon * times)
    return event


def _group_epsilon(event: Event, delta: float, records: int) -> float:
    """(ε₀, δ₀) for one record is (kε₀, δ₀·(e^{kε₀} − 1)/(e^{ε₀} − 1)) for k. [Vadhan 2017, 2.2]"""

    def total(each: float) -> tuple[float, float]:
        cost = epsilon(event, each)
        if not math.isfinite(cost) or records * cost > 700.0:
            return math.inf, math.inf
        return records * cost, each * math.expm1(records * cost) / math.expm1(cost)

    # The least δ₀ that is needed: step down until k records fit into δ, then halve the last step.
    down = next((j for j in range(700) if total(delta * math.exp(-j))[1] <= delta), None)
    if down is None:
        return math.inf
    fits, fails = float(down), max(0.0, down - 1.0)
    for _ in range(30):
        middle = (fits + fails) / 2
        enough = total(delta * math.exp(-middle))[1] <= delta
        fits, fails = (middle, fails) if enough else (fits, middle)
    return total(delta * math.exp(-fits))[0]


def costliest(partitions: Sequence[Event], most: int) -> Event:
    """Return an event that costs at least as much as any ``most`` of these partitions together.

    If all partitions are of one kind this is the cost of the costliest ones. Mixed kinds are
    bounded one by one: a person may not be in the costliest partition of every kind.

    Privacy: pure ε, squared shifts, distances of samplers and Rényi curves add up, so the largest
    ``most`` of each bound the batches of a person. [docs/privacy/users.md, "The dearest batches"]

    >>> costliest([Gaussian(4.0, 1.0), Gaussian(5.0, 1.0), Gaussian(3.0, 1.0)], 1).multiplier
    3.0
    """
    if len(partitions) <= most or len(set(partitions)) == 1:
        return compose(*partitions[:most])
    parts = [flattened(event) for event in partitions]
    for part in (part for listed in parts for part in listed):
        if isinstance(part, NonPrivate):
            return part

    def largest(cost: Callable[[Event], float]) -> float:
        return sum(sorted((sum(map(cost, listed)) for listed in parts), reverse=True)[:most])

    bounds: list[Event] = []
    square = largest(lambda part: part.multiplier**-2 if isinstance(part, Gaussian) else 0.0)
    if square:
        distance = largest(lambda part: getattr(part, "sampler_distance", 0.0))
        bounds.append(Gaussian(square**-0.5, 1.0, distance))
    if pure := largest(pure_epsilon):
        bounds.append(ExponentialMechanism(pure, 1.0))
    if curves := [part for listed in parts for part in listed if is_renyi(part)]:
        # As many objectives as ``most`` partitions can have, each with the largest curve.
        highest = ObjectivePerturbation(
            "gaussian",
            kappa=max(part.kappa for part in curves),
            shift=max(part.shift for part in curves),
            blocks=max(part.blocks for part in curves),
        )
        bounds += [highest] * round(largest(is_renyi))
    return compose(*bounds)


NOTHING = Composed(())
"""Event of a ledger without charges."""
