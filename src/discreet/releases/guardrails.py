"""Guardrails of policy and control, compared by the rule of the lift; asking spends no budget."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from discreet.design.outcome import Guardrail, declared_guardrails
from discreet.errors import CorruptRelease
from discreet.releases.lift import Lift, lift
from discreet.releases.policy_view import PolicyView
from discreet.releases.statistics import PartLosses
from discreet.types import JsonObject


@dataclass(frozen=True)
class GuardrailLift:
    """Comparison of policy and control by one guardrail; ``lift`` has all lines, in its units."""

    guardrail: Guardrail
    lift: Lift

    @property
    def known(self) -> bool:
        """True if the counts of observed values are above their noise."""
        return self.lift.pooled.known

    @property
    def alert(self) -> bool:
        """True if the policy is worse than the control by more than the limit for all differences
        in the interval that is valid at any time."""
        line, outcome = self.lift.pooled, self.lift.outcome
        least = float(outcome.error_of(line.difference - line.anytime))
        return self.known and least > self.guardrail.limit

    @property
    def means(self) -> tuple[str, str]:
        """Mean values of policy and control, within the range; dashes where they are unknown."""
        line, mean = self.lift.pooled, self.lift.mean_text
        return mean(line.policy), mean(line.control)

    @property
    def difference(self) -> str:
        """``+0.011 ± 0.004``: policy less control, in the interval that is valid at any time."""
        return self.lift.difference_text(self.lift.pooled.anytime)

    @property
    def verdict(self) -> str:
        """Result of the alert rule, in words."""
        if not self.known:
            return "not known yet: the counts of observed values are within their noise"
        limit = self.guardrail.limit
        more = f" by more than {limit:g}" if limit else ""
        return f"alert: worse than the control{more}" if self.alert else "no alert"

    @property
    def text(self) -> str:
        """``complaints: policy 0.031, control 0.020, difference +0.011 ± 0.004; alert: …``."""
        if not self.known:
            return f"{self.guardrail.name}: {self.verdict}"
        policy, control = self.means
        means = f"policy {policy}, control {control}, difference {self.difference}"
        return f"{self.guardrail.name}: {means}; {self.verdict}"

    def to_json(self) -> JsonObject:
        """The guardrail, its rows as those of the lift, and the result of the alert rule."""
        whole = self.lift.to_json()
        rows = {name: whole[name] for name in ("confidence", "batches")}
        return {**asdict(self.guardrail), **rows, "alert": self.alert, "text": self.text}


def guardrails(released: PolicyView, *, confidence: float = 0.95) -> tuple[GuardrailLift, ...]:
    """Compare policy and control by each guardrail of the plan, as ``lift`` compares losses.

    Each interval alone covers its difference with the probability ``confidence``.

    Args:
        released: The releases of a plan with a ``Control`` and guardrails.
        confidence: Of the intervals, in [0.5, 1).

    Returns:
        A ``GuardrailLift`` for each: ``text``, ``alert``, ``lift``. Empty without guardrails.

    Raises:
        InvalidInput: Nothing was released yet.

    >>> from discreet import Budget, Control, Guardrail, Learner, Plan, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(1), budget=Budget.none(), control=Control(0.5),
    ...             guardrails=[Guardrail("complaints")])
    >>> learner = Learner(plan, window=0)
    >>> for _ in range(17):
    ...     decision = learner.decide([0.3])
    ...     learner.observe(decision.id, loss=0.0, guardrails={"complaints": 1})
    >>> [(each.guardrail.name, each.means, each.alert) for each in guardrails(learner.released)]
    [('complaints', ('1.000', '1.000'), False)]
    """
    found, plan = [], dict(released.plan or {})
    for place, guardrail in enumerate(declared_guardrails(plan)):
        items = []
        for item in released.items:
            sums = item.guardrails
            if sums is None or len(sums.sums) <= place:
                raise CorruptRelease(
                    "releases must tell the guardrails of their plan; one does not. "
                    "Fetch them again."
                )
            own = PartLosses(sums.sums[place], sums.variance)
            items.append(replace(item, part_losses=own))
        outcome = {"kind": type(guardrail.outcome).__name__, **asdict(guardrail.outcome)}
        alone = replace(released, items=tuple(items), plan={**plan, "outcome": outcome})
        found.append(GuardrailLift(guardrail, lift(alone, confidence=confidence)))
    return tuple(found)
