"""Verified chain, the policy after each of its documents, and sticky draws."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Awaitable
from typing import Any

import numpy as np

from discreet.client.chain import Chain
from discreet.design.control import control_actions
from discreet.features.joint import Joint
from discreet.features.offered import OfferedBlocks, OfferedPairs
from discreet.plan.plan import Plan
from discreet.policies import one_row
from discreet.releases.policy_view import PolicyView
from discreet.service.event_loop import SharedCalls

Draw = tuple[float, float]
ToDecide = tuple[int, np.ndarray[Any, Any], bool, Draw | None]
"""Document, row of features, whether the control decides it, and its draw if that is fixed."""
HELD = 4
"""Versions of the policy in memory: the current one, a pinned one, one for a rollback."""


class PolicyVersions:
    """Releases that were read from committed rows, and the actions of their policies."""

    def __init__(self, plan: Plan, key: str) -> None:
        self.plan = plan
        self.chain = Chain(key)
        self._held: OrderedDict[int, PolicyView] = OrderedDict()
        self._together: SharedCalls[ToDecide, int] = SharedCalls(self._act)
        # Actions may come from an ordinary generator: privacy holds for every fixed draw.
        self._draws = np.random.default_rng()

    @property
    def newest(self) -> int:
        """Number of the newest document; −1 before any was read."""
        return self.chain.number

    def extended(self, contents: list[bytes]) -> Chain:
        """Return the chain with more documents, verified and ready to decide."""
        chain = self.chain
        for content in contents:  # one by one: statistics that only fits need would fill the memory
            chain = chain.extended([content]).for_deciding()
        self._warm(chain.deciding)
        _ = chain.available_actions  # available actions, cached
        return chain

    def adopt(self, chain: Chain) -> None:
        """Serve a chain that ``extended`` returned."""
        self.chain = chain
        self._hold(self.newest, chain.deciding)

    def at(self, number: int) -> PolicyView:
        """Return the releases up to and including a document."""
        held = self._held.get(number)
        if held is None:
            held = self.chain.until(number).deciding
            self._hold(number, held)
        self._held.move_to_end(number)
        return held

    def _hold(self, number: int, released: PolicyView) -> None:
        self._held[number] = released
        while len(self._held) > HELD:
            self._held.popitem(last=False)

    def _warm(self, deciding: PolicyView) -> None:
        # One decision fills the caches of the releases, so that no request waits for them.
        plan, row = self.plan, np.zeros((1, self.plan.contexts.p))
        every: Any = row
        if isinstance(plan.features, Joint):
            every = OfferedPairs(
                plan.features, row, np.zeros((plan.n_actions, plan.features.action.p))
            )
        elif deciding.changes:
            every = OfferedBlocks(row, np.arange(plan.n_actions)[None])
        if plan.n_actions > 1:
            one_row.probabilities(plan.played_policy, deciding, every)

    def action(
        self,
        number: int,
        features: np.ndarray[Any, Any],
        control: bool = False,
        u: Draw | None = None,
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
                policy, released = self.plan.played_policy, self.at(number)
                chosen = one_row.sample(policy, released, rows, draws)
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

    def _control_actions(self, draws: np.ndarray[Any, Any]) -> Any:
        return control_actions(self.plan.control_action, self.plan.n_actions, draws)


_BITS = 53
"""Bits of a double in [0, 1)."""


def sticky_draw(key: bytes, sticky: str | None, release: int) -> Draw | None:
    """Return two numbers in [0, 1), the same for the same text and release; None without a text.

    A person gets the same action again while the release stays. Without the key the numbers are
    uniform and independent over people and releases, so probabilities stay those of the policy.
    """
    if sticky is None:
        return None
    # Privacy: releases are private for every fixed draw, also for one that follows from an id.
    # [docs/privacy/transcript.md, "Action draws"]
    text = release.to_bytes(8, "big") + sticky.encode("utf-8", "surrogatepass")
    hashed = hmac.digest(key, text, "sha256")
    first, second = (int.from_bytes(hashed[at : at + 8], "big") for at in (0, 8))
    return _uniform(first), _uniform(second)


def _uniform(word: int) -> float:
    return (word >> (64 - _BITS)) / 2.0**_BITS
