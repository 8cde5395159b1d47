"""A policy of Open Bandit Pipeline that plays a private plan."""

from __future__ import annotations

from collections import OrderedDict, deque
from contextlib import suppress

import numpy as np

from discreet.adapters.played_rows import PlayedRows
from discreet.errors import DecisionClosed
from discreet.features.schema import Schema
from discreet.plan.plan import Plan
from discreet.types import Floats

WAITING = 10_000
"""Decisions that are remembered until their rewards come; replays answer few of them."""


class ObpPolicy:
    """Give it to the simulators of ``obp``, as its ``BaseContextualPolicy``.

    Actions are numbers, and contexts rows of numbers in the order of the plan's columns. Simulators
    of obp report a reward with its context and action instead of an id; the oldest decision of
    this context and action that waits is the one that it is for. A reward r in [0, 1] is the loss
    1 − r; declare another range with ``Plan(outcome=Reward(low, high))``.

    A replay (``run_bandit_simulation``) reports only where the logged action was chosen: all other
    slots of a batch stay void, once ``window`` more decisions were made. For ``seed`` see
    ``PlayedRows``.

    >>> from discreet import Budget, UnitBall
    >>> policy = ObpPolicy(Plan(n_actions=3, features=UnitBall(2), budget=Budget.none()))
    >>> chosen = policy.select_action(np.array([[0.5, 0.1]]))
    >>> policy.update_params(action=chosen[0], reward=1.0, context=np.array([[0.5, 0.1]]))
    >>> chosen.shape, policy.dim, policy.n_actions
    ((1,), 2, 3)
    """

    len_list = 1
    batch_size = 1

    def __init__(self, plan: Plan, *, seed: int | None = None) -> None:
        self.played = PlayedRows(plan, seed)
        self.n_actions, self.random_state = plan.n_actions, seed
        columns = plan.contexts
        self.dim = len(columns.fields) if isinstance(columns, Schema) else columns.dimension
        self.policy_name = f"discreet_{type(plan.policy).__name__}_{plan.budget.epsilon:g}"
        self._waiting: OrderedDict[tuple[bytes, int], deque[int]] = OrderedDict()

    @property
    def policy_type(self) -> object:
        """Kind of policy in obp: it reads contexts."""
        from obp.policy.policy_type import PolicyType

        return PolicyType.CONTEXTUAL

    def initialize(self) -> None:
        """Start again without releases, and drop waiting rows."""
        self.__init__(self.played.plan, seed=self.played.seed)  # type: ignore[misc]

    def select_action(self, context: Floats) -> Floats:
        """The chosen action (1,) for a context (1, dim)."""
        # As Python's own numbers, which a schema reads as numbers and flags.
        decision = self.played.decide(np.asarray(context).reshape(-1).tolist())
        if decision.stored:
            key = _key(context, decision.action_index)
            self._waiting.setdefault(key, deque()).append(decision.id)
            if len(self._waiting) > WAITING:
                self._waiting.popitem(last=False)
        return np.array([decision.action_index])

    def update_params(self, action: int | Floats, reward: float | Floats, context: Floats) -> None:
        """Report a reward; one without a slot, or after the window, changes nothing."""
        key = _key(context, action)
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        with suppress(DecisionClosed):  # a refused reward raises, and its decision still waits
            self.played.observe(waiting[0], reward)
        waiting.popleft()
        if not waiting:
            del self._waiting[key]


def _key(context: Floats, action: int | Floats) -> tuple[bytes, int]:
    row = np.ascontiguousarray(context, dtype=np.float64).reshape(-1)
    return row.tobytes(), int(np.squeeze(action))
