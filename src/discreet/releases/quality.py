"""How people fared, batch by batch, from what is published anyway.

A pool holds noisy sums of centred losses and noisy counts, so the mean loss of a batch follows
from two successive pools. It is post-processing: no budget is spent on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.releases.statistics import Statistics
from discreet.releases.released import Released


@dataclass(frozen=True)
class Quality:
    """The mean loss of a batch, with the standard error that its noise causes."""

    number: int
    records: int
    loss: float
    standard_error: float


def quality(released: Released) -> list[Quality]:
    """One line a release with bandit feedback and pooled statistics; others have none.

    With Q = √2·Σ_a q̃_a0 the noisy sum of y − ½ and N = 2·Σ_a G̃_a00 the noisy number of losses
    heard, the mean loss is ½ + Q/N.
    """
    plan: Any = released.plan or {}
    weight = float(plan.get("oracle", {}).get("response_weight", 1.0))
    found, before = [], None
    for item in released.items:
        pool = item.statistics
        if pool is not None and pool.gram.shape[-3] == released.n_actions:
            found.append(_of(item.number, item.records, pool, before, weight))
        before = pool
    return found


def _of(
    number: int, records: int, pool: Statistics, before: Statistics | None, response_weight: float
) -> Quality:
    gram, response = pool.gram[..., 0, 0].sum(), pool.response[..., 0].sum()
    weighted, variance = pool.records, pool.variance
    if before is not None:
        gram = gram - before.gram[..., 0, 0].sum()
        response = response - before.response[..., 0].sum()
        weighted, variance = weighted - before.records, variance - before.variance
    weight = weighted / records
    sigma = math.sqrt(max(variance, 0.0)) / weight
    # Slots whose loss never came are not counted; the noisy count is kept within its bounds.
    heard = float(np.clip(2.0 * gram / weight, 1.0, records))
    excess = float(math.sqrt(2.0) * response / weight / heard)
    actions = pool.response.shape[-2]
    spread = 2.0 * actions * sigma**2 * (response_weight**-2 + 2.0 * min(abs(excess), 0.5) ** 2)
    loss = min(max(0.5 + excess, 0.0), 1.0)
    return Quality(number, records, loss, math.sqrt(spread) / heard)
