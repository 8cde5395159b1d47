"""Comparison of algorithms: final losses, their increase with ε, pairwise win rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.lab.report.campaign_results import REFERENCE, Level, Numbers, bandits, short
from discreet.lab.report.selection import Selection
from discreet.lab.report.tables import Table
from discreet.text import epsilon_text
from discreet.types import JsonMapping


@dataclass(frozen=True)
class MeanLosses:
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


def mean_loss(selection: Selection) -> MeanLosses:
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
    return MeanLosses(mean, error, n, best, common)


def without_contexts(about: JsonMapping, datasets: Sequence[str]) -> dict[str, Numbers]:
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


MARGIN = 1e-12
"""Smaller differences of mean loss are ties, which count half. [paper, pairwise win rates]"""

RATE_COLUMNS = (
    "epsilon",
    "delta",
    "row_algorithm",
    "column_algorithm",
    "datasets",
    "wins",
    "ties",
    "losses",
    "win_rate_percent",
)


@dataclass(frozen=True)
class WinRates:
    """Counts (levels, algorithms, algorithms): the row against the column."""

    levels: tuple[Level, ...]
    algorithms: tuple[str, ...]
    wins: Numbers
    ties: Numbers
    losses: Numbers

    @property
    def datasets(self) -> Numbers:
        """Data sets on which both were run."""
        return self.wins + self.ties + self.losses

    @property
    def percent(self) -> Numbers:
        """Ties count half; NaN where two algorithms share no data set."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(100 * (self.wins + self.ties / 2) / self.datasets)

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows of ``win_rates.csv``, in the order of the paper's table."""
        return [
            (
                level.epsilon,
                level.delta,
                short(row),
                short(column),
                *(int(count[i, j, k]) for count in (self.datasets, self.wins)),
                *(int(count[i, j, k]) for count in (self.ties, self.losses)),
                round(float(self.percent[i, j, k]), 6),
            )
            for i, level in enumerate(self.levels)
            for j, row in enumerate(self.algorithms)
            for k, column in enumerate(self.algorithms)
            if self.datasets[i, j, k]
        ]

    def first(self, level: int) -> str | None:
        """Return the algorithm that wins more than half against each other one, if there is one."""
        if len(self.algorithms) < 2:
            return None
        # An algorithm without runs at this level neither wins nor loses.
        played = self.datasets[level].any(axis=1)
        beaten = (self.percent[level] > 50) | np.eye(len(self.algorithms), dtype=bool) | ~played
        found = np.flatnonzero(beaten.all(axis=1) & played)
        return self.algorithms[int(found[0])] if len(found) else None

    def against_the_rest(self) -> Numbers:
        """Return the mean win rate against the others: (levels, algorithms)."""
        others = self.percent.copy()
        diagonal = np.arange(len(self.algorithms))
        others[:, diagonal, diagonal] = np.nan
        known = np.isfinite(others)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(known, others, 0).sum(axis=-1) / known.sum(axis=-1))


def outcomes(loss: Numbers) -> Numbers:
    """Return +1 where the row wins, 0 for a tie, −1 where it loses.

    The result is (data sets, levels, rows, columns).

    ``loss`` is (data sets, algorithms, levels); NaN where one of the two was not run.
    """
    by_level = np.moveaxis(loss, 2, 1)
    ahead = by_level[..., None, :] - by_level[..., :, None]
    return np.where(np.abs(ahead) <= MARGIN, 0.0, np.sign(ahead))


def win_rates(selection: Selection, among: Numbers | None = None) -> WinRates:
    """Return win rates of the bandit algorithms, over all data sets or those in ``among``."""
    names = bandits(selection.algorithms)
    kept = [selection.algorithms.index(name) for name in names]
    loss = selection.loss[:, kept]
    result = outcomes(loss if among is None else loss[among])
    return WinRates(
        selection.levels,
        tuple(names),
        *((result == outcome).sum(axis=0) for outcome in (1, 0, -1)),
    )
