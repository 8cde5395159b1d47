"""Privacy events: what a release did, as frozen data; accounting.py computes the cost.

``assumes`` lists in words what the guarantee assumes beyond the mechanism's own
mathematics. With an empty list the guarantee holds for the numbers that the computer returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeGuard

from discreet.errors import CorruptRelease


@dataclass(frozen=True)
class NonPrivate:
    """No guarantee: there is no noise, or the noise can be reproduced."""

    reason: str


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of ``multiplier`` = σ / sensitivity on one vector.

    ``sampler_distance`` bounds the total variation between the sampler that was used and an
    ideal (rounded) Gaussian, over all coordinates that two neighbours touch. ``coordinates`` says
    how many of them lie on the integer grid; it is 0 where the noise is a floating draw.
    """

    multiplier: float
    sensitivity: float
    sampler_distance: float = 0.0
    assumes: tuple[str, ...] = ()
    coordinates: int = 0


@dataclass(frozen=True)
class ObjectivePerturbation:
    """A perturbed empirical risk minimiser: ``noise`` is "gamma" (pure ε) or "gaussian".

    Gamma noise: the release is ``epsilon``-DP. Gaussian noise: its Rényi curve is that of
    ``blocks`` independent mechanisms with gradient shift ``shift`` = 2/σ and determinant term
    ``kappa`` (docs/privacy/logistic.md).
    """

    noise: str
    epsilon: float = 0.0
    kappa: float = 0.0
    shift: float = 0.0
    blocks: int = 1
    assumes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExponentialMechanism:
    """A choice from a public list with weight exp(−ε·score / (2·sensitivity))."""

    epsilon: float
    sensitivity: float
    assumes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Composed:
    """Several events on the same records."""

    events: tuple[Event, ...]


EVENTS = (NonPrivate, Gaussian, ObjectivePerturbation, ExponentialMechanism, Composed)
Event = NonPrivate | Gaussian | ObjectivePerturbation | ExponentialMechanism | Composed

NO_BUDGET = NonPrivate("no privacy budget was set")
STACKED = NonPrivate("a stack of simulated runs")
"""Event of a stack: its runs are experiments, and no budget covers them together."""
REAL_ARITHMETIC = "real arithmetic"
"""Assumed where a proof holds only for real numbers: for comparison, not to protect people."""


def compose(*events: Event) -> Event:
    """Return the events as one event; a single event stays as it is."""
    return events[0] if len(events) == 1 else Composed(tuple(events))


def flattened(event: Event) -> list[Event]:
    """Return the parts of an event, none of which is composed."""
    if isinstance(event, Composed):
        return [part for each in event.events for part in flattened(each)]
    return [event]


def is_renyi(part: Event) -> TypeGuard[ObjectivePerturbation]:
    """Return whether the cost of the part is a Rényi curve."""
    return isinstance(part, ObjectivePerturbation) and part.noise == "gaussian"


def pure_epsilon(part: Event) -> float:
    """Return ε of a pure part; 0 for every other."""
    if isinstance(part, ExponentialMechanism):
        return part.epsilon
    return part.epsilon if isinstance(part, ObjectivePerturbation) and not is_renyi(part) else 0.0


FAST_DISTANCE = 1e-15
"""Total variation of one coordinate of the fast sampler from the exact one."""


def fast_sampled(event: Event) -> Event:
    """Return the event of a release that uses the fast sampler in place of the exact one.

    Privacy: distances of independent coordinates add up; δ pays (1 + e^ε) times their sum.
    [docs/privacy/arithmetic.md, "The fast sampler"]
    """
    if isinstance(event, Composed):
        return Composed(tuple(fast_sampled(part) for part in event.events))
    if not isinstance(event, Gaussian) or not event.coordinates:
        return event
    added = event.coordinates * FAST_DISTANCE
    return replace(event, sampler_distance=event.sampler_distance + added)


def not_audited(event: Event, oracle: str) -> Event:
    """Add the remark that discreet does not audit the oracle."""
    if isinstance(event, Composed):
        return Composed(tuple(not_audited(part, oracle) for part in event.events))
    if isinstance(event, NonPrivate):
        return event
    return replace(event, assumes=(*event.assumes, f"{oracle} is not audited by discreet"))


def assumptions(event: Event) -> tuple[str, ...]:
    """Return everything that the guarantee of an event assumes, in words."""
    parts = [getattr(part, "assumes", ()) for part in flattened(event)]
    return tuple(dict.fromkeys(each for part in parts for each in part))


def event_json(event: Event) -> dict[str, Any]:
    """Return a JSON object with the kind of the event; decimals are text, for canonical bytes."""
    if isinstance(event, Composed):
        return {"kind": "Composed", "events": [event_json(part) for part in event.events]}
    written = {
        name: repr(value) if isinstance(value, float) else value
        for name, value in asdict(event).items()
    }
    return {"kind": type(event).__name__, **written}


def event_from_json(document: Mapping[str, Any]) -> Event:
    """Read the event that ``event_json`` wrote."""
    try:
        values = {name: value for name, value in document.items() if name != "kind"}
        if document["kind"] == "Composed":
            return Composed(tuple(event_from_json(part) for part in values["events"]))
        kind: Any = next(each for each in EVENTS if each.__name__ == document["kind"])
        for name, annotation in kind.__annotations__.items():
            if name in values and annotation == "float":
                values[name] = float(values[name])
            elif name in values and annotation.startswith("tuple"):
                values[name] = tuple(values[name])
        return kind(**values)  # type: ignore[no-any-return]
    except (LookupError, StopIteration, TypeError, ValueError, AttributeError):
        raise CorruptRelease(
            "event must be one that discreet wrote; it cannot be read. Fetch the release again."
        ) from None
