"""Offers of n requests, checked and grouped by size: draws, propensities, stored rows, rankings.

Offers, and items that a request contains, are content of a record: they are used to decide, and
only the features of the chosen pair are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.actions.available_actions import AvailableActions, DeclaredActions
from discreet.design.action_names import ActionName, action_name
from discreet.design.control import UNIFORM, control_actions
from discreet.errors import InvalidInput, kind_of
from discreet.features.offered import Offered, OfferedBlocks, OfferedPairs
from discreet.policies import Policy, one_row
from discreet.policies.allocation import Uniforms, sampled_order
from discreet.releases.catalogue import item_row
from discreet.releases.policy_view import PolicyView
from discreet.types import Floats, NumpyArray

Chances = NumpyArray | list[NumpyArray]
"""Probabilities of what each request is offered: rows of equal length, or of different ones."""


class Group(NamedTuple):
    """Requests that are offered equally many actions."""

    requests: NumpyArray
    """Their places among all requests."""
    offered: Offered

    def __repr__(self) -> str:
        return "Group(private)"

    @property
    def places(self) -> Floats:
        """Places (n, K) among the names of the actions that each request is offered."""
        actions = self.offered.actions
        every = np.arange(self.offered.count) if actions is None else np.asarray(actions)
        return np.broadcast_to(every, (len(self.requests), self.offered.count))


@dataclass(frozen=True, eq=False, repr=False)
class AllActions:
    """n requests that are offered all actions of a plan without a catalogue: features (n, p).

    The usual decision; faster, since it builds nothing per request.
    """

    features: Floats
    plan: DeclaredActions

    def sample(self, policy: Policy, released: PolicyView, u: Floats) -> Floats:
        """Return the places of the chosen actions (n,) in the offer of each request."""
        return np.asarray(one_row.sample(policy, released, self.features, u))

    def instead(self, u: Floats) -> Floats:
        """Return the places of the actions that a control plays."""
        return np.asarray(control_actions(self._control_action, self.plan.n_actions, u))

    def stored(self, chosen: Floats) -> tuple[Floats, Floats]:
        """Return rows (n, p) and blocks (n,) of the chosen actions, as a batch holds them."""
        return self.features, chosen

    def named(self, chosen: Floats) -> tuple[NumpyArray, NumpyArray]:
        """Return names of the chosen actions, and their numbers."""
        return action_name(self.plan, chosen), chosen

    def chances(self, policy: Policy, released: PolicyView, control: NumpyArray | None) -> Chances:
        """Return the probabilities with which each request's action was drawn, over its offer."""
        chances = np.asarray(one_row.probabilities(policy, released, self.features))
        if control is None:
            return chances
        actions = np.arange(self.plan.n_actions)
        return _with_control(chances, control, actions == self._control_action)

    @property
    def _control_action(self) -> int | None:
        plan = self.plan
        if plan.control is None:
            return None
        return plan.control.action_index(plan.n_actions, plan.actions)

    def offered_names(self) -> list[Sequence[ActionName]]:
        """Return the actions that each request is offered."""
        return [self.plan.actions or range(self.plan.n_actions)] * len(self.features)


@dataclass(frozen=True, eq=False, repr=False)
class Offers:
    """n requests, each with its own offer."""

    size: int
    groups: list[Group]
    names: Sequence[ActionName]
    """By the places that groups hold."""
    numbered: int
    """How many of them have a number; requests contained the others."""
    p: int
    control: int | None = None
    """The place of the action that a control plays; None for actions at random."""

    def sample(self, policy: Policy, released: PolicyView, u: Floats) -> Floats:
        chosen = np.zeros(self.size, dtype=np.int64)
        for requests, offered in self.groups:
            if offered.count > 1:  # one action alone needs no policy
                view = released.offering(offered.count)
                chosen[requests] = one_row.sample(policy, view, offered, u[requests])
        return chosen

    def instead(self, u: Floats) -> Floats:
        drawn = np.zeros(self.size, dtype=np.int64)
        for group in self.groups:
            fixed = group.places == self.control
            at_random = control_actions(None, group.offered.count, u[group.requests])
            chosen = np.where(fixed.any(axis=-1), fixed.argmax(axis=-1), at_random)
            drawn[group.requests] = chosen
        return drawn

    def stored(self, chosen: Floats) -> tuple[Floats, Floats]:
        rows, blocks = np.empty((self.size, self.p)), np.empty(self.size, dtype=np.int64)
        for requests, offered in self.groups:
            rows[requests], blocks[requests] = offered.stored(chosen[requests])
        return rows, blocks

    def named(self, chosen: Floats) -> tuple[NumpyArray, NumpyArray]:
        """Return names of the chosen actions, and their numbers; −1 for items of a request."""
        places = np.zeros(self.size, dtype=np.int64)
        for group in self.groups:
            own = chosen[group.requests]
            places[group.requests] = group.places[np.arange(len(own)), own]
        names = np.empty(self.size, dtype=object)
        names[:] = [self.names[place] for place in places.tolist()]
        return names, np.where(places < self.numbered, places, -1)

    def chances(self, policy: Policy, released: PolicyView, control: NumpyArray | None) -> Chances:
        made: list[Any] = [None] * self.size
        for group in self.groups:
            requests, offered = group
            chances = np.ones((len(requests), 1))
            if offered.count > 1:
                view = released.offering(offered.count)
                chances = np.asarray(one_row.probabilities(policy, view, offered))
            if control is not None:
                fixed = group.places == self.control
                chances = _with_control(chances, control[requests], fixed)
            for request, row in zip(requests, chances, strict=True):
                made[request] = row
        return made

    def offered_names(self) -> list[Sequence[ActionName]]:
        made: list[Sequence[ActionName]] = [()] * self.size
        for group in self.groups:
            for request, row in zip(group.requests, group.places.tolist(), strict=True):
                made[request] = [self.names[place] for place in row]
        return made


def _with_control(chances: Floats, control: NumpyArray, fixed: NumpyArray) -> Floats:
    """Probabilities (n, K); requests of the ``control`` play the action that is ``fixed``, or one
    at random."""
    own = np.where(fixed.any(axis=-1, keepdims=True), fixed, 1.0 / chances.shape[-1])
    return np.where(control[:, None], own, chances)


def ranked(
    offers: AllActions | Offers, chances: Chances, chosen: Floats, uniforms: Uniforms
) -> list[list[ActionName]]:
    """Return the names of each request's offer in a sampled order, the chosen one first."""
    rows = zip(offers.offered_names(), chances, chosen, strict=True)
    orders = []
    for request, (names, row, first) in enumerate(rows):
        order = sampled_order(np.asarray(row), int(first), uniforms(request, len(row)))
        orders.append([names[place] for place in order])
    return orders


def request_offers(
    plan: DeclaredActions,
    available: AvailableActions,
    features: Floats,
    actions: object,
    *,
    single: bool,
) -> AllActions | Offers:
    """Return the offers of n requests with ``features``.

    ``actions`` is one offer for all requests, a list of one offer each, or None for every
    available action. Learner, service, devices and dashboard all call this function.
    """
    if actions is None and available.unchanged:
        return AllActions(features, plan)
    return read_offers(plan, available, features, actions, single=single)


def read_offers(
    plan: DeclaredActions,
    available: AvailableActions,
    features: Floats,
    actions: Any,
    *,
    single: bool,
) -> Offers:
    """Return the offers of n requests, grouped by their number of actions."""
    every, names, rows = np.arange(len(features)), list[str](), list[Floats]()
    parts: list[tuple[NumpyArray, Floats | None]] = []
    if actions is None and available.rows is not None:
        _refuse_nothing(available.places)
        parts = [(every, None)]
    elif actions is None or single or _is_offer(actions):
        places = _read(available, actions, names, rows)
        parts = [(every, np.broadcast_to(places, (len(every), len(places))))]
    else:
        offers = _read_each(available, list(actions), len(every), names, rows)
        sizes = np.array([len(offer) for offer in offers])
        for size in np.unique(sizes):
            requests = np.flatnonzero(sizes == size)
            parts.append((requests, np.stack([offers[request] for request in requests])))
    wider, groups = available.with_items(names, rows), []
    for requests, index in parts:
        offered: Offered = OfferedBlocks(features[requests], index)
        if wider.joint is not None and wider.rows is not None:
            offered = OfferedPairs(wider.joint, features[requests], wider.rows, index)
        groups.append(Group(requests, offered))
    control = None if plan.control is None else plan.control.action
    if isinstance(control, (int, np.integer)) and plan.actions is not None:
        control = plan.actions[int(control)]
    place = None if control in (None, UNIFORM) else available.places.get(control)
    numbered = len(available.names)
    return Offers(len(every), groups, wider.names, numbered, plan.features.p, place)


def _is_offer(actions: object) -> bool:
    """Return whether this is one offer rather than a list of offers."""
    if isinstance(actions, (str, Mapping)) or not isinstance(actions, (Sequence, np.ndarray)):
        return True
    return len(actions) == 0 or all(_is_item(each) for each in actions)


def _is_item(item: object) -> bool:
    alone = isinstance(item, (str, int, np.integer)) or (isinstance(item, Mapping) and "id" in item)
    return alone or (isinstance(item, tuple) and len(item) == 2 and not isinstance(item[1], str))


def _read_each(
    available: AvailableActions, given: list[Any], n: int, names: list[str], rows: list[Floats]
) -> list[Floats]:
    if len(given) != n:
        raise InvalidInput(
            f"actions must be one offer, or one for each context; got {len(given)} offers for "
            f"{n} contexts. Pass a list of ids, or as many lists as contexts."
        )
    offers = []
    for request, offer in enumerate(given):
        try:
            offers.append(_read(available, offer, names, rows))
        except InvalidInput as error:
            raise InvalidInput(f"row {request}: {error}") from None
    return offers


def _read(
    available: AvailableActions, offer: object, names: list[str], rows: list[Floats]
) -> Floats:
    """Return the places of an offer's actions; items that it contains join ``names`` and ``rows``,
    whose places follow those of the available actions."""
    if offer is None:
        offer = [*available.places]
    if isinstance(offer, Mapping) and "id" not in offer:
        offer = [*offer.items()]
    if isinstance(offer, (str, bytes, Mapping)) or not isinstance(offer, (Sequence, np.ndarray)):
        raise InvalidInput(
            f"actions must be a list of actions; got {kind_of(offer)}. Write actions=['a', 'b']."
        )
    _refuse_nothing(offer)
    items = offer.tolist() if isinstance(offer, np.ndarray) else offer
    with suppress(KeyError, TypeError):  # the usual offer, fast also if it is long
        found = list(map(available.places.__getitem__, items))
        if len(set(found)) == len(found):
            return np.array(found, dtype=np.int64)
    before, places = len(names), list[int]()
    for item in items:
        place = available.places.get(item) if isinstance(item, (str, int)) else None
        if place is None:
            place = len(available.names) + len(names)
            name, row = _item_of_request(available, item)
            names.append(name)
            rows.append(row)
        places.append(place)
    if len(set(places)) < len(places) or len(set(names[before:])) < len(names) - before:
        raise InvalidInput(
            "actions must be distinct; got one of them twice. Offer each action once."
        )
    return np.array(places, dtype=np.int64)


def _refuse_nothing(offer: Sized) -> None:
    if not len(offer):
        raise InvalidInput(
            "actions must be at least one; got none. Offer an action, or add items to the "
            "catalogue: learner.change_actions(add=…)."
        )


def _item_of_request(available: AvailableActions, item: object) -> tuple[str, Floats]:
    """Return id and features of an item that a request contains."""
    name, features = item, None
    if isinstance(item, Mapping) and "id" in item:
        name, features = item["id"], {key: item[key] for key in item if key != "id"}
    elif isinstance(item, tuple) and len(item) == 2:
        name, features = item
    if features is None or available.joint is None:
        kind = "items of the catalogue" if available.joint is not None else "actions of the plan"
        raise InvalidInput(
            f"actions must be {kind} that are in use; got {kind_of(name)} that is none of them. "
            "Compare its spelling with learner.actions."
        )
    if not isinstance(name, str) or not name or name != name.strip():
        raise InvalidInput(
            f"id of an item must be a word without blanks around it; got {kind_of(name)}. "
            "Name the item."
        )
    if name in available.places:
        raise InvalidInput(
            "item of the offer must come without features where the catalogue has it; got both. "
            "Offer its id alone."
        )
    return name, item_row(available.joint.action, name, features, "item of the offer")
