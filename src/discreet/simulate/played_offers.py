"""What each round of a simulation offers, and what each offered action would cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.actions.available_actions import available_actions
from discreet.actions.requested_actions import read_offers
from discreet.arrays.backend import as_like, namespace
from discreet.errors import InvalidInput
from discreet.features.offered import Offered
from discreet.plan.plan import Plan
from discreet.policies import Policy
from discreet.releases.policy_view import PolicyView
from discreet.simulate.labels import label_actions, loss_table
from discreet.types import Array, Floats


@dataclass(frozen=True, eq=False, repr=False)
class PlayedOffers:
    """Rounds (..., T) with their offers: rows behind a round's ``sizes`` are not offered.

    ``sizes`` (T,) is None where every round offers equally many; otherwise there is one seed.
    """

    offered: Offered
    sizes: Floats | None = None
    names: Sequence[Any] = ()
    """By the places that the offers hold."""

    def __len__(self) -> int:
        return int(self.offered.contexts.shape[-2])

    @property
    def shape(self) -> tuple[int, int]:
        """Rounds, and the features of a record."""
        joint = getattr(self.offered, "joint", None)
        return len(self), self.offered.contexts.shape[-1] if joint is None else joint.p

    def part(self, rows: Any) -> PlayedOffers:
        """Some of the rounds."""
        sizes = None if self.sizes is None else self.sizes[rows]
        return PlayedOffers(self.offered.part(rows), sizes, self.names)

    @property
    def inside(self) -> Floats:
        """Which places (n, K) are offered."""
        sizes = np.full(len(self), self.offered.count) if self.sizes is None else self.sizes
        return np.asarray(np.arange(self.offered.count) < sizes[:, None])

    def places_of(self, actions: Any) -> Floats:
        """Where each round's action stands in its offer, by name."""
        places = {name: place for place, name in enumerate(self.names)}
        numbers = np.array([places.get(each, -1) for each in np.asarray(actions).tolist()])
        every = np.arange(self.offered.count)[None]
        offered = every if self.offered.actions is None else self.offered.actions
        found = (offered == numbers[:, None]) & self.inside
        if not found.any(axis=1).all():
            row = int(np.flatnonzero(~found.any(axis=1))[0])
            raise InvalidInput(
                f"row {row}: action must be one of those offered; got {actions[row]!r}. "
                "Give what was offered, or leave the row out."
            )
        return np.asarray(found.argmax(axis=1))

    def sample(self, policy: Policy, released: PolicyView, u: Array) -> Array:
        """Places (..., n) of the chosen actions, without a loop over rounds: size by size."""
        if self.sizes is None:
            return policy.sample(released.offering(self.offered.count), self.offered, u)
        xp = namespace(u)
        parts, order = [], []
        for rounds, some in self._by_size():
            place = u[..., rounds, :]
            if some.count > 1:
                chosen = policy.sample(released.offering(some.count), some, place)
            else:
                chosen = xp.astype(0 * place[..., 0], xp.int64)
            parts.append(chosen)
            order.append(rounds)
        shape = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        joined = xp.concat([xp.broadcast_to(p, (*shape, p.shape[-1])) for p in parts], axis=-1)
        back = np.argsort(np.concatenate(order))
        return joined[..., back]

    def probabilities(self, policy: Policy, released: PolicyView) -> Array:
        """Chances (n, K) of what each round offers, zero beyond its size: for one seed alone."""
        if self.sizes is None:
            return policy.probabilities(released.offering(self.offered.count), self.offered)
        chances = np.zeros((len(self), self.offered.count))
        for rounds, some in self._by_size():
            found = np.ones((len(rounds), 1))
            if some.count > 1:
                found = policy.probabilities(released.offering(some.count), some)
            chances[rounds, : some.count] = found
        return chances

    def at_random(self, u: Array) -> Array:
        """Places (..., n) of actions drawn evenly from what each round offers."""
        xp = namespace(u)
        sizes = as_like(self.offered.count if self.sizes is None else self.sizes, u)
        return xp.astype(xp.minimum(xp.floor(u[..., 0] * sizes), sizes - 1.0), xp.int64)

    def _by_size(self) -> Iterator[tuple[Floats, Offered]]:
        assert self.sizes is not None
        for size in np.unique(self.sizes):
            rounds = np.flatnonzero(self.sizes == size)
            some = self.offered.part(rounds)
            assert some.actions is not None
            yield rounds, replace(some, actions=some.actions[..., : int(size)])

    def in_order(self, orders: Any, place: Any) -> PlayedOffers:
        """Rounds in the order of each seed (S, T), with arrays that ``place`` moves to a machine:
        contexts become (S, 1, T, …)."""
        given, where = self.offered, place(orders)
        changes: dict[str, Any] = {"contexts": place(given.contexts)[where][:, None]}
        if given.actions is not None:
            changes["actions"] = place(np.ascontiguousarray(given.actions))[where][:, None]
        if hasattr(given, "items"):
            changes["items"] = place(given.items)
        sizes = None if self.sizes is None else self.sizes[orders[0]]
        return PlayedOffers(replace(given, **changes), sizes, self.names)


def played_offers(
    plan: Plan, features: Floats, offers: Any, labels: Any, losses: Any
) -> tuple[PlayedOffers, Floats]:
    """The offers of all rounds, and losses (T, K) of what they offer; NaN beyond a round's own."""
    played = offers_alone(plan, features, offers)
    if offers is None:
        return played, _whole_table(plan, len(features), labels, losses)
    return played, _offered_table(played, labels, losses)


def offers_alone(plan: Plan, features: Floats, offers: Any) -> PlayedOffers:
    """What each round offers; None is all that the plan has."""
    if isinstance(offers, np.ndarray):
        offers = offers.tolist()
    read = read_offers(plan, available_actions(plan, ()), features, offers, single=False)
    if offers is None:
        return PlayedOffers(read.groups[0].offered, names=read.names)
    sizes = np.empty(len(features), dtype=np.int64)
    for requests, offered in read.groups:
        sizes[requests] = offered.count
    most = int(sizes.max())
    places = np.zeros((len(features), most), dtype=np.int64)
    for requests, offered in read.groups:
        places[requests, : offered.count] = np.asarray(offered.actions)
    changes: dict[str, Any] = {"contexts": features, "actions": places}
    every = bool((sizes == most).all())
    whole = replace(read.groups[0].offered, **changes)
    return PlayedOffers(whole, None if every else sizes, read.names)


def _whole_table(plan: Plan, rows: int, labels: Any, losses: Any) -> Floats:
    if losses is not None:
        return loss_table(losses, rows, plan.n_actions, plan.losses)
    right = label_actions(labels, rows, plan.n_actions, plan.actions)
    return np.asarray(np.arange(plan.n_actions) != right[:, None], dtype=np.float64)


def _offered_table(played: PlayedOffers, labels: Any, losses: Any) -> Floats:
    """Losses (T, K) of what each round offers."""
    inside = played.inside
    if losses is None:
        right = played.places_of(labels)
        wrong = np.arange(inside.shape[1]) != right[:, None]
        return np.where(inside, wrong.astype(np.float64), np.nan)
    given = [np.asarray(row, dtype=np.float64).reshape(-1) for row in losses]
    sizes = inside.sum(axis=1)
    if len(given) != len(sizes) or any(
        len(row) != size for row, size in zip(given, sizes, strict=False)
    ):
        raise InvalidInput(
            "losses must have a number for each action that a context is offered; some rows have "
            "more or fewer. Give as many losses as actions in each offer, in the same order."
        )
    table = np.full(inside.shape, np.nan)
    table[inside] = np.concatenate(given)
    if not ((table >= 0.0) & (table <= 1.0))[inside].all():
        raise InvalidInput(
            "losses must be numbers in [0, 1]; some are not. Rescale them with a public range."
        )
    return table


def without_contexts(offers: PlayedOffers, table: Floats) -> tuple[float, float]:
    """Mean losses of the item that is best on average among those offered, and of uniform draws.

    Where all actions are offered to everybody the first is the best fixed action.
    """
    offered = offers.offered
    inside = ~np.isnan(table)
    uniform = float(np.nanmean(np.nanmean(table, axis=-1)))
    if offered.actions is None:
        return float(table.mean(axis=0).min()), uniform
    places, most = offered.actions, int(offered.actions.max()) + 1
    sums = np.bincount(places[inside], weights=table[inside], minlength=most)
    counts = np.bincount(places[inside], minlength=most)
    means = sums / np.maximum(counts, 1)
    first = np.where(inside, means[places], np.inf).argmin(axis=-1)
    return float(np.take_along_axis(table, first[:, None], axis=-1).mean()), uniform
