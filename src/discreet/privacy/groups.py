"""What a guarantee for one record means for a person with several records."""

from __future__ import annotations

import math
from dataclasses import replace

from discreet.errors import InvalidInput
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import (
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    ObjectivePerturbation,
    compose,
)
from discreet.privacy.participation import Participation


def person_event(event: Event, participation: Participation) -> Event:
    """What a person costs whose records enter releases of ``event``, as one event.

    Privacy: k records in each of M batches are one Gaussian with μ·k·√M; a pure ε becomes kMε; the
    Rényi curve of a Gaussian objective is taken M times. [docs/privacy/users.md, "Claim"]

    >>> person_event(Gaussian(12.0, 1.0), Participation(batches=4, records=3)).multiplier
    2.0
    """
    batch = moved(event, participation.records)
    if batch is None:
        raise InvalidInput(
            "records_per_batch must be 1 for a perturbed objective with Gaussian noise; "
            f"got {participation.records}. No bound is known for several records of one person in "
            "one such release: choose Ridge or PooledRidge, or Logistic(noise='gamma')."
        )
    return _repeated(batch, participation.batches)


def epsilon_apart(event: Event, delta: float, records: int) -> float:
    """ε of a person whose records lie in different batches, each released by ``event``.

    Privacy: releases of different batches on one person's records compose.
    [docs/privacy/threat-model.md, "Several records of one person"]

    >>> round(epsilon_apart(Gaussian(1 / 0.26805, 1.0), 1e-5, 2), 2)
    1.47
    """
    return epsilon(compose(*[event] * records), delta)


def epsilon_together(event: Event, delta: float, records: int) -> float:
    """ε of a person whose records all lie in one batch, released by ``event``.

    Privacy: Gaussian statistics move k times as far; a pure ε becomes kε; other events are
    priced record by record. [docs/privacy/threat-model.md, "Several records of one person"]

    >>> round(epsilon_together(Gaussian(1 / 0.26805, 1.0), 1e-5, 2), 2)
    2.15
    """
    together = moved(event, records)
    if together is not None:
        return epsilon(together, delta)
    return _one_after_the_other(event, delta, records)


def moved(event: Event, records: int) -> Event | None:
    """The event for k times the sensitivity; None where no event describes this."""
    if records == 1:
        return event
    if isinstance(event, Composed):
        parts = [moved(part, records) for part in event.events]
        return None if None in parts else Composed(tuple(part for part in parts if part))
    if isinstance(event, Gaussian):
        return replace(
            event,
            multiplier=event.multiplier / records,
            sensitivity=event.sensitivity * records,
            sampler_distance=event.sampler_distance * records,
            coordinates=event.coordinates * records,
        )
    if isinstance(event, ObjectivePerturbation) and event.noise == "gaussian":
        return None
    if isinstance(event, (ExponentialMechanism, ObjectivePerturbation)):
        return replace(event, epsilon=event.epsilon * records)
    return event


def _repeated(event: Event, batches: int) -> Event:
    """The releases of several batches on one person's records, as one event."""
    if isinstance(event, Composed):
        return Composed(tuple(_repeated(part, batches) for part in event.events))
    if isinstance(event, Gaussian):
        root = math.sqrt(batches)
        return replace(
            event,
            multiplier=event.multiplier / root,
            sensitivity=event.sensitivity * root,
            sampler_distance=event.sampler_distance * batches,
            coordinates=event.coordinates * batches,
        )
    if isinstance(event, ObjectivePerturbation) and event.noise == "gaussian":
        return replace(event, blocks=event.blocks * batches)
    if isinstance(event, (ExponentialMechanism, ObjectivePerturbation)):
        return replace(event, epsilon=event.epsilon * batches)
    return event


def _one_after_the_other(event: Event, delta: float, records: int) -> float:
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
