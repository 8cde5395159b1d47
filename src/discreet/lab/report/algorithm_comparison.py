"""Comparison of algorithms: final losses, their increase with ε, pairwise win rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.lab.report.campaign_results import REFERENCE, Level, Numbers, bandits, short
from discreet.lab.report.selection import Selection
from discreet.types import JsonMapping, JsonObject


class OverSets(NamedTuple):
    """Mean over data sets, its standard error, and the number of sets: (algorithms, levels)."""

    mean: Numbers
    standard_error: Numbers
    datasets: Numbers


def over_sets(values: Numbers) -> OverSets:
    """Return statistics of values (data sets, algorithms, levels); NaN is an unknown value."""
    known = np.isfinite(values)
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0).sum(axis=0) / n
        squares = np.where(known, (values - mean) ** 2, 0).sum(axis=0)
        error = np.where(n > 1, np.sqrt(squares / (n - 1) / n), np.nan)
    return OverSets(mean, error, n)


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
    common = np.asarray((has | ~has.any(axis=0)).all(axis=1) & has.any(axis=1))
    mean, error, _ = over_sets(np.where(common[:, None, :], selection.loss, np.nan))
    if len(selection.datasets) == 1:
        error = np.where(common, selection.standard_error[0], np.nan)
    bandit = np.asarray([name != REFERENCE for name in selection.algorithms])
    contest = np.where(bandit[:, None] & np.isfinite(mean), mean, np.inf)
    best = np.where(np.isfinite(contest).any(axis=0), contest.argmin(axis=0), -1)
    return MeanLosses(mean, error, common.sum(axis=0), best, common)


def without_contexts(about: JsonMapping, datasets: Sequence[str]) -> dict[str, Numbers]:
    """Return losses (data sets,) of policies without contexts; NaN where a manifest has none."""
    facts = [about.get(name, {}) for name in datasets]
    return {
        "best fixed action": np.asarray([each.get("best_fixed", np.nan) for each in facts]),
        "uniform": np.asarray([1 - 1 / each.get("actions", np.nan) for each in facts]),
    }


BASELINE = 8.0
"""The paper's figure is relative to ε = 8."""


@dataclass(frozen=True)
class LossIncrease:
    """Mean increase of the final loss, relative to that at one ε."""

    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    relative_to: Level
    increase: OverSets

    def records(self) -> list[JsonObject]:
        """Return the lines of ``loss_increase.csv``."""
        mean, error, datasets = self.increase
        return [
            {
                "algorithm": algorithm,
                "epsilon": level.epsilon,
                "mean_increase": float(mean[a, i]),
                "standard_error": float(error[a, i]),
                "datasets": int(datasets[a, i]),
                "relative_to_epsilon": self.relative_to.epsilon,
            }
            for a, algorithm in enumerate(self.algorithms)
            for i, level in enumerate(self.levels)
            if datasets[a, i]
        ]


def loss_increase(selection: Selection) -> LossIncrease | None:
    """Return L(ε) − L(8) over data sets that have both; without ε = 8, the largest finite ε."""
    levels = selection.levels
    private = [i for i, level in enumerate(levels) if level.private]
    if not private:
        return None
    wanted = [i for i in private if levels[i].epsilon == BASELINE]
    baseline = (wanted or private)[0]  # levels come with ε decreasing
    increase = over_sets(selection.loss - selection.loss[..., baseline, None])
    return LossIncrease(selection.algorithms, levels, levels[baseline], increase)


DEFAULT = "Default"
NORMAL = 1.959963984540054
"""Half-width of a 95 % interval, in standard errors."""


def against_default(selection: Selection) -> list[JsonObject]:
    """Compare with the default plan; nothing without the default plan or without any other."""
    names = selection.algorithms
    if DEFAULT not in names:
        return []
    others = [a for a, name in enumerate(names) if name != DEFAULT]
    own = selection.loss[:, names.index(DEFAULT), None]
    return differences(
        [names[a] for a in others], selection.levels, selection.loss[:, others] - own
    )


def differences(
    algorithms: Sequence[str], levels: Sequence[Level], difference: Numbers
) -> list[JsonObject]:
    """Return the lines of ``against_default.csv``: the loss of others less that of the default.

    ``difference`` (data sets, algorithms, levels) are means over seeds, so the spread over data
    sets includes the variation of seeds. The share of data sets on which the default is ahead
    counts ties as half and has Wilson's interval.
    """
    mean, error, n = over_sets(difference)
    z = NORMAL**2 / np.maximum(n, 1)
    share = ((difference > 0) + 0.5 * (difference == 0)).sum(axis=0) / np.maximum(n, 1)
    middle, half = share + z / 2, np.sqrt(share * (1 - share) * z + z**2 / 4)
    columns = {
        "datasets": n,
        "mean_difference": mean,
        "low": mean - NORMAL * error,
        "high": mean + NORMAL * error,
        "default_ahead_percent": 100 * share,
        "ahead_low": 100 * (middle - half) / (1 + z),
        "ahead_high": 100 * (middle + half) / (1 + z),
    }
    return [
        {"epsilon": level.epsilon, "algorithm": name}
        | {column: values[a, i].item() for column, values in columns.items()}
        for i, level in enumerate(levels)
        for a, name in enumerate(algorithms)
        if n[a, i]
    ]


MARGIN = 1e-12
"""Smaller differences of mean loss are ties, which count half. [paper, pairwise win rates]"""


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

    def records(self) -> list[JsonObject]:
        """Return the lines of ``win_rates.csv``, in the order of the paper's table."""
        return [
            {
                **level._asdict(),
                "row_algorithm": short(row),
                "column_algorithm": short(column),
                "datasets": int(self.datasets[i, j, k]),
                "wins": int(self.wins[i, j, k]),
                "ties": int(self.ties[i, j, k]),
                "losses": int(self.losses[i, j, k]),
                "win_rate_percent": round(float(self.percent[i, j, k]), 6),
            }
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
        others = np.where(np.eye(len(self.algorithms), dtype=bool), np.nan, self.percent)
        return over_sets(np.moveaxis(others, -1, 0)).mean


def outcomes(loss: Numbers) -> Numbers:
    """Return +1 where the row wins, 0 for a tie, −1 where it loses; NaN where one was not run.

    ``loss`` is (data sets, algorithms, levels), the result (data sets, levels, rows, columns).
    """
    by_level = np.moveaxis(loss, 2, 1)
    ahead = by_level[..., None, :] - by_level[..., :, None]
    return np.where(np.abs(ahead) <= MARGIN, 0.0, np.sign(ahead))


def win_rates(selection: Selection) -> WinRates:
    """Return win rates of the bandit algorithms over all data sets."""
    names = bandits(selection.algorithms)
    result = outcomes(selection.loss[:, [selection.algorithms.index(name) for name in names]])
    counts = ((result == outcome).sum(axis=0) for outcome in (1, 0, -1))
    return WinRates(selection.levels, tuple(names), *counts)
