"""A learner of coba that plays a private plan."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.adapters.played_rows import PlayedRows
from discreet.errors import InvalidInput
from discreet.plan.plan import Plan
from discreet.types import Contexts


class CobaLearner:
    """Give it to ``coba.Experiment`` together with coba's own learners.

    The k-th action that coba offers is the plan's k-th; where coba offers words, and the plan has
    names or a ``Catalogue``, they are its names or ids, and may be some of them. A reward r in
    [0, 1] is the loss 1 − r; declare another range with ``Plan(outcome=Reward(low, high))``.

    Coba shows a learner its own decisions only (``learn="on"``): rows that another policy played
    belong into ``Learner.import_log``. For ``seed`` see ``PlayedRows``.

    >>> from discreet import Budget, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget.none())
    >>> learner = CobaLearner(plan)
    >>> action, chance, keys = learner.predict((0.5, 0.1), ["left", "right"])
    >>> learner.learn((0.5, 0.1), action, 1.0, chance, **keys)
    >>> chance, keys
    (0.5, {'decision': 0})
    """

    def __init__(self, plan: Plan, *, seed: int | None = None) -> None:
        self.played = PlayedRows(plan, seed)

    @property
    def params(self) -> dict[str, object]:
        """Parameters that coba writes next to the results."""
        plan = self.played.plan
        return {
            "family": "discreet",
            "policy": type(plan.policy).__name__,
            "oracle": type(plan.oracle).__name__,
            "epsilon": plan.budget.epsilon,
            "delta": plan.budget.delta,
            "seed": self.played.seed,
        }

    def predict(
        self, context: Contexts, actions: Sequence[object]
    ) -> tuple[object, float, dict[str, int]]:
        """Return the chosen action, its probability, and the id that ``learn`` needs."""
        if getattr(context, "is_batch", False) or getattr(actions, "is_batch", False):
            raise InvalidInput("context must be one context; got a batch. Coba sends each alone.")
        plan = self.played.plan
        names = () if plan.actions is None else plan.actions
        if actions and all(isinstance(each, str) and each in names for each in actions):
            decision = self.played.decide(context, [str(each) for each in actions])
            chosen = [*actions].index(decision.action)
        else:
            if plan.catalogue is not None or len(actions) != plan.n_actions:
                raise InvalidInput(
                    f"actions must be the {plan.n_actions} of the plan, or names of some; got "
                    f"{len(actions)}. Make the plan with as many actions, or offer them by name."
                )
            decision = self.played.decide(context)
            chosen = decision.action_index
        return actions[chosen], decision.propensity, {"decision": decision.id}

    def learn(
        self,
        context: Contexts,  # noqa: ARG002
        action: object,  # noqa: ARG002
        reward: float,
        probability: float | None,  # noqa: ARG002
        decision: int | None = None,
    ) -> None:
        """Report the reward of a decision; the row itself is in its batch already."""
        if decision is None:
            raise InvalidInput(
                "decision must be the id that predict returned; got none. Evaluate with "
                "learn='on', or begin with a log through Learner.import_log."
            )
        self.played.observe(decision, reward)
