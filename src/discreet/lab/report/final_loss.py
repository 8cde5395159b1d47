"""Final loss over data sets: its mean, its increase with privacy, its difference to the default."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.lab.report.runs import REFERENCE, Level, Numbers
from discreet.lab.report.selection import Selection
from discreet.lab.report.tables import Table
from discreet.text import epsilon_text


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
    """Return means over the data sets on which every algorithm was run.

    An algorithm without any run at some ε does not shorten the list of data sets there.
    """
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
    """Return losses (data sets,) of policies without contexts; NaN where a manifest has none."""
    facts = [about.get(name, {}) for name in datasets]
    return {
        "best fixed action": np.asarray([each.get("best_fixed", np.nan) for each in facts]),
        "uniform": np.asarray([1 - 1 / each.get("actions", np.nan) for each in facts]),
    }


BASELINE = 8.0
"""The paper's figure is relative to ε = 8."""

INCREASE_COLUMNS = (
    "algorithm",
    "epsilon",
    "mean_increase",
    "standard_error",
    "datasets",
    "relative_to_epsilon",
)


@dataclass(frozen=True)
class LossIncrease:
    """Mean increase over data sets and its standard error: (algorithms, levels)."""

    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    baseline: int
    mean: Numbers
    standard_error: Numbers
    datasets: Numbers

    @property
    def relative_to(self) -> Level:
        return self.levels[self.baseline]

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows of ``loss_increase.csv``."""
        return [
            (
                algorithm,
                level.epsilon,
                float(self.mean[a, i]),
                float(self.standard_error[a, i]),
                int(self.datasets[a, i]),
                self.relative_to.epsilon,
            )
            for a, algorithm in enumerate(self.algorithms)
            for i, level in enumerate(self.levels)
            if self.datasets[a, i]
        ]


def loss_increase(selection: Selection) -> LossIncrease | None:
    """Return L(ε) − L(8) over data sets that have both; without ε = 8, the largest finite ε."""
    private = [i for i, level in enumerate(selection.levels) if level.private]
    if not private:
        return None
    wanted = [i for i in private if selection.levels[i].epsilon == BASELINE]
    baseline = (wanted or private)[0]  # levels come with ε decreasing
    increase = selection.loss - selection.loss[..., baseline, None]
    known = np.isfinite(increase)
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, increase, 0).sum(axis=0) / n
        squares = np.where(known, (increase - mean) ** 2, 0).sum(axis=0)
        error = np.where(n > 1, np.sqrt(squares / (n - 1) / n), np.nan)
    return LossIncrease(selection.algorithms, selection.levels, baseline, mean, error, n)


DEFAULT = "Default"
NORMAL = 1.959963984540054
"""Half-width of a 95 % interval, in standard errors."""
DEFAULT_COLUMNS = (
    "epsilon",
    "algorithm",
    "datasets",
    "mean_difference",
    "low",
    "high",
    "default_ahead_percent",
    "ahead_low",
    "ahead_high",
)


@dataclass(frozen=True)
class AgainstDefault:
    """Loss of each other algorithm less that of the default plan: (data sets, others, levels)."""

    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    difference: Numbers

    def mean(self, a: int, level: int) -> tuple[int, float, float, float]:
        """Return the number of data sets, the mean over them, and its 95 % interval.

        The difference on a data set is a mean over its seeds, so the spread over data sets
        includes the variation of seeds.
        """
        known = self.difference[:, a, level]
        known = known[np.isfinite(known)]
        if len(known) == 0:
            return 0, math.nan, math.nan, math.nan
        spread = known.std(ddof=1) / math.sqrt(len(known)) if len(known) > 1 else math.nan
        middle = float(known.mean())
        return len(known), middle, middle - NORMAL * spread, middle + NORMAL * spread

    def ahead(self, a: int, level: int) -> tuple[float, float, float]:
        """Return the share of data sets on which the default is ahead (ties count half), with
        Wilson's interval."""
        known = self.difference[:, a, level]
        known = known[np.isfinite(known)]
        n = len(known)
        if n == 0:
            return math.nan, math.nan, math.nan
        share = float(((known > 0) + 0.5 * (known == 0)).mean())
        z = NORMAL**2 / n
        middle, half = share + z / 2, math.sqrt(share * (1 - share) * z + z**2 / 4)
        return share, (middle - half) / (1 + z), (middle + half) / (1 + z)

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows of ``against_default.csv``."""
        made: list[tuple[object, ...]] = []
        for i, level in enumerate(self.levels):
            for a, name in enumerate(self.algorithms):
                n, *interval = self.mean(a, i)
                if n:
                    shares = (100 * each for each in self.ahead(a, i))
                    made.append((level.epsilon, name, n, *interval, *shares))
        return made

    def table(self) -> Table:
        """Return differences by ε, with the percentage of sets on which the default is ahead."""
        made = []
        for a, name in enumerate(self.algorithms):
            cells = []
            for i in range(len(self.levels)):
                n, mean, low, _ = self.mean(a, i)
                half = "" if math.isnan(low) else f" ± {mean - low:.3f}"
                cells.append(f"{mean:+.3f}{half} ({100 * self.ahead(a, i)[0]:.0f})" if n else "–")
            made.append([name, *cells])
        caption = (
            "Loss of each algorithm, tuned on every set, less that of the untuned default plan: "
            "mean over data sets with its 95 % interval, and in brackets the percentage of sets on "
            "which the default is ahead. against_default.csv has intervals of both."
        )
        return Table(caption, ["", *(f"ε = {epsilon_text(e.epsilon)}" for e in self.levels)], made)


def against_default(selection: Selection) -> AgainstDefault | None:
    """Compare with the default plan; None without the default plan or without any other."""
    if DEFAULT not in selection.algorithms or len(selection.algorithms) < 2:
        return None
    own = selection.algorithms.index(DEFAULT)
    others = [a for a in range(len(selection.algorithms)) if a != own]
    difference = selection.loss[:, others] - selection.loss[:, own, None]
    names = tuple(selection.algorithms[a] for a in others)
    return AgainstDefault(names, selection.levels, np.asarray(difference))
