"""Policies after the documents of the chain, and their actions: of all, or of those offered.

Privacy: offered actions and items of a request are content of its record. Of them only the features
of the chosen pair are stored, encrypted, until the release; and the reply, if it may be repeated.
[docs/privacy/service.md, "What is stored, and for how long"]
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet.actions.available_actions import AvailableActions, available_actions, catalogue_after
from discreet.actions.offers import Offers, ranked, read_offers
from discreet.client.chain import Chain
from discreet.design.action_names import action_name
from discreet.design.control import UNIFORM, control_actions
from discreet.errors import InvalidInput
from discreet.features.joint import Joint
from discreet.features.offered import OfferedBlocks, OfferedPairs
from discreet.plan.plan import Plan
from discreet.policies import one_row
from discreet.policies.allocation import RankingDraws
from discreet.releases.catalogue import item_row
from discreet.releases.policy_view import PolicyView
from discreet.service.runtime.requests import Draw, InvalidField, SharedCalls
from discreet.service.settings import Settings
from discreet.service.storage.batches import Head
from discreet.types import Array, NumpyArray

ToDecide = tuple[int, NumpyArray, bool, Draw | None]
"""Document, features, whether the control decides, and the draw if it is fixed."""
HELD = 4
"""Versions of the policy in memory: the current one, a pinned one, one for a rollback."""
UNKNOWN_ACTION = "action must be one of the ticket's batch; this one is not. See GET /v1/actions."


class PolicyVersions:
    """Releases that were read from committed rows, and the actions of their policies."""

    def __init__(self, plan: Plan, key: str) -> None:
        self.plan = plan
        self.chain = Chain(key)
        self.newest = -1
        """Number of the newest document; −1 before any was read."""
        self.chosen: int | None = None
        """Document that an operator chose to be served instead of the newest."""
        self.fixed_actions = plan.catalogue is None
        """Whether actions have no features and never changed: all are offered to every request."""
        self._held: OrderedDict[int, PolicyView] = OrderedDict()
        self._together: SharedCalls[ToDecide, int] = SharedCalls(self._act)
        # Actions may come from an ordinary generator: privacy holds for every fixed draw.
        self._draws = np.random.default_rng()

    def served(self, pinned: int | None = None) -> int:
        """Return the document that decides: the chosen one, that of a batch, or the newest."""
        if self.chosen is not None:
            return self.chosen
        return self.newest if pinned is None else pinned

    def head(self) -> Head | None:
        """Return the newest document that this worker has verified; None before any was read."""
        return (self.newest, self.chain.links[-1].digest) if self.chain.links else None

    def extended(self, contents: list[bytes]) -> Chain:
        """Return the chain with more documents, verified and ready to decide."""
        chain = self.chain
        for content in contents:  # one by one: statistics that only fits need would fill the memory
            chain = chain.extended([content]).for_deciding()
        self._warm(chain.deciding)
        _ = chain.available_actions  # cached
        return chain

    def adopt(self, chain: Chain) -> None:
        """Serve a chain that ``extended`` returned."""
        self.chain, self.newest = chain, chain.number
        self.fixed_actions = self.plan.catalogue is None and not chain.changes
        self._hold(self.newest, chain.deciding)

    def at(self, number: int) -> PolicyView:
        """Return the releases up to and including a document."""
        if number not in self._held:
            self._hold(number, self.chain.until(number).deciding)
        self._held.move_to_end(number)
        return self._held[number]

    def _hold(self, number: int, released: PolicyView) -> None:
        self._held[number] = released
        while len(self._held) > HELD:
            self._held.popitem(last=False)

    def _warm(self, deciding: PolicyView) -> None:
        # One decision fills the caches of the releases, so that no request waits for them.
        plan, row = self.plan, np.zeros((1, self.plan.contexts.p))
        every: Array = row
        if isinstance(plan.features, Joint):
            items = np.zeros((plan.n_actions, plan.features.action.p))
            every = OfferedPairs(plan.features, row, items)
        elif deciding.changes:
            every = OfferedBlocks(row, np.arange(plan.n_actions)[None])
        if plan.n_actions > 1:
            one_row.probabilities(plan.played_policy, deciding, every)

    def action(
        self, number: int, features: NumpyArray, control: bool = False, u: Draw | None = None
    ) -> Awaitable[int]:
        """Return the action of the policy after document ``number`` for one row of features, or
        that of the control; drawn with ``u``, or at random."""
        return self._together((number, features, control, u))

    def _act(self, requests: list[ToDecide]) -> list[int | Exception]:
        """Decide rows that arrived together in one call."""
        actions: list[int | Exception] = [0] * len(requests)
        for number in {each[0] for each in requests}:
            places = [place for place, each in enumerate(requests) if each[0] == number]
            rows = np.stack([requests[place][1] for place in places])
            draws = self._draws.random((len(rows), 2))
            for row, place in enumerate(places):
                if (u := requests[place][3]) is not None:
                    draws[row] = u
            try:
                chosen = one_row.sample(self.plan.played_policy, self.at(number), rows, draws)
                if self.plan.control is not None:
                    # Privacy: the policy is computed for people in the control as well, so the
                    # time of a reply does not reveal who they are. [docs/privacy/lift.md, "People"]
                    control = np.array([requests[place][2] for place in places])
                    chosen = np.where(control, self._control_actions(draws), chosen)
                made = chosen.tolist()
            except Exception as error:  # rows of other documents are still decided
                made = [error] * len(rows)
            for place, action in zip(places, made, strict=True):
                actions[place] = action
        return actions

    def control_action(self, u: Draw | None = None) -> int:
        """Return an action of the control, for a device that decides by itself."""
        drawn = self._draws.random((1, 2)) if u is None else np.array([u])
        return int(self._control_actions(drawn)[0])

    def _control_actions(self, draws: NumpyArray) -> NumpyArray:
        return np.asarray(control_actions(self.plan.control_action, self.plan.n_actions, draws))


class Offer(NamedTuple):
    """PRIVATE: features of a context, the offered actions (None: all in use), and the wish for a
    ranking."""

    features: NumpyArray
    actions: object
    ranking: bool

    def __repr__(self) -> str:
        return "Offer(private)"


class Choice(NamedTuple):
    """PRIVATE: row (p,) and block that are stored of a decision, and the names in its reply."""

    row: NumpyArray
    block: int
    name: int | str
    ranking: list[int | str] | None = None

    def __repr__(self) -> str:
        return "Choice(private)"


class OfferedActions:
    """Decisions among a subset of the actions, or items that a request contains."""

    def __init__(self, settings: Settings, serving: PolicyVersions) -> None:
        self._plan, self._serving, self._default = settings.plan, serving, settings.default_name
        # Actions may come from an ordinary generator: privacy holds for every fixed draw.
        self._draws, self._rankings = np.random.default_rng(), RankingDraws()
        self._bound = lru_cache(16)(self._available_in_batch)

    def read(self, features: NumpyArray, actions: object, ranking: bool) -> Offer:
        """Return an offer that is valid by the newest document, before a slot is taken."""
        self._offers(self._serving.chain.available_actions, features, actions)
        return Offer(features, actions, ranking)

    def available(self, bound: int) -> AvailableActions:
        """Return the actions available to a batch that opened after document ``bound``."""
        newest = self._serving.chain
        if self._plan.catalogue is not None:
            return newest.available_actions
        return self._bound(bound, newest.number)

    def _available_in_batch(self, bound: int, newest: int) -> AvailableActions:
        chain = self._serving.chain.until(newest)
        return available_actions(chain.declared, chain.changes, chain.blocks_at(bound))

    def choose(
        self,
        document: int,
        bound: int,
        offer: Offer,
        control: bool,
        shadow: bool,
        draw: Draw | None = None,
    ) -> Choice:
        """Return the action of the policy after ``document`` for a slot of a batch that opened
        after ``bound``, of the control, or in shadow mode the default; with a sticky ``draw``."""
        plan = self._plan
        offers = self._offers(self.available(bound), offer.features, offer.actions)
        released = self._serving.at(document)
        u = self._draws.random((1, 2)) if draw is None else np.array([draw])
        # Privacy: the policy is computed for people in the control as well, so the time of a reply
        # does not reveal who they are. [docs/privacy/lift.md, "People"]
        chosen = offers.sample(plan.played_policy, released, u)
        chosen = offers.instead(u) if control else chosen
        if shadow:  # the default action if it is offered, else the first of the offer
            offered = [*offers.offered_names()[0]]
            chosen = np.array([offered.index(self._default) if self._default in offered else 0])
        rows, blocks = offers.stored(chosen)
        names, _ = offers.named(chosen)
        if not offer.ranking:
            return Choice(rows[0], int(blocks[0]), names[0])
        chances = offers.chances(plan.played_policy, released, np.array([control]))
        order = ranked(offers, chances, chosen, self._rankings.next_call())[0]
        return Choice(rows[0], int(blocks[0]), names[0], order)

    def _offers(self, available: AvailableActions, features: NumpyArray, actions: object) -> Offers:
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

    def played(self, bound: int, features: NumpyArray, action: object) -> Choice:
        """Return row and block of the action that a device played in a batch after ``bound``."""
        joint, chain = self._plan.features, self._serving.chain
        if isinstance(joint, Joint):
            name, item = self._item(bound, joint, action)
            return Choice(joint.rows(features, item), 0, name)
        names = [*chain.available_actions.names]
        if not isinstance(action, str) or action not in names[: chain.blocks_at(bound)]:
            raise InvalidField(UNKNOWN_ACTION, "action")
        return Choice(features, names.index(action), action)

    def _item(self, bound: int, joint: Joint, action: object) -> tuple[str, NumpyArray]:
        """Return id and features of an item that is in the catalogue, was in it when the batch
        opened, or is in the request."""
        chain = self._serving.chain
        available = chain.available_actions
        if isinstance(action, Mapping):
            name, features = action.get("id"), {key: action[key] for key in action if key != "id"}
            if not isinstance(name, str) or name in available.places:
                raise InvalidField(UNKNOWN_ACTION, "action")
            try:
                return name, item_row(joint.action, name, features)
            except InvalidInput as error:
                raise InvalidField(_without_values(str(error), [action]), "action") from None
        if not isinstance(action, str):
            raise InvalidField(UNKNOWN_ACTION, "action")
        if action in available.places and available.rows is not None:
            return action, available.rows[available.places[action]]
        before = catalogue_after(self._plan, chain.until(bound).changes)
        if action not in before:
            raise InvalidField(UNKNOWN_ACTION, "action")
        return action, before.rows[before.places[action]]


def _without_values(text: str, actions: object) -> str:
    """Return only the rule of an error: errors are logged, and offers are private."""
    for item in actions if isinstance(actions, Sequence) else ():
        id = item.get("id") if isinstance(item, Mapping) else item
        named = rf"^((?:features of )?item ){re.escape(repr(id))}"
        text = re.sub(named, r"\1of the offer", text)
    rule, given, _ = text.partition("; got ")
    broken = f"{rule}; this offer breaks the rule. GET /v1/actions lists what is in use."
    return broken if given else text
