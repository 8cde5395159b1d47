"""Learner of a plan that another library plays row by row.

Such libraries hold a policy before there are rows, copy it, and report rewards. So the learner
begins with the first decision: before it a copy is allowed, and after it not, since two copies
would draw two noises for one batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.actions.decisions import Decisions
from discreet.design.outcome import UNIT_LOSS, Reward
from discreet.errors import InvalidInput, StateClaimed
from discreet.features.schema import Schema
from discreet.learner import Learner
from discreet.plan.plan import Plan
from discreet.privacy.noise import SeededNoise
from discreet.simulate.played_batches import seeded_draws
from discreet.types import Contexts, Floats
from discreet.validate import instance


def played_order(seed: int, rows: int) -> Floats:
    """Return the order in which ``evaluate(…, seed=seed)`` plays ``rows`` rows.

    >>> played_order(0, 5)
    array([2, 4, 1, 0, 3])
    """
    return np.asarray(seeded_draws(seed, rows)[0])


class PlayedRows:
    """A learner for a plan, which begins with the first decision.

    Without a ``seed`` releases are private. With one, draws and noise are those of
    ``evaluate(plan, …, seed=seed)``, so that both report the same loss where the rows come in
    ``played_order``; such noise is not private: the ledger has ε = ∞. The plan's ``horizon``
    must then be the number of rows.
    """

    def __init__(self, plan: Plan, seed: int | None = None) -> None:
        instance("plan", plan, (Plan,), "Make a Plan; that of a learner is learner.plan.")
        if plan.outcome != UNIT_LOSS and not isinstance(plan.outcome, Reward):
            raise InvalidInput(
                f"outcome must be Reward(low, high), or left out for rewards in [0, 1]; got "
                f"{plan.outcome!r}. Others report rewards: declare their range."
            )
        if plan.unit != "decision" or plan.feedback != "bandit":
            raise InvalidInput(
                f"plan must have the unit 'decision' and feedback 'bandit'; got {plan.unit!r} and "
                f"{plan.feedback!r}. Others send neither user ids nor all losses: use a Learner."
            )
        if seed is not None and plan.horizon is None:
            raise InvalidInput(
                "horizon must be the number of rows where a seed is given; got None. "
                "Make the plan with horizon=len(rows)."
            )
        self.plan, self.seed = plan, seed
        self._learner: Learner | None = None

    def __getstate__(self) -> dict[str, object]:
        if self._learner is not None:
            raise StateClaimed(
                "learner must not be copied once it decides: two copies would draw two noises for "
                "one batch. Copy it before it is played, or make a new one of the plan."
            )
        return self.__dict__

    @property
    def learner(self) -> Learner:
        """The learner: its ``ledger`` and what is ``released``."""
        if self._learner is None and self.seed is not None and self.plan.horizon is not None:
            _, draws = seeded_draws(self.seed, self.plan.horizon)
            self._learner = Learner(self.plan, noise=SeededNoise(self.seed), draws=draws)
        elif self._learner is None:
            self._learner = Learner(self.plan)
        return self._learner

    def decide(self, context: Contexts, actions: Sequence[str] | None = None) -> Decisions:
        """Decide for one context: a dict, or numbers in the order of the plan's columns."""
        return self.learner.decide(self._read(context), actions=actions)

    def observe(self, decision: int, reward: float | Floats) -> None:
        """Report the reward of a decision, in [0, 1] or in the range that the plan declares."""
        number = float(np.squeeze(np.asarray(reward, dtype=np.float64)))
        if isinstance(self.plan.outcome, Reward):
            self.learner.observe(decision, reward=number)
        else:
            self.learner.observe(decision, loss=1.0 - number)

    def _read(self, context: Contexts) -> Contexts:
        columns = self.plan.contexts
        if isinstance(columns, Schema):
            if columns.is_single(context):
                return context
            names = [field.name for field in columns.fields]
            values = np.asarray(context, dtype=object).reshape(-1).tolist()
            if len(values) != len(names):
                raise InvalidInput(
                    f"context must have {len(names)} values, one for each field of the schema; "
                    f"got {len(values)}. Send them in the order of the fields, or as a dict."
                )
            return dict(zip(names, values, strict=True))
        return np.asarray(context, dtype=np.float64).reshape(-1)
