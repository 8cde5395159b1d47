"""ReplayBonusPO: bonus updates replayed over the released predictors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

from discreet.arrays.backend import at_most, per_run, softmax
from discreet.policies import one_row
from discreet.policies.allocation import Policy, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array, Numbers
from discreet.validate import positive


@dataclass(frozen=True)
class ReplayBonusPO(Policy):
    """The "BonusPO" of the paper's experiments, O(log T) work per context.

    Over the releases j = 1 … m−1, with T_j = Σ_{i≤j} B_i, q_0 = 1/A and D_0 = 0:

    b_j(a) = min{1, γ·√(T_j/A) / (1 + D_{j−1}(a))},
    q_j(a) ∝ q_{j−1}(a)·exp(−η·B_j·max{0, f_j(a) − b_j(a)}),
    D_j(a) = D_{j−1}(a) + B_j·q_{j−1}(a);

    the policy is q_{m−1}. Where the plan has a half-life, B_j is what release j still counts of its
    records, and releases that count less than 1/32 are left out, so that a decision costs the same
    however old the learner is. ``learning_rate`` is η (None: 1/(2A), as more actions need more
    trials) and ``bonus`` is γ. Weights are stored as logarithms, so that a tiny probability can
    recover.
    [paper, "New algorithms"]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> released = Released(2).add(Release(1, 1, Predictor(np.array([[1.0], [0.0]]), "identity")))
    >>> policy = ReplayBonusPO(learning_rate=1.0, bonus=0.1)
    >>> policy.probabilities(released, np.ones((1, 1))).round(4)
    array([[0.2831, 0.7169]])
    """

    learning_rate: float | None = None
    bonus: float = 0.01
    _gpu_rule = "replay"

    def __post_init__(self) -> None:
        if self.learning_rate is not None:
            positive("learning_rate", self.learning_rate)
        positive("bonus", self.bonus)

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        eta, bonus = per_run(self._rate(view), features), per_run(self.bonus, features)
        current = uniform(view, features)
        logits: Array = 0.0 * current
        counts: Array = 1.0 + logits  # 1 + D
        each = zip(self._steps(view), view.losses_of_each(features), strict=True)
        for (records, growth), losses in each:
            step = bonus * growth / counts
            step = at_most(step, 1.0, out=step)  # the optimism
            step = step - losses
            step = at_most(step, 0.0, out=step)  # the adjusted loss, negative
            step *= eta * records
            counts = counts + records * current
            logits = logits + step
            current = softmax(logits)
        return current

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        if view.latest is None:
            return one_row.uniform(view)
        actions, rate = view.n_actions, self._rate(view)
        steps = [
            (records, self.bonus * growth, rate * records) for records, growth in self._steps(view)
        ]

        def probabilities(features: Array) -> list[float]:
            logits, counts = [0.0] * actions, [1.0] * actions  # counts are 1 + D
            weights, total = [1.0] * actions, float(actions)  # q is weights over their total
            losses_of_each = view.losses_of_one(features)
            for (records, reach, slope), losses in zip(steps, losses_of_each, strict=True):
                part = records / total
                for action, loss in enumerate(losses):
                    count = counts[action]
                    adjusted = loss - (reach / count if reach < count else 1.0)
                    if adjusted > 0.0:
                        logits[action] -= slope * adjusted
                    counts[action] = count + part * weights[action]
                top = max(logits)
                weights = [math.exp(logit - top) for logit in logits]
                total = sum(weights)
            return [weight / total for weight in weights]

        return one_row.OneRow.drawn(probabilities)

    def _steps(self, view: PolicyView) -> list[tuple[float, float]]:
        """B_j and √(T_j/A) of each release that still counts."""
        records = [share * release.records for release, share in view.remembered]
        return [
            (own, (rounds / view.n_actions) ** 0.5)
            for own, rounds in zip(records, accumulate(records), strict=True)
        ]

    def _gpu_parameters(self, view: PolicyView) -> tuple[Numbers, Numbers, int]:
        return self._rate(view), self.bonus, 1

    def _rate(self, view: PolicyView) -> Numbers:
        return 0.5 / view.n_actions if self.learning_rate is None else self.learning_rate
