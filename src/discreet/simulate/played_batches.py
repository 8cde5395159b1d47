"""The loop over batches that all simulations share: one run, or a stack of runs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from discreet.actions.available_actions import available_actions
from discreet.actions.offers import read_offers
from discreet.arrays.backend import as_like, namespace
from discreet.batch import Batch
from discreet.batches.release_batch import Calibration
from discreet.design.control import Control, control_actions, people_in_control, slots_in_control
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.features.offered import Offered, OfferedPairs
from discreet.plan.plan import Plan
from discreet.policies import Policy
from discreet.releases.policy_view import PolicyView
from discreet.releases.release import Release
from discreet.releases.released import Released
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
        """Mask (n, K) of the actions that are offered."""
        sizes = np.full(len(self), self.offered.count) if self.sizes is None else self.sizes
        return np.asarray(np.arange(self.offered.count) < sizes[:, None])

    def places_of(self, actions: Values) -> Floats:
        """Return the place of each round's action in its offer, by name."""
        places = {name: place for place, name in enumerate(self.names)}
        numbers = np.array([places.get(each, -1) for each in np.asarray(actions).tolist()])
        every = np.arange(self.offered.count)[None]
        offered = every if self.offered.actions is None else self.offered.actions
        found = (offered == numbers[:, None]) & self.inside
        unknown = np.flatnonzero(~found.any(axis=1))
        if len(unknown):
            row = int(unknown[0])
            raise InvalidInput(
                f"row {row}: action must be one of those offered; got {actions[row]!r}. "
                "Give what was offered, or leave the row out."
            )
        return np.asarray(found.argmax(axis=1))

    def sample(self, policy: Policy, released: PolicyView, u: Array) -> Array:
        """Return places (..., n) of the chosen actions, size by size without a loop over rounds."""
        if self.sizes is None:
            return policy.sample(released.offering(self.offered.count), self.offered, u)
        xp, parts, order = namespace(u), [], []
        for rounds, some in self._by_size():
            chosen = xp.astype(0 * u[..., rounds, 0], xp.int64)
            if some.count > 1:
                chosen = policy.sample(released.offering(some.count), some, u[..., rounds, :])
            parts.append(chosen)
            order.append(rounds)
        shape = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        joined = xp.concat([xp.broadcast_to(p, (*shape, p.shape[-1])) for p in parts], axis=-1)
        return joined[..., np.argsort(np.concatenate(order))]

    def probabilities(self, policy: Policy, released: PolicyView) -> Array:
        """Return chances (n, K) of the offered actions, zero beyond their number, for one seed."""
        chances = np.zeros((len(self), self.offered.count))
        for rounds, some in self._by_size():
            chances[rounds, : some.count] = 1.0
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
        """Yield rounds that offer equally many actions, and their offers."""
        if self.sizes is None:
            yield np.arange(len(self)), self.offered
            return
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
        if isinstance(given, OfferedPairs):
            changes["items"] = place(given.items)
        sizes = None if self.sizes is None else self.sizes[orders[0]]
        return PlayedOffers(replace(given, **changes), sizes, self.names)


def offers_alone(plan: Plan, features: Floats, offers: Values) -> PlayedOffers:
    """Return the offers of all rounds; None offers all actions of the plan."""
    offers = offers.tolist() if isinstance(offers, np.ndarray) else offers
    read = read_offers(plan, available_actions(plan, ()), features, offers, single=False)
    if offers is None:
        return PlayedOffers(read.groups[0].offered, names=read.names)
    sizes = np.empty(len(features), dtype=np.int64)
    for requests, offered in read.groups:
        sizes[requests] = offered.count
    places = np.zeros((len(features), int(sizes.max())), dtype=np.int64)
    for requests, offered in read.groups:
        places[requests, : offered.count] = np.asarray(offered.actions)
    changes: dict[str, Array] = {"contexts": features, "actions": places}
    whole = replace(read.groups[0].offered, **changes)
    return PlayedOffers(whole, None if sizes.min() == sizes.max() else sizes, read.names)


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


class Playable(Calibration, Protocol):
    """A plan, or a stack of plans, as a simulation plays it."""

    @property
    def played_policy(self) -> Policy: ...
    @property
    def feedback(self) -> str: ...
    @property
    def control_action(self) -> int | None: ...


def shuffle(seed: int, rows: int) -> tuple[NumpyArray, NumpyArray]:
    """Return the order of a seed's rows and its uniforms (rows, 2), shared by all algorithms."""
    order, draws = seeded_draws(seed, rows)
    return order, draws.random((rows, 2))


def seeded_draws(seed: int, rows: int) -> tuple[NumpyArray, np.random.Generator]:
    """Return the order of a seed's rows, and the generator whose next draws are its uniforms."""
    rng = np.random.default_rng([seed, 2**31])
    return rng.permutation(rows), rng


def played_control(
    control: Control, planned: Schedule, rounds: int, owners: list[str] | None
) -> NumpyArray:
    """Return a mask (T,) of the rounds of a run that are of the control, by slot or by person.

    By slot, as a ``Learner`` plays: rounds of a batch that the ``planned`` schedule never fits take
    no slot, and follow the policy. A batch that only the data end counts as fitted. Ids of people
    are hashed without a secret, so that runs can be repeated.
    """
    if owners is not None:
        return people_in_control(control.share, b"", owners)
    slots, last = np.arange(rounds), len(replace(planned, horizon=rounds).lengths())
    if not planned.fitted(last):
        slots[planned.start(last) :] = -1
    return slots_in_control(control.share, planned, slots)


class PlayedBatch(NamedTuple):
    """Actions and losses (..., n) of a batch, and its release; the last batch has none.

    With labels the losses are bool.
    """

    chosen: Array
    incurred: Array
    release: Release | None


def play(
    plan: Playable,
    released: Released,
    features: Array,
    truth: Array,
    u: Array,
    release: Callable[[Batch, Released], Release],
    counts: Array | None = None,
    control: Array | None = None,
) -> Iterator[PlayedBatch]:
    """Play batch by batch, without a loop over rounds.

    ``features`` (..., T, p), or offers of as many rounds, and ``u`` (..., T, 2) may have leading
    axes (seeds, 1) that meet the (runs,) of a stacked policy and mechanism. ``truth`` are labels
    (..., T), or the losses of all actions (..., T, A), or of the offered ones (..., T, K).
    ``release`` fits a batch after the releases before it.
    ``counts`` (..., T) is a mask of the slots that count; the others are void.
    ``control`` (T,) is a mask of the rounds of the plan's control share.
    """
    schedule = released.schedule
    offered = isinstance(features, PlayedOffers)
    labels = not offered and truth.ndim < features.ndim
    play_rows = _offers_played if offered else _played
    for number, length in enumerate(schedule.lengths(), start=1):
        rows = slice(schedule.start(number), schedule.start(number) + length)
        x = features.part(rows) if offered else features[..., rows, :]
        known = truth[..., rows] if labels else truth[..., rows, :]
        part = None if control is None else control[rows]
        chosen, incurred, batch_rows = play_rows(plan, released, x, known, u[..., rows, :], part)
        if not schedule.fitted(number):
            yield PlayedBatch(chosen, incurred, None)
            return
        x, losses, observed = batch_rows()
        if counts is not None:
            observed = observed & counts[..., rows, None]
        made = release(Batch(x, losses, observed, part), released)
        released = released.add(made)._compact()
        yield PlayedBatch(chosen, incurred, made)


Played = tuple[Array, Array, Callable[[], tuple[Array, Array, Array]]]
"""Actions and losses (..., n) of some rounds, and a function of features, losses, observed."""


def _played(
    plan: Playable, released: Released, x: Array, truth: Array, u: Array, control: Array | None
) -> Played:
    """Play rounds in which every action of the plan is offered."""
    xp, labels = namespace(x), truth.ndim < x.ndim
    chosen = plan.played_policy.sample(released, x, u)
    if control is not None:
        instead = control_actions(plan.control_action, released.n_actions, u)
        chosen = xp.where(control, instead, chosen)
    actions = np.arange(released.n_actions)[:, None]
    if xp is not np:  # of one type with what was chosen: a GPU then reads several numbers at once
        actions = xp.asarray(actions, dtype=chosen.dtype, device=x.device)
    taken = (chosen[..., None, :] == actions).mT  # stored with the rows contiguous
    if labels:
        incurred = chosen != xp.astype(truth, chosen.dtype, copy=False)
    else:
        incurred = xp.where(taken, truth, xp.zeros_like(truth)).sum(-1)

    def batch_rows() -> tuple[Array, Array, Array]:
        losses = truth
        if labels:
            losses = xp.astype((truth[..., None, :] != actions).mT, x.dtype)
        return x, losses, taken if plan.feedback == "bandit" else taken | ~taken

    return chosen, incurred, batch_rows


def _offers_played(
    plan: Playable,
    released: Released,
    some: PlayedOffers,
    table: Array,
    u: Array,
    control: Array | None,
) -> Played:
    """Play rounds that offer different actions; chosen are places in the offers."""
    xp = namespace(table)
    chosen = some.sample(plan.played_policy, released, u)
    if control is not None:
        chosen = xp.where(control, some.at_random(u), chosen)
    shape = np.broadcast_shapes(chosen.shape, table.shape[:-1])
    table = xp.broadcast_to(table, (*shape, table.shape[-1]))
    picked = xp.broadcast_to(chosen, shape)[..., None]
    incurred = xp.take_along_axis(table, picked, axis=-1)[..., 0]

    def batch_rows() -> tuple[Array, Array, Array]:
        x, blocks = some.offered.stored(chosen)
        if isinstance(some.offered, OfferedPairs):
            losses = incurred[..., None]
            return x, losses, losses == losses
        actions = np.arange(released.n_actions)
        if xp is not np:
            actions = xp.asarray(actions, device=table.device)
        observed = blocks[..., None] == actions
        return x, xp.where(observed, incurred[..., None], 0.0), observed

    return chosen, incurred, batch_rows
