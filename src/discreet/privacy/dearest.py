"""The batches that cost a person most, of all that were released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def dearest(partitions: Sequence[Event], most: int) -> Event:
    """An event that costs at least as much as any ``most`` of these partitions together.

    Where all partitions are of one kind this is the cost of the dearest ones. Where kinds are
    mixed, each kind is bounded by itself: a person may not be in the dearest of all kinds at once.

    Privacy: pure ε, squared shifts, distances of samplers and Rényi curves add up, so the largest
    ``most`` of each bound whatever a person enters. [docs/privacy/users.md, "The dearest batches"]

    >>> dearest([Gaussian(4.0, 1.0), Gaussian(5.0, 1.0), Gaussian(3.0, 1.0)], 1).multiplier
    3.0
    """
    if len(partitions) <= most or len(set(partitions)) == 1:
        return compose(*partitions[:most])
    parts = [flattened(event) for event in partitions]
    for listed in parts:
        for part in listed:
            if isinstance(part, NonPrivate):
                return part
    bounds = [_shifts(parts, most), _pure(parts, most), *_objectives(parts, most)]
    return compose(*(bound for bound in bounds if bound is not None))


def _largest(values: Iterable[float], most: int) -> float:
    return sum(sorted(values, reverse=True)[:most])


def _shifts(parts: list[list[Event]], most: int) -> Event | None:
    """All Gaussians as one: 1/multiplier² add up, and so do the distances of the samplers."""
    gaussians = [[part for part in listed if isinstance(part, Gaussian)] for listed in parts]
    if not any(gaussians):
        return None
    square = _largest((sum(part.multiplier**-2 for part in each) for each in gaussians), most)
    distance = _largest((sum(part.sampler_distance for part in each) for each in gaussians), most)
    return Gaussian(square**-0.5, 1.0, distance)


def _pure(parts: list[list[Event]], most: int) -> Event | None:
    totals = [sum(map(pure_epsilon, listed)) for listed in parts]
    return ExponentialMechanism(_largest(totals, most), 1.0) if any(totals) else None


def _objectives(parts: list[list[Event]], most: int) -> list[Event]:
    """As many objectives as ``most`` partitions can have, each with the largest curve of all."""
    curves = [[part for part in listed if is_renyi(part)] for listed in parts]
    every = [part for each in curves for part in each]
    if not every:
        return []
    largest = ObjectivePerturbation(
        "gaussian",
        kappa=max(part.kappa for part in every),
        shift=max(part.shift for part in every),
        blocks=max(part.blocks for part in every),
    )
    return [largest] * round(_largest((float(len(each)) for each in curves), most))


NOTHING = Composed(())
"""The event of a ledger without charges."""
