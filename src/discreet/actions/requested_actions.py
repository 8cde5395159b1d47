"""Actions that a request offers: checked as a whole, and grouped by their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from discreet.actions.available_actions import AvailableActions, DeclaredActions
from discreet.actions.offers import AllActions, Group, Offers
from discreet.design.control import UNIFORM
from discreet.errors import InvalidInput, kind_of
from discreet.features.offered import Offered, OfferedBlocks, OfferedPairs
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.releases.catalogue import item_row
from discreet.types import Floats


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
    n = len(features)
    if actions is None and available.rows is not None:
        _refuse_nothing(available.places)
        return _offers(
            plan, available, [Group(np.arange(n), _offered(available, features, None))], n
        )
    if actions is None or single or _is_offer(actions):
        one = _read(available, actions)
        wider = available.with_items(one.names, one.rows)
        index = np.broadcast_to(one.places, (n, len(one.places)))
        group = Group(np.arange(n), _offered(wider, features, index))
        return _offers(plan, available, [group], n, wider)
    given = list(actions)
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
    wider, groups = available.with_items(names, rows), []
    sizes = np.array([len(offer) for offer in offers])
    for size in np.unique(sizes):
        requests = np.flatnonzero(sizes == size)
        index = np.stack([offers[request] for request in requests])
        groups.append(Group(requests, _offered(wider, features[requests], index)))
    return _offers(plan, available, groups, n, wider)


def _offers(
    plan: DeclaredActions,
    available: AvailableActions,
    groups: list[Group],
    size: int,
    wider: AvailableActions | None = None,
) -> Offers:
    control = None if plan.control is None else plan.control.action
    if isinstance(control, (int, np.integer)) and plan.actions is not None:
        control = plan.actions[int(control)]
    place = None if control in (None, UNIFORM) else available.places.get(control)
    names = (wider or available).names
    return Offers(size, groups, names, len(available.names), plan.features.p, place)


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
