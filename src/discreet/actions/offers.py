"""Offers of n requests, checked and grouped by size: draws, propensities, stored rows, rankings.

Who may get what, and items that a request brings along, are content of a record: they are used to
decide, and nothing of them is kept but the features of the chosen pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discreet.actions.available_actions import AvailableActions, DeclaredActions
from discreet.design.action_names import ActionName, action_name
from discreet.design.control import UNIFORM, control_actions, control_chances
from discreet.errors import InvalidInput, kind_of
from discreet.features.offered import Offered, OfferedBlocks, OfferedPairs
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
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


@dataclass(frozen=True, eq=False, repr=False)
class AllActions:
    """n requests that are offered all actions of a plan without a catalogue: features (n, p)."""

    features: Floats
    plan: DeclaredActions

    def sample(self, policy: Policy, released: PolicyView, u: Floats) -> Floats:
        """The places of the chosen actions (n,) in what each request is offered."""
        return np.asarray(one_row.sample(policy, released, self.features, u))

    def instead(self, u: Floats) -> Floats:
        """The places of what a control plays."""
        return np.asarray(control_actions(self._control_action, self.plan.n_actions, u))

    def stored(self, chosen: Floats) -> tuple[Floats, Floats]:
        """Rows (n, p) and blocks (n,) of the chosen actions, as a batch keeps them."""
        return self.features, chosen

    def named(self, chosen: Floats) -> tuple[NumpyArray, NumpyArray]:
        """Names of the chosen actions, and their numbers."""
        return action_name(self.plan, chosen), chosen

    def chances(self, policy: Policy, released: PolicyView, control: NumpyArray | None) -> Chances:
        """The probabilities with which each request's action was drawn: rows over its offer."""
        chances = np.asarray(one_row.probabilities(policy, released, self.features))
        if control is None:
            return chances
        instead = control_chances(self._control_action, self.plan.n_actions)
        return np.where(control[:, None], instead, chances)

    @property
    def _control_action(self) -> int | None:
        plan = self.plan
        if plan.control is None:
            return None
        return plan.control.action_index(plan.n_actions, plan.actions)

    def offered_names(self) -> list[Sequence[ActionName]]:
        """The actions that each request is offered."""
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
        for requests, offered in self.groups:
            drawn[requests] = control_actions(None, offered.count, u[requests])
        for request, place in enumerate(map(self._control_place, self._places)):
            drawn[request] = drawn[request] if place is None else place
        return drawn

    def stored(self, chosen: Floats) -> tuple[Floats, Floats]:
        rows, blocks = np.empty((self.size, self.p)), np.empty(self.size, dtype=np.int64)
        for requests, offered in self.groups:
            rows[requests], blocks[requests] = offered.stored(chosen[requests])
        return rows, blocks

    def named(self, chosen: Floats) -> tuple[NumpyArray, NumpyArray]:
        """Names of the chosen actions, and their numbers; −1 for what was brought along."""
        pairs = zip(self._places, chosen, strict=True)
        places = np.array([row[place] for row, place in pairs], dtype=np.int64)
        names = np.empty(self.size, dtype=object)
        names[:] = [self.names[place] for place in places]
        return names, np.where(places < self.numbered, places, -1)

    def chances(self, policy: Policy, released: PolicyView, control: NumpyArray | None) -> Chances:
        made: list[Any] = [None] * self.size
        for requests, offered in self.groups:
            chances = np.ones((len(requests), 1))
            if offered.count > 1:
                view = released.offering(offered.count)
                chances = np.asarray(one_row.probabilities(policy, view, offered))
            for request, row in zip(requests, chances, strict=True):
                made[request] = row
        for request in np.flatnonzero(control) if control is not None else ():
            place = self._control_place(self._places[request])
            made[request] = control_chances(place, len(made[request]))
        return made

    def offered_names(self) -> list[Sequence[ActionName]]:
        return [[self.names[place] for place in row] for row in self._places]

    @cached_property
    def _places(self) -> list[Floats]:
        """Places among ``names`` of the actions that each request is offered."""
        made: list[Any] = [None] * self.size
        for requests, offered in self.groups:
            every = np.arange(offered.count)
            for row, request in enumerate(requests):
                made[request] = every if offered.actions is None else offered.actions[row]
        return made

    def _control_place(self, places: Floats) -> int | None:
        """Return the place of the control's action in an offer; None for an action at random."""
        if self.control is None or not (found := np.flatnonzero(places == self.control)).size:
            return None
        return int(found[0])


def ranked(
    offers: AllActions | Offers, chances: Chances, chosen: Floats, uniforms: Uniforms
) -> list[list[ActionName]]:
    """The names of each request's offer in a sampled order, the chosen one first."""
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
    """Return what n requests with ``features`` are offered.

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
    every, wider = np.arange(len(features)), available
    if actions is None and available.rows is not None:
        _refuse_nothing(available.places)
        groups = [Group(every, _offered(available, features, None))]
    elif actions is None or single or _is_offer(actions):
        one = _read(available, actions)
        wider = available.with_items(one.names, one.rows)
        index = np.broadcast_to(one.places, (len(every), len(one.places)))
        groups = [Group(every, _offered(wider, features, index))]
    else:
        wider, offers = _read_each(available, list(actions), len(every))
        sizes, groups = np.array([len(offer) for offer in offers]), []
        for size in np.unique(sizes):
            requests = np.flatnonzero(sizes == size)
            index = np.stack([offers[request] for request in requests])
            groups.append(Group(requests, _offered(wider, features[requests], index)))
    control = None if plan.control is None else plan.control.action
    if isinstance(control, (int, np.integer)) and plan.actions is not None:
        control = plan.actions[int(control)]
    place = None if control in (None, UNIFORM) else available.places.get(control)
    numbered = len(available.names)
    return Offers(len(every), groups, wider.names, numbered, plan.features.p, place)


def _read_each(
    available: AvailableActions, given: list[Any], n: int
) -> tuple[AvailableActions, list[Floats]]:
    """Return the places of one offer for each of n requests, among the actions and their items."""
    if len(given) != n:
        raise InvalidInput(
            f"actions must be one offer, or one for each context; got {len(given)} offers for "
            f"{n} contexts. Pass a list of ids, or as many lists as contexts."
        )
    offers, names, rows = [], list[str](), list[Floats]()
    for request, offer in enumerate(given):
        try:
            one = _read(available, offer, len(names))
        except InvalidInput as error:
            raise InvalidInput(f"row {request}: {error}") from None
        offers.append(one.places)
        names += one.names
        rows += one.rows
    return available.with_items(names, rows), offers


def _offered(available: AvailableActions, features: Floats, index: object) -> Offered:
    if available.joint is None or available.rows is None:
        return OfferedBlocks(features, index)
    return OfferedPairs(available.joint, features, available.rows, index)


def _is_offer(actions: object) -> bool:
    """Return whether this is one offer rather than a list of offers."""
    if isinstance(actions, (str, Mapping)) or not isinstance(actions, (Sequence, np.ndarray)):
        return True
    return len(actions) == 0 or all(_is_item(each) for each in actions)


def _is_item(item: object) -> bool:
    alone = isinstance(item, (str, int, np.integer)) or (isinstance(item, Mapping) and "id" in item)
    return alone or (isinstance(item, tuple) and len(item) == 2 and not isinstance(item[1], str))


class _Offer(NamedTuple):
    """PRIVATE: places of an offer's actions, and what it brings along."""

    places: Floats
    names: list[str]
    rows: list[Floats]

    def __repr__(self) -> str:
        return "_Offer(private)"


def _read(available: AvailableActions, offer: object, brought: int = 0) -> _Offer:
    """One offer; ``brought`` items of other requests stand between the known ones and its own."""
    if offer is None:
        offer = [*available.places]
    if isinstance(offer, Mapping) and "id" not in offer:
        offer = [*offer.items()]
    if isinstance(offer, (str, bytes, Mapping)) or not isinstance(offer, (Sequence, np.ndarray)):
        raise InvalidInput(
            f"actions must be a list of actions; got {kind_of(offer)}. Write actions=['a', 'b']."
        )
    _refuse_nothing(offer)
    first, places = len(available.names) + brought, list[int]()
    made = _Offer(np.empty(len(offer), dtype=np.int64), [], [])
    items = offer.tolist() if isinstance(offer, np.ndarray) else offer
    with suppress(KeyError, TypeError):  # the usual offer, fast also if it is long
        found = list(map(available.places.__getitem__, items))
        if len(set(found)) == len(found):
            made.places[:] = found
            return made
    for item in items:
        place = available.places.get(item) if isinstance(item, (str, int)) else None
        if place is None:
            name, features, schema = _brought(available, item)
            place = first + len(made.names)
            made.names.append(name)
            made.rows.append(item_row(schema, name, features, "item of the offer"))
        places.append(place)
    if len(set(places)) != len(places) or len(set(made.names)) != len(made.names):
        raise InvalidInput(
            "actions must be distinct; got one of them twice. Offer each action once."
        )
    made.places[:] = places
    return made


def _refuse_nothing(offer: Sized) -> None:
    if not len(offer):
        raise InvalidInput(
            "actions must be at least one; got none. Offer an action, or add items to the "
            "catalogue: learner.change_actions(add=…)."
        )


def _brought(available: AvailableActions, item: object) -> tuple[str, Any, UnitBall | Schema]:
    """Id and features of an item that a request brings along, and how they are read."""
    if isinstance(item, Mapping) and "id" in item:
        name, features = item["id"], {key: item[key] for key in item if key != "id"}
    elif isinstance(item, tuple) and len(item) == 2:
        name, features = item
    else:
        name, features = item, None
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
    return name, features, available.joint.action
