"""P2B, many runs side by side: counts of reports instead of sums of products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.arrays.backend import apply_rows, namespace, per_run, to_numpy, weighted_sums
from discreet.policies.allocation import draw, even_split, is_first_minimum
from discreet.rivals.coded_bandit import CodedBandit, sampling
from discreet.rivals.noise_clocks import NoiseClock
from discreet.rivals.rival_contract import RivalPlan, Rows
from discreet.types import Array

STEPS = 10
LEARNT_FROM = 4096
"""Rows that the codes are learnt from."""


@dataclass(frozen=True)
class CodedRuns:
    """Runs with one clock."""

    plans: Sequence[RivalPlan]
    clock: NoiseClock
    rounds: int
    seeds: Sequence[int]

    def play(self, rows: Rows, noted: Any) -> Iterator[np.ndarray[Any, Any]]:
        """Losses (S, R), summed from one noted round to the next."""
        rivals: list[Any] = [plan.rival for plan in self.plans]
        codes = coded(rows.features, rivals[0].codes)
        chances = [sampling(plan.budget, each.constants) for plan, each in self._pairs()]
        share, least = (np.array(each, dtype=np.float64) for each in zip(*chances, strict=True))
        whole = np.array([1.0 * (each.constants == "tight") for each in rivals])
        limits = [per_run(each, codes) for each in (least, whole)]
        reports = per_run(share, codes, 1)
        width = per_run(np.array([each.width for each in rivals]), codes)
        n_actions, xp = self.plans[0].n_actions, namespace(codes)
        actions = np.arange(n_actions)[:, None]
        if not isinstance(codes, np.ndarray):
            actions = xp.asarray(actions, device=codes.device)
        waiting: Any = 0.0  # (S, R, A, K, 2): reports of this batch without and with a loss
        kept: Any = 0.0
        table: Any = None
        lost: Any = 0.0
        changes = set(self.clock.ends(self.rounds))
        for start, end in pairwise([0, *sorted({*changes, *noted.tolist()})]):
            here = codes[..., start:end, :]
            u = rows.uniforms[..., start:end, :]
            if table is None:
                chosen = xp.astype(u[..., 0] * n_actions, xp.int64)
            else:
                chosen = draw(even_split(apply_rows(here, table)), u[..., 0])
            wrong = chosen != rows.labels[..., start:end]
            lost = lost + wrong.sum(-1)
            if end in noted:
                summed = to_numpy(lost).astype(np.float64)
                yield np.broadcast_to(summed, (len(self.seeds), len(rivals)))
                lost = 0.0
            taken = (chosen[..., None, :] == actions).mT & (u[..., 1] < reports)[..., None]
            heard = [taken & ~wrong[..., None], taken & wrong[..., None]]
            sums = [weighted_sums(xp.astype(each, here.dtype), here) for each in heard]
            waiting = waiting + xp.stack(sums, axis=-1)
            if end in changes and end < self.rounds:
                kept, waiting = kept + passed(waiting, *limits), 0.0
                count = kept.sum(-1)
                table = (kept[..., 1] - 0.5 * count) / (1.0 + count) - width / xp.sqrt(1.0 + count)

    def _pairs(self) -> Iterator[tuple[RivalPlan, CodedBandit]]:
        for plan in self.plans:
            assert isinstance(plan.rival, CodedBandit)
            yield plan, plan.rival


def passed(reports: Array, least: Array, whole: Array) -> Array:
    """Counts (S, R, A, K, 2) that the shuffler lets through: whole reports, or all of a code."""
    xp = namespace(reports)
    alike = reports >= least[..., None]
    crowd = reports.sum(-1).sum(-2)[..., None, :, None] >= least[..., None]
    through = xp.where(whole[..., None] > 0.5, alike, crowd)
    return xp.where(through, reports, xp.zeros_like(reports))


def coded(features: Array, codes: int) -> Array:
    """Rows (S, 1, T, p) as indicators of the nearest of ``codes`` centres: (S, 1, T, K).

    The centres are those of Lloyd's algorithm on the first rows of the first seed.
    """
    xp = namespace(features)
    rows = to_numpy(features[0, 0, :LEARNT_FROM]).astype(np.float64)
    chosen = np.random.default_rng(0).permutation(len(rows))[:codes]
    centres = rows[chosen]
    for _ in range(STEPS):
        nearest = np.argmin((centres**2).sum(1) - 2.0 * rows @ centres.T, axis=1)
        member = nearest[:, None] == np.arange(len(centres))
        size = member.sum(0)[:, None]
        centres = np.where(size > 0, member.T.astype(float) @ rows / np.maximum(size, 1), centres)
    if xp is np:
        centres = centres.astype(features.dtype)
    else:
        centres = xp.asarray(centres, dtype=features.dtype, device=features.device)
    distance = (centres**2).sum(-1) - 2.0 * features @ centres.mT
    return xp.astype(is_first_minimum(distance), features.dtype)
