"""Mean outcomes of batches, from what is published anyway.

A release holds noisy sums of centred losses and noisy counts, which give the mean loss of its
batch, or the mean reward where the plan declares rewards. This is post-processing: no budget is
spent on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.design.outcome import UNIT_LOSS, Outcome
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import assumptions, event_json
from discreet.releases.policy_view import PolicyView
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics
from discreet.types import JsonObject


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
    return [
        _of(item.number, item.records, item.statistics, weight, released.outcome)
        for item in released.items
        if item.statistics is not None and _of_bandit(item.statistics)
    ]


def _of_bandit(statistics: Statistics) -> bool:
    """Return whether each action has separate sums, instead of one block for all."""
    return bool(statistics.gram.shape[-3] == statistics.response.shape[-2])


def _of(
    number: int, records: int, statistics: Statistics, response_weight: float, outcome: Outcome
) -> Quality:
    if statistics.outcome_sums is not None:  # N and, for each action, ½·Q, each with noise σ
        halves = statistics.outcome_sums[2::2]
        total, count = 2.0 * float(halves.sum()), float(statistics.outcome_sums[0])
        total_variance, count_variance = 4.0 * len(halves), 1.0
    else:  # sums of the constant feature 1/√2 over all actions: Q/√2 with σ/ω, N/2 with σ
        total = math.sqrt(2.0) * float(statistics.response[..., 0].sum())
        count = 2.0 * float(statistics.gram[..., 0, 0].sum())
        actions = statistics.response.shape[-2]
        total_variance, count_variance = 2.0 * actions / response_weight**2, 4.0 * actions
    # Slots whose loss never came are not counted; the noisy count is kept within its bounds.
    observed = float(np.clip(count, 1.0, records))
    excess = total / observed
    variance = total_variance + count_variance * min(abs(excess), 0.5) ** 2
    loss = min(max(0.5 + excess, 0.0), 1.0)
    error = math.sqrt(statistics.variance * variance) / observed
    return Quality(number, records, loss, error, outcome)


def released_document(released: Released) -> JsonObject:
    """Return the plan, and of each release its cost, its shape and the mean of its batch."""
    plan: Any = released.plan
    delta = float(plan["budget"]["delta"])
    known = {each.number: each for each in quality(released)}
    sentences = [sentence for item in released.items for sentence in assumptions(item.event)]
    return {
        "plan": plan,
        "rounds": released.rounds,
        "assumptions": list(dict.fromkeys(sentences)),
        "releases": [
            _release_document(item, delta, known.get(item.number), released.outcome.word)
            for item in released.items
        ],
    }


def _release_document(item: Release, delta: float, known: Quality | None, word: str) -> JsonObject:
    pure = epsilon(item.event, 0.0)
    cost, at = (pure, 0.0) if math.isfinite(pure) else (epsilon(item.event, delta), delta)
    return {
        "number": item.number,
        "records": item.records,
        "epsilon": cost,
        "delta": at,
        "event": event_json(item.event),
        "link": item.predictor.link,
        "shape": list(item.predictor.weights.shape),
        "gram": item.gram is not None,
        f"mean_{word}": None if known is None else known.mean,
        f"mean_{word}_error": None if known is None else known.mean_error,
        "digest": item.digest,
    }
