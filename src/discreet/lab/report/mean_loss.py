"""Mean final loss over data sets: the same sets for every algorithm of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.lab.report.algorithm_names import REFERENCE
from discreet.lab.report.runs import Numbers
from discreet.lab.report.selection import Selection


@dataclass(frozen=True)
class MeanLoss:
    """(algorithms, levels), over the data sets (levels,) on which every algorithm was run.

    Standard errors are over data sets; those of a single data set are over its seeds.
    """

    mean: Numbers
    standard_error: Numbers
    datasets: Numbers
    best: Numbers
    """(levels,): index of the bandit with the least mean; −1 where there is none."""
    common: Numbers
    """(data sets, levels): the data sets over which the means are taken."""


def mean_loss(selection: Selection) -> MeanLoss:
    """An algorithm that was never run at some ε does not shrink the list of data sets there."""
    has = selection.has
    absent = ~has.any(axis=0)
    common = np.asarray((has | absent).all(axis=1) & has.any(axis=1))
    n = common.sum(axis=0)
    counted = common[:, None, :] & has
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(counted, selection.loss, 0).sum(axis=0) / np.where(absent, 0, n)
        squares = np.where(counted, (selection.loss - mean) ** 2, 0).sum(axis=0)
        error = np.where(n > 1, np.sqrt(squares / (n - 1) / n), np.nan)
    if len(selection.datasets) == 1:
        error = np.where(counted[0], selection.standard_error[0], np.nan)
    bandit = np.asarray([name != REFERENCE for name in selection.algorithms])
    contest = np.where(bandit[:, None] & np.isfinite(mean), mean, np.inf)
    best = np.where(np.isfinite(contest).any(axis=0), contest.argmin(axis=0), -1)
    return MeanLoss(mean, error, n, best, common)


def without_contexts(about: Mapping[str, Any], datasets: Sequence[str]) -> dict[str, Numbers]:
    """Losses (data sets,) that need no contexts, for comparison; NaN where a manifest has none."""
    facts = [about.get(name, {}) for name in datasets]
    return {
        "best fixed action": np.asarray([each.get("best_fixed", np.nan) for each in facts]),
        "uniform": np.asarray([1 - 1 / each.get("actions", np.nan) for each in facts]),
    }
