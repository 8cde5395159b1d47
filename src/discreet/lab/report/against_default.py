"""Every algorithm beside the untuned default plan: differences and wins, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.formatting import epsilon_text
from discreet.lab.report.runs import Level, Numbers
from discreet.lab.report.selection import Selection
from discreet.lab.report.tables import Table

DEFAULT = "Default"
NORMAL = 1.959963984540054
"""Of 95 % intervals."""
COLUMNS = (
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
        """How many data sets, the mean over them, and its 95 % interval.

        A set's difference is a mean over its seeds, so their spread over sets has the chance of
        seeds in it too.
        """
        known = self.difference[:, a, level]
        known = known[np.isfinite(known)]
        if len(known) == 0:
            return 0, math.nan, math.nan, math.nan
        spread = known.std(ddof=1) / math.sqrt(len(known)) if len(known) > 1 else math.nan
        middle = float(known.mean())
        return len(known), middle, middle - NORMAL * spread, middle + NORMAL * spread

    def ahead(self, a: int, level: int) -> tuple[float, float, float]:
        """On which share of the sets the default is ahead, ties half, and Wilson's interval."""
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
        """The lines of ``against_default.csv``."""
        made: list[tuple[object, ...]] = []
        for i, level in enumerate(self.levels):
            for a, name in enumerate(self.algorithms):
                n, *interval = self.mean(a, i)
                if n:
                    shares = (100 * each for each in self.ahead(a, i))
                    made.append((level.epsilon, name, n, *interval, *shares))
        return made

    def table(self) -> Table:
        """Differences by ε, and in brackets on how many of a hundred sets the default is ahead."""
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
    """None where there is no default plan, or nothing beside it."""
    if DEFAULT not in selection.algorithms or len(selection.algorithms) < 2:
        return None
    own = selection.algorithms.index(DEFAULT)
    others = [a for a in range(len(selection.algorithms)) if a != own]
    difference = selection.loss[:, others] - selection.loss[:, own, None]
    names = tuple(selection.algorithms[a] for a in others)
    return AgainstDefault(names, selection.levels, np.asarray(difference))
