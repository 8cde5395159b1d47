"""Mean outcomes of batches, from noisy sums and counts that are published anyway, at no cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.design.outcome import UNIT_LOSS, Outcome
from discreet.releases.policy_view import PolicyView
from discreet.releases.statistics import Statistics


@dataclass(frozen=True)
class Quality:
    """The mean loss of a batch in [0, 1], with the standard error that its noise causes.

    ``mean`` and ``mean_error`` are the same in the units that the plan's ``outcome`` declares.
    """

    number: int
    records: int
    loss: float
    standard_error: float
    outcome: Outcome = UNIT_LOSS

    @property
    def mean(self) -> float:
        return float(self.outcome.value_of(self.loss))

    @property
    def mean_error(self) -> float:
        return float(self.outcome.error_of(self.standard_error))

    @property
    def text(self) -> str:
        """``0.312 ± 0.044``; a dash where the noise is larger than anything that it could say."""
        if self.standard_error > 0.5:
            return "–"
        return f"{self.outcome.figure(self.mean)} ± {self.outcome.figure(self.mean_error)}"


def quality(released: PolicyView) -> list[Quality]:
    """One line per release with bandit feedback and statistics; others have none.

    The mean loss is ½ + Q/N, with the noisy sum Q of y − ½ and the noisy number N of losses.
    """
    plan = released.plan or {}
    weight = float(plan.get("oracle", {}).get("response_weight", 1.0))
    lines = []
    for item in released.items:
        sums = item.statistics
        if sums is not None and sums.gram.shape[-3] == sums.response.shape[-2]:  # one per action
            lines.append(Quality(item.number, item.records, *_mean(sums, weight), released.outcome))
    return lines


def _mean(statistics: Statistics, response_weight: float) -> tuple[float, float]:
    if statistics.outcome_sums is not None:  # N and, for each action, ½·Q, each with noise σ
        halves = statistics.outcome_sums[2::2]
        total, count = 2.0 * float(halves.sum()), float(statistics.outcome_sums[0])
        total_variance, count_variance = 4.0 * len(halves), 1.0
    else:  # sums of the constant feature 1/√2 over all actions: Q/√2 with σ/ω, N/2 with σ
        total = math.sqrt(2.0) * float(statistics.response[..., 0].sum())
        count = 2.0 * float(statistics.gram[..., 0, 0].sum())
        actions = statistics.response.shape[-2]
        total_variance, count_variance = 2.0 * actions / response_weight**2, 4.0 * actions
    # Slots whose loss never came are not counted; the noisy count is clipped to its bounds.
    observed = float(np.clip(count, 1.0, statistics.records))
    excess = total / observed
    variance = total_variance + count_variance * min(abs(excess), 0.5) ** 2
    error = math.sqrt(statistics.variance * variance) / observed
    return min(max(0.5 + excess, 0.0), 1.0), error
