"""Pairwise win rates: the share of data sets on which one algorithm has less loss than another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.lab.report.runs import Level, Numbers, bandits, short
from discreet.lab.report.selection import Selection

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
