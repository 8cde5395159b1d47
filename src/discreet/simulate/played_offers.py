"""Offers of the rounds of a simulation, and the losses of offered actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.actions.available_actions import available_actions
from discreet.actions.offers import read_offers
from discreet.arrays.backend import as_like, namespace
from discreet.errors import InvalidInput
from discreet.features.offered import Offered
from discreet.plan.plan import Plan
from discreet.policies import Policy
from discreet.releases.policy_view import PolicyView
from discreet.simulate.labelled_data import label_actions, loss_table
from discreet.types import Array, Floats, NumpyArray, Values


@dataclass(frozen=True, eq=False, repr=False)
class PlayedOffers:
    """Rounds (..., T) with their offers: rows behind a round's ``sizes`` are not offered.

    ``sizes`` (T,) is None where every round offers equally many; otherwise there is one seed.
    """

    offered: Offered
    sizes: Floats | None = None
    names: Sequence[str | int] = ()
    """Names of actions by the places that the offers hold."""

    def __len__(self) -> int:
        return int(self.offered.contexts.shape[-2])

    @property
    def shape(self) -> tuple[int, int]:
        """Rounds, and the features of a record."""
        joint = getattr(self.offered, "joint", None)
        return len(self), self.offered.contexts.shape[-1] if joint is None else joint.p

    def part(self, rows: slice | NumpyArray) -> PlayedOffers:
        """Return some of the rounds."""
        sizes = None if self.sizes is None else self.sizes[rows]
        return PlayedOffers(self.offered.part(rows), sizes, self.names)

    @property
    def inside(self) -> Floats:
        """Mask (n, K) of the places that are offered."""
        sizes = np.full(len(self), self.offered.count) if self.sizes is None else self.sizes
        return np.asarray(np.arange(self.offered.count) < sizes[:, None])

    def places_of(self, actions: Values) -> Floats:
        """Return the place of each round's action in its offer, by name."""
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
        """Return places (..., n) of the chosen actions, size by size without a loop over rounds."""
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
        """Return chances (n, K) of the offered actions, zero beyond their number, for one seed."""
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
        """Return places (..., n) of actions drawn uniformly from each offer."""
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

    def in_order(self, orders: NumpyArray, place: Callable[[NumpyArray], Array]) -> PlayedOffers:
        """Return rounds in the order of each seed (S, T), with arrays that ``place`` moves to a
        machine: contexts become (S, 1, T, …)."""
        given, where = self.offered, place(orders)
        changes: dict[str, Array] = {"contexts": place(given.contexts)[where][:, None]}
        if given.actions is not None:
            changes["actions"] = place(np.ascontiguousarray(given.actions))[where][:, None]
        if hasattr(given, "items"):
            changes["items"] = place(given.items)
        sizes = None if self.sizes is None else self.sizes[orders[0]]
        return PlayedOffers(replace(given, **changes), sizes, self.names)


def played_offers(
    plan: Plan, features: Floats, offers: Values, labels: Values, losses: Values
) -> tuple[PlayedOffers, Floats]:
    """Return the offers of all rounds and their losses (T, K), NaN beyond a round's size."""
    played = offers_alone(plan, features, offers)
    if offers is None:
        return played, _whole_table(plan, len(features), labels, losses)
    return played, _offered_table(played, labels, losses)


def offers_alone(plan: Plan, features: Floats, offers: Values) -> PlayedOffers:
    """Return the offers of all rounds; None offers all actions of the plan."""
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
    changes: dict[str, Array] = {"contexts": features, "actions": places}
    every = bool((sizes == most).all())
    whole = replace(read.groups[0].offered, **changes)
    return PlayedOffers(whole, None if every else sizes, read.names)


def _whole_table(plan: Plan, rows: int, labels: Values, losses: Values) -> Floats:
    if losses is not None:
        return loss_table(losses, rows, plan.n_actions, plan.losses)
    right = label_actions(labels, rows, plan.n_actions, plan.actions)
    return np.asarray(np.arange(plan.n_actions) != right[:, None], dtype=np.float64)


def _offered_table(played: PlayedOffers, labels: Values, losses: Values) -> Floats:
    """Return losses (T, K) of the offered actions."""
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


def context_free_offer_losses(offers: PlayedOffers, table: Floats) -> tuple[float, float]:
    """Return mean losses of the item that is best on average among those offered, and of uniform
    draws. If all actions are offered in every round the first is the best fixed action.
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
