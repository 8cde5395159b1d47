"""The actions that requests are offered: read, checked, and put together by their number.

Who may get what, and items that a request brings along, are content of a record: they are used to
decide, and nothing of them is kept but the features of the chosen pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from discreet.action_names import action_name
from discreet.control import UNIFORM, Control, control_actions, control_chances
from discreet.errors import InvalidInput
from discreet.features.joint import Joint
from discreet.features.offered import Offered, OfferedBlocks, OfferedPairs
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan import Plan
from discreet.policies import Policy
from discreet.policies.ranking import sampled_order
from discreet.releases.catalogue import Catalogue, item_row
from discreet.releases.released import Released
from discreet.types import Floats
from discreet.validate import nearest


class Acting(Protocol):
    """What says which actions it began with: a plan, or the public part of one."""

    @property
    def features(self) -> UnitBall | Schema | Joint: ...
    @property
    def catalogue(self) -> Catalogue | None: ...
    @property
    def actions(self) -> Sequence[str] | None: ...
    @property
    def n_actions(self) -> int: ...
    @property
    def control(self) -> Control | None: ...


class Known(NamedTuple):
    """The actions that may be offered: names of all, and the places of those that are in use.

    ``rows`` are the features of items, None where actions have blocks.
    """

    names: Sequence[Any]
    places: Mapping[Any, int]
    rows: Floats | None = None
    joint: Joint | None = None

    @classmethod
    def of_catalogue(cls, catalogue: Catalogue, joint: Joint) -> Known:
        """All items of a catalogue."""
        return cls(catalogue.ids, catalogue.places, catalogue.rows, joint)

    def with_items(self, names: list[str], rows: list[Floats]) -> Known:
        """These, and items that requests bring along."""
        if not names or self.rows is None:
            return self
        both = np.concatenate([self.rows, np.stack(rows)])
        return self._replace(names=[*self.names, *names], rows=both)


class Group(NamedTuple):
    """Requests that are offered equally many actions."""

    requests: Any
    """Their places among all requests."""
    offered: Offered


@dataclass(frozen=True, eq=False, repr=False)
class Everything:
    """n requests that are offered all actions of a plan without a catalogue: features (n, p)."""

    features: Floats
    plan: Plan

    def sample(self, policy: Policy, released: Released, u: Floats) -> Floats:
        """The places of the chosen actions (n,) in what each request is offered."""
        return np.asarray(policy.sample(released, self.features, u))

    def instead(self, u: Floats) -> Floats:
        """The places of what a control plays."""
        return np.asarray(control_actions(self.plan.control_action, self.plan.n_actions, u))

    def stored(self, chosen: Floats) -> tuple[Floats, Floats]:
        """Rows (n, p) and blocks (n,) of the chosen actions, as a batch keeps them."""
        return self.features, chosen

    def named(self, chosen: Floats) -> tuple[Any, Any]:
        """Names of the chosen actions, and their numbers."""
        return action_name(self.plan, chosen), chosen

    def chances(self, policy: Policy, released: Released, control: Any) -> Any:
        """The probabilities with which each request's action was drawn: rows over its offer."""
        chances = np.asarray(policy.probabilities(released, self.features))
        if control is None:
            return chances
        instead = control_chances(self.plan.control_action, self.plan.n_actions)
        return np.where(control[:, None], instead, chances)

    def offered_names(self) -> list[Sequence[Any]]:
        """The actions that each request is offered."""
        return [self.plan.actions or range(self.plan.n_actions)] * len(self.features)


@dataclass(frozen=True, eq=False, repr=False)
class Offers:
    """n requests, each with its own offer."""

    size: int
    groups: list[Group]
    names: Sequence[Any]
    """By the places that groups hold."""
    known: int
    """How many of them have a number; the others were brought along."""
    p: int
    control: Any = None
    """The place of the action that a control plays; None for actions at random."""

    def sample(self, policy: Policy, released: Released, u: Floats) -> Floats:
        chosen = np.zeros(self.size, dtype=np.int64)
        for requests, offered in self.groups:
            if offered.count > 1:  # one action alone needs no policy
                view = released.offering(offered.count)
                chosen[requests] = policy.sample(view, offered, u[requests])
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

    def named(self, chosen: Floats) -> tuple[Any, Any]:
        """Names of the chosen actions, and their numbers; −1 for what was brought along."""
        pairs = zip(self._places, chosen, strict=True)
        places = np.array([row[place] for row, place in pairs], dtype=np.int64)
        names = np.empty(self.size, dtype=object)
        names[:] = [self.names[place] for place in places]
        return names, np.where(places < self.known, places, -1)

    def chances(self, policy: Policy, released: Released, control: Any) -> Any:
        made: list[Any] = [None] * self.size
        for requests, offered in self.groups:
            chances = np.ones((len(requests), 1))
            if offered.count > 1:
                view = released.offering(offered.count)
                chances = np.asarray(policy.probabilities(view, offered))
            for request, row in zip(requests, chances, strict=True):
                made[request] = row
        for request in np.flatnonzero(control) if control is not None else ():
            place = self._control_place(self._places[request])
            made[request] = control_chances(place, len(made[request]))
        return made

    def offered_names(self) -> list[Sequence[Any]]:
        return [[self.names[place] for place in row] for row in self._places]

    @cached_property
    def _places(self) -> list[Floats]:
        """Where the actions of each request's offer stand among ``names``."""
        made: list[Any] = [None] * self.size
        for requests, offered in self.groups:
            every = np.arange(offered.count)
            for row, request in enumerate(requests):
                made[request] = every if offered.actions is None else offered.actions[row]
        return made

    def _control_place(self, places: Floats) -> int | None:
        """Where a control finds its action in an offer; None if it is not there, or any will do."""
        if self.control is None or not (found := np.flatnonzero(places == self.control)).size:
            return None
        return int(found[0])


def ranked(offers: Everything | Offers, chances: Any, chosen: Floats, draws: Any) -> list[Any]:
    """The names of each request's offer in a sampled order, the chosen one first."""
    rows = zip(offers.offered_names(), chances, chosen, strict=True)
    orders = []
    for names, row, first in rows:
        order = sampled_order(np.asarray(row), int(first), draws.random(len(row)))
        orders.append([names[place] for place in order])
    return orders


def read_offers(
    plan: Acting, known: Known, features: Floats, actions: Any, *, single: bool
) -> Offers:
    """The offers of n requests with ``features``; ``actions`` is one offer for all of them, or a
    list of one offer each, or None for every action that is in use."""
    n = len(features)
    if actions is None and known.rows is not None:
        _refuse_nothing(known.places)
        return _offers(plan, known, [Group(np.arange(n), _offered(known, features, None))], n)
    if actions is None or single or _is_offer(actions):
        one = _read(known, actions)
        wider = known.with_items(one.names, one.rows)
        index = np.broadcast_to(one.places, (n, len(one.places)))
        group = Group(np.arange(n), _offered(wider, features, index))
        return _offers(plan, known, [group], n, wider)
    given = list(actions)
    if len(given) != n:
        raise InvalidInput(
            f"actions must be one offer, or one for each context; got {len(given)} offers for "
            f"{n} contexts. Pass a list of ids, or as many lists as contexts."
        )
    offers, names, rows = [], list[str](), list[Floats]()
    for request, offer in enumerate(given):
        try:
            one = _read(known, offer, len(names))
        except InvalidInput as error:
            raise InvalidInput(f"row {request}: {error}") from None
        offers.append(one.places)
        names += one.names
        rows += one.rows
    wider, groups = known.with_items(names, rows), []
    sizes = np.array([len(offer) for offer in offers])
    for size in np.unique(sizes):
        requests = np.flatnonzero(sizes == size)
        index = np.stack([offers[request] for request in requests])
        groups.append(Group(requests, _offered(wider, features[requests], index)))
    return _offers(plan, known, groups, n, wider)


def _offers(
    plan: Acting, known: Known, groups: list[Group], size: int, wider: Known | None = None
) -> Offers:
    control: Any = None if plan.control is None else plan.control.action
    if isinstance(control, (int, np.integer)) and plan.actions is not None:
        control = plan.actions[int(control)]
    place = None if control in (None, UNIFORM) else known.places.get(control)
    names = (wider or known).names
    return Offers(size, groups, names, len(known.names), plan.features.p, place)


def _offered(known: Known, features: Floats, index: Any) -> Offered:
    if known.joint is None or known.rows is None:
        return OfferedBlocks(features, index)
    return OfferedPairs(known.joint, features, known.rows, index)


def _is_offer(actions: Any) -> bool:
    """Whether this is one offer rather than a list of offers."""
    if isinstance(actions, (str, Mapping)) or not isinstance(actions, (Sequence, np.ndarray)):
        return True
    return len(actions) == 0 or all(_is_item(each) for each in actions)


def _is_item(item: Any) -> bool:
    alone = isinstance(item, (str, int, np.integer)) or (isinstance(item, Mapping) and "id" in item)
    return alone or (isinstance(item, tuple) and len(item) == 2 and not isinstance(item[1], str))


class _Offer(NamedTuple):
    """Places of an offer's actions, and what it brings along."""

    places: Floats
    names: list[str]
    rows: list[Floats]


def _read(known: Known, offer: Any, brought: int = 0) -> _Offer:
    """One offer; ``brought`` items of other requests stand between the known ones and its own."""
    if offer is None:
        offer = [*known.places]
    if isinstance(offer, Mapping) and "id" not in offer:
        offer = [*offer.items()]
    if isinstance(offer, (str, bytes, Mapping)) or not isinstance(offer, (Sequence, np.ndarray)):
        raise InvalidInput(
            f"actions must be a list of actions; got {offer!r}. Write actions=['a', 'b']."
        )
    _refuse_nothing(offer)
    first, places = len(known.names) + brought, list[int]()
    made = _Offer(np.empty(len(offer), dtype=np.int64), [], [])
    items = offer.tolist() if isinstance(offer, np.ndarray) else offer
    with suppress(KeyError, TypeError):  # the usual offer, fast also if it is long
        found = list(map(known.places.__getitem__, items))
        if len(set(found)) == len(found):
            made.places[:] = found
            return made
    for item in items:
        place = known.places.get(item) if isinstance(item, (str, int)) else None
        if place is None:
            name, features, schema = _brought(known, item)
            place = first + len(made.names)
            made.names.append(name)
            made.rows.append(item_row(schema, name, features))
        places.append(place)
    if len(set(places)) != len(places) or len(set(made.names)) != len(made.names):
        raise InvalidInput(
            "actions must be distinct; got one of them twice. Offer each action once."
        )
    made.places[:] = places
    return made


def _refuse_nothing(offer: Any) -> None:
    if not len(offer):
        raise InvalidInput(
            "actions must be at least one; got none. Offer an action, or add items to the "
            "catalogue: learner.change_actions(add=…)."
        )


def _brought(known: Known, item: Any) -> tuple[str, Any, UnitBall | Schema]:
    """Id and features of an item that a request brings along, and how they are read."""
    if isinstance(item, Mapping) and "id" in item:
        name, features = item["id"], {key: item[key] for key in item if key != "id"}
    elif isinstance(item, tuple) and len(item) == 2:
        name, features = item
    else:
        name, features = item, None
    if features is None or known.joint is None:
        said = "items of the catalogue" if known.joint is not None else "actions of the plan"
        words = [str(each) for each in known.places]
        raise InvalidInput(
            f"actions must be {said} that are in use; got {name!r}. {nearest(str(name), words)}"
        )
    if not isinstance(name, str) or not name or name != name.strip():
        raise InvalidInput(
            f"id of an item must be a word without blanks around it; got {name!r}. Name the item."
        )
    if name in known.places:
        raise InvalidInput(
            f"item {name!r} must come without features: it is in the catalogue, which has them. "
            "Offer its id alone."
        )
    return name, features, known.joint.action
