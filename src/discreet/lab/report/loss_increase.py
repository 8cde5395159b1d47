"""What privacy costs: how much the final loss grows as ε shrinks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.lab.report.runs import Level, Numbers
from discreet.lab.report.selection import Selection

BASELINE = 8.0
"""The paper's figure is relative to ε = 8."""

COLUMNS = (
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
        """The lines of ``loss_increase.csv``."""
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
    """L(ε) − L(8) on each data set that has both; without ε = 8, the largest ε that is finite."""
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
