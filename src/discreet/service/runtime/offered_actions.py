"""Decisions among offered actions: a subset of the actions, or items that a request contains.

Privacy: offered actions and items of a request are content of its record. Of them only the features
of the chosen pair are stored, encrypted, until the release; and the reply, if it may be repeated.
[docs/privacy/service.md, "What is stored, and for how long"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet.actions.available_actions import AvailableActions, available_actions, catalogue_after
from discreet.actions.offers import Offers, ranked, read_offers
from discreet.design.action_names import action_name
from discreet.design.control import UNIFORM
from discreet.errors import InvalidInput
from discreet.features.joint import Joint
from discreet.policies.ranking import RankingDraws
from discreet.releases.catalogue import item_row
from discreet.service.runtime.policy_versions import Draw
from discreet.service.runtime.requests import InvalidField
from discreet.service.runtime.worker_state import WorkerState
from discreet.types import NumpyArray

Floats = NumpyArray
ActionName = int | str


class Offer(NamedTuple):
    """PRIVATE: features of a context, the offered actions (None: all in use), and whether a ranking
    is requested."""

    features: Floats
    actions: object
    ranking: bool

    def __repr__(self) -> str:
        return "Offer(private)"


class Choice(NamedTuple):
    """PRIVATE: row (p,) and block that are stored of a decision, and the names in its reply."""

    row: Floats
    block: int
    name: ActionName
    ranking: list[ActionName] | None = None

    def __repr__(self) -> str:
        return "Choice(private)"


class OfferedActions:
    """Reads offers and draws from them, for requests that the path for all actions cannot serve."""

    def __init__(self, state: WorkerState) -> None:
        self._state, self._plan = state, state.settings.plan
        # Actions may come from an ordinary generator: privacy holds for every fixed draw.
        self._draws, self._rankings = np.random.default_rng(), RankingDraws()
        self._bound = lru_cache(16)(self._available_in_batch)

    def read(self, features: Floats, actions: object, ranking: bool) -> Offer:
        """Return an offer that is valid by the newest document, before a slot is taken."""
        self._offers(self._state.serving.chain.available_actions, features, actions)
        return Offer(features, actions, ranking)

    def available(self, bound: int) -> AvailableActions:
        """Return the actions available to a batch that opened after document ``bound``."""
        newest = self._state.serving.chain
        if self._plan.catalogue is not None:
            return newest.available_actions
        return self._bound(bound, newest.number)

    def _available_in_batch(self, bound: int, newest: int) -> AvailableActions:
        chain = self._state.serving.chain.until(newest)
        return available_actions(chain.declared, chain.changes, chain.blocks_at(bound))

    def choose(
        self, document: int, bound: int, offer: Offer, control: bool, draw: Draw | None = None
    ) -> Choice:
        """Return the action of the policy after ``document`` for a slot of a batch that opened
        after ``bound``, of the control, or in shadow mode the default; with a sticky ``draw``."""
        plan = self._plan
        offers = self._offers(self.available(bound), offer.features, offer.actions)
        released = self._state.serving.at(document)
        u = self._draws.random((1, 2)) if draw is None else np.array([draw])
        # Privacy: the policy is computed for people in the control as well, so the time of a reply
        # does not reveal who they are. [docs/privacy/lift.md, "People"]
        chosen = offers.sample(plan.played_policy, released, u)
        chosen = offers.instead(u) if control else chosen
        if self._state.mode == "shadow":
            chosen = self._default(offers)
        rows, blocks = offers.stored(chosen)
        names, _ = offers.named(chosen)
        order = None
        if offer.ranking:
            chances = offers.chances(plan.played_policy, released, np.array([control]))
            order = ranked(offers, chances, chosen, self._rankings.next_call())[0]
        return Choice(rows[0], int(blocks[0]), names[0], order)

    def _default(self, offers: Offers) -> Floats:
        """Return the default action if it is offered, else the first of the offer."""
        names = list(offers.offered_names()[0])
        default = self._state.settings.default_name
        return np.array([names.index(default) if default in names else 0])

    def _offers(self, available: AvailableActions, features: Floats, actions: object) -> Offers:
        try:
            return read_offers(self._plan, available, features[None], actions, single=True)
        except InvalidInput as error:
            raise InvalidField(_without_values(str(error), actions), "actions") from None

    def of_control(self, bound: int, draw: Draw | None = None) -> str | None:
        """Return the name of an action of the control, for a device that decides by itself."""
        available, control = self.available(bound), self._plan.control
        fixed = None if control is None or control.action == UNIFORM else self._plan.control_action
        named = None if fixed is None else action_name(self._plan, fixed)
        if isinstance(named, str) and named in available.places:
            return named
        places = [*available.places]
        if not places:  # requests contain the items
            return None
        first = self._draws.random() if draw is None else draw[0]
        return str(places[int(first * len(places))])

    def played(self, bound: int, features: Floats, action: object) -> Choice:
        """Return row and block of the action that a device played in a batch after ``bound``."""
        plan = self._plan
        if not isinstance(plan.features, Joint):
            names = [*self._state.serving.chain.available_actions.names]
            blocks = self._state.serving.chain.blocks_at(bound)
            if not isinstance(action, str) or action not in names[:blocks]:
                raise _unknown()
            return Choice(features, names.index(action), action)
        name, item = self._item(bound, plan.features, action)
        return Choice(plan.features.rows(features, item), 0, name)

    def _item(self, bound: int, joint: Joint, action: object) -> tuple[str, Floats]:
        """Return id and features of an item that is in the catalogue, was in it when the batch
        opened, or is in the request."""
        chain = self._state.serving.chain
        if isinstance(action, Mapping):
            name, features = action.get("id"), {key: action[key] for key in action if key != "id"}
            if not isinstance(name, str) or name in chain.available_actions.places:
                raise _unknown()
            try:
                return name, item_row(joint.action, name, features)
            except InvalidInput as error:
                raise InvalidField(_without_values(str(error), [action]), "action") from None
        if not isinstance(action, str):
            raise _unknown()
        available = chain.available_actions
        if action in available.places and available.rows is not None:
            return action, available.rows[available.places[action]]
        before = catalogue_after(self._plan, chain.until(bound).changes)
        if action not in before:
            raise _unknown()
        return action, before.rows[before.places[action]]


def _without_values(text: str, actions: object) -> str:
    """Return only the rule of an error: errors are logged, and offers are private."""
    for item in actions if isinstance(actions, Sequence) else ():
        id = item.get("id") if isinstance(item, Mapping) else item
        for start in ("item ", "features of item "):
            if text.startswith(f"{start}{id!r}"):
                text = f"{start}of the offer{text.removeprefix(f'{start}{id!r}')}"
    rule, given, _ = text.partition("; got ")
    broken = f"{rule}; this offer breaks the rule. GET /v1/actions lists what is in use."
    return broken if given else text


def _unknown() -> InvalidField:
    return InvalidField(
        "action must be one that the batch of the ticket has; this one is not. "
        "GET /v1/actions lists what is in use.",
        "action",
    )
