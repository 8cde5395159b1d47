"""Which oracle and which λ were selected, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.lab.report.runs import Level, Numbers, settings_of
from discreet.lab.report.selection import Selection

COLUMNS = ("algorithm", "epsilon", "delta", "oracle", "ridge", "datasets")


@dataclass(frozen=True)
class Choices:
    """Data sets on which a pair (oracle, λ) won: (algorithms, levels, oracles, λ)."""

    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    oracles: tuple[str, ...]
    ridges: tuple[float, ...]
    datasets: Numbers

    def rows(self) -> list[tuple[object, ...]]:
        """The lines of ``choices.csv``, those that are not zero."""
        return [
            (
                self.algorithms[a],
                self.levels[i].epsilon,
                self.levels[i].delta,
                self.oracles[o],
                self.ridges[r],
                int(self.datasets[a, i, o, r]),
            )
            for a, i, o, r in np.argwhere(self.datasets > 0)
        ]


def choices(selection: Selection) -> Choices:
    """Counted over the data sets."""
    found = [float(settings_of(text).get("ridge", np.nan)) for text in selection.texts]
    ridges = sorted({ridge for ridge in found if np.isfinite(ridge)})
    ridge = np.asarray([ridges.index(each) if np.isfinite(each) else -1 for each in found])
    won = selection.settings >= 0
    _, a, i = np.nonzero(won)
    o, r = selection.oracle[won], ridge[selection.settings[won]]
    named = r >= 0
    counts = np.zeros((*won.shape[1:], len(selection.oracles), len(ridges)), dtype=np.int64)
    np.add.at(counts, tuple(part[named] for part in (a, i, o, r)), 1)
    return Choices(selection.algorithms, selection.levels, selection.oracles, tuple(ridges), counts)
