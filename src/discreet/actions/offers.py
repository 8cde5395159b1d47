"""Offers of n requests, grouped by size: draws, propensities, stored rows and rankings.

Who may get what, and items that a request brings along, are content of a record: they are used to
decide, and nothing of them is kept but the features of the chosen pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discreet.actions.available_actions import DeclaredActions
from discreet.design.action_names import ActionName, action_name
from discreet.design.control import control_actions, control_chances
from discreet.features.offered import Offered
from discreet.policies import Policy, one_row
from discreet.policies.ranking import Uniforms, sampled_order
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

    @property
    def same_size(self) -> bool:
        """True if all requests are offered equally many actions."""
        return True

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

    @property
    def same_size(self) -> bool:
        return len(self.groups) == 1

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


def plain_name(name: ActionName | np.integer[Any]) -> ActionName:
    """Return the number of an action as a Python integer; names stay."""
    return int(name) if isinstance(name, np.integer) else name
