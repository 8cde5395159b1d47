"""Learner: decide, observe, release. Open this file first.

People's data go in through ``decide`` and ``observe``; only what ``release`` makes of a whole
batch comes out, and it is differentially private.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet.action_names import action_name
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.plan import Plan
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Budget
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import Noise, SecureNoise
from discreet.private_release import private_release
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.rows import saved_state
from discreet.rows.memory_store import MemoryStore
from discreet.types import Decisions
from discreet.validate import observations


class Learner:
    """A private contextual bandit.

    >>> import numpy as np
    >>> from discreet import Budget, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget.none(), first_batch=1)
    >>> learner = Learner(plan)
    >>> decision = learner.decide(np.array([0.5, -0.5]))
    >>> decision.id, decision.propensity
    (0, 0.5)
    >>> learner.observe(decision.id, loss=1.0)
    >>> _ = learner.decide(np.zeros(2))
    >>> len(learner.released.items)
    1
    """

    def __init__(self, plan: Plan, *, noise: Noise | None = None, draws: Any = None) -> None:
        if plan.unit != "decision":
            raise InvalidInput(
                f"plan must have the unit 'decision' for a Learner; got {plan.unit!r}. "
                "Only the service enforces other units: run discreet serve."
            )
        self.plan = plan
        self._noise: Noise = noise or SecureNoise()
        # Actions may come from an ordinary generator: privacy holds for every fixed draw.
        self._draws = draws or np.random.default_rng()
        budget = plan.budget if self._noise.exact else Budget.none()  # seeded noise buys nothing
        if epsilon(self._noise.claim(plan.event), budget.delta) > budget.epsilon:
            raise BudgetExceeded(
                f"noise must fit the budget of {budget.text}; "
                f"got {self._noise!r}, whose sampler would take more than half of δ. "
                "Use SecureNoise() without fast."
            )
        ledger = Ledger(budget, unit=plan.unit)
        self._store = MemoryStore(
            plan.nothing_released(), ledger, plan.features.p, plan.missing_loss
        )
        self._custody = saved_state.Custody()

    @property
    def released(self) -> Released:
        """Everything that was published so far."""
        return self._store.released

    @property
    def ledger(self) -> Ledger:
        """The charges for all releases so far."""
        return self._store.ledger

    def decide(self, contexts: Any) -> Decisions:
        """Choose an action for one context or for many; each takes a slot of the open batch.

        A batch that is complete is released first, so one call fills one batch at most: of 900
        contexts those that find a slot are stored. The same policy decides the others, with
        ``stored`` False and id −1, as it does while a sealed batch waits for losses.
        The result says how many were stored ("27 of 900 stored"). To learn from all 900, decide
        them in smaller calls and observe in between.
        """
        features = self.plan.features.map(contexts)
        policy = self.plan.policy
        with self._custody:
            if self._store.ready and self.plan.releases == "automatic":
                self.release()
            released = self._store.released
            actions = policy.sample(released, features, self._draws.random((len(features), 2)))
            ids = self._store.take(features, actions)
        chances = lambda: policy.probabilities(released, features)  # noqa: E731
        if self.plan.features.is_single(contexts):
            one = int(actions[0])
            named = action_name(self.plan, one)
            return Decisions(int(ids[0]), named, bool(ids[0] >= 0), one, chances)
        return Decisions(ids, action_name(self.plan, actions), ids >= 0, actions, chances)

    def observe(self, id: Any, loss: Any = None, *, reward: Any = None) -> None:
        """Report the loss of a decision, late and in any order; arrays for many decisions.

        Where the plan declares ``outcome=Reward(low, high)``, report ``reward=…`` instead. With
        full feedback a decision has a row of A losses or rewards. Reporting the same again changes
        nothing; another loss is refused, and the first one is kept.
        """
        full, outcome = self.plan.feedback == "full", self.plan.outcome
        told = outcome.told(loss, reward)
        if isinstance(id, (int, np.integer)) and not isinstance(id, bool) and not full:
            value = outcome.loss_of(told)
            with self._custody:
                self._store.hear_one(int(id), value)
            return
        ids, losses = observations(id, told, self.plan.n_actions if full else None, outcome)
        with self._custody:
            self._store.hear(ids, losses)

    def close(self) -> None:
        """Declare the unheard slots of the sealed batch missing (void, or the declared loss)."""
        with self._custody:
            self._store.close()

    def release(self) -> Release:
        """Fit the complete batch, charge the ledger, publish and delete the rows, in one step."""
        with self._custody:
            return self._store.release(partial(private_release, self.plan, self._noise))

    def save(self, path: str | Path) -> None:
        """Write everything, private rows included, to a file only its owner can read.

        This learner cannot be used afterwards, since two continuations would draw two noises for
        one batch: load the file to go on. A plan that the file could not restore is refused, and
        this learner stays usable.
        """
        with self._custody:
            config = self.plan.to_config()
            self.plan.refuse_unregistered()
            if Plan.from_config(config).digest != self.plan.digest:
                raise InvalidInput(
                    "plan must be the same after saving and loading; this plan changes. Use words, "
                    "numbers and arrays as fields of your classes. The learner stays usable."
                )
            header = {
                "plan": config,
                "ledger": self.ledger.to_json(),
                "releases": [item.to_json() for item in self.released.items],
            }
            saved_state.write(path, header, self._store.rows())
            self._custody.handed_over = True

    @classmethod
    def load(cls, path: str | Path, *, noise: Noise | None = None, draws: Any = None) -> Learner:
        """Continue from a saved state. The file is renamed, then removed: it loads once."""
        with saved_state.claim(path) as (header, rows):
            with saved_state.contents(path):
                config = dict(header["plan"])
                releases = tuple(Release.from_json(item) for item in header["releases"])
                ledger = Ledger.from_json(header["ledger"])
            learner = cls(Plan.from_config(config), noise=noise, draws=draws)
            with saved_state.contents(path):
                learner._store.continue_from(releases, ledger, rows)
        return learner
