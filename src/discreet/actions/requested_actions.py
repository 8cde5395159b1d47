"""Read what callers offer: checked whole before anything happens, and put together by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np

from discreet.actions.offers import Group, Offers
from discreet.design.control import UNIFORM, Control
from discreet.errors import InvalidInput, kind_of
from discreet.features.joint import Joint
from discreet.features.offered import Offered, OfferedBlocks, OfferedPairs
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.releases.catalogue import Catalogue, item_row
from discreet.types import Floats


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

    def __repr__(self) -> str:
        return f"Known({len(self.names)} actions)"  # among them may be what a request brought

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
    """PRIVATE: places of an offer's actions, and what it brings along."""

    places: Floats
    names: list[str]
    rows: list[Floats]

    def __repr__(self) -> str:
        return "_Offer(private)"


def _read(known: Known, offer: Any, brought: int = 0) -> _Offer:
    """One offer; ``brought`` items of other requests stand between the known ones and its own."""
    if offer is None:
        offer = [*known.places]
    if isinstance(offer, Mapping) and "id" not in offer:
        offer = [*offer.items()]
    if isinstance(offer, (str, bytes, Mapping)) or not isinstance(offer, (Sequence, np.ndarray)):
        raise InvalidInput(
            f"actions must be a list of actions; got {kind_of(offer)}. Write actions=['a', 'b']."
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
            made.rows.append(item_row(schema, name, features, "item of the offer"))
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
        raise InvalidInput(
            f"actions must be {said} that are in use; got {kind_of(name)} that is none of them. "
            "Compare its spelling with learner.actions."
        )
    if not isinstance(name, str) or not name or name != name.strip():
        raise InvalidInput(
            f"id of an item must be a word without blanks around it; got {kind_of(name)}. "
            "Name the item."
        )
    if name in known.places:
        raise InvalidInput(
            "item of the offer must come without features where the catalogue has it; got both. "
            "Offer its id alone."
        )
    return name, features, known.joint.action
