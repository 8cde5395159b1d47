"""The paper's own win rates, as its authors published them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from discreet.lab.report.algorithm_names import SHORT
from discreet.lab.report.runs import Level, Numbers

CITATION = (
    "I. Attias, O. Levy, A. Ryabchenko, Y. Mansour and U. Stemmer (2026). Vanilla Policy "
    "Optimization Is Both Optimal and Differentially Private for Stochastic Contextual Bandits. "
    "Pairwise win rates over 100 OpenML data sets: results/precomputed/win_rates.csv of "
    "github.com/alex-rbch/private-contextual-bandits, commit 2ccf5ba."
)
FILE = "published_win_rates.csv"


@dataclass(frozen=True)
class Published:
    """Percentages (levels, rows, columns) over 100 data sets."""

    levels: tuple[Level, ...]
    algorithms: tuple[str, ...]
    percent: Numbers


@cache
def published() -> Published:
    """The table that comes with the package."""
    text = files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    long = {short: name for name, short in SHORT.items()}
    levels = tuple(dict.fromkeys(Level(float(row["epsilon"]), float(row["delta"])) for row in rows))
    algorithms = tuple(dict.fromkeys(long[row["row_algorithm"]] for row in rows))
    percent = np.full((len(levels), len(algorithms), len(algorithms)), np.nan)
    for row in rows:
        level = levels.index(Level(float(row["epsilon"]), float(row["delta"])))
        pair = (algorithms.index(long[row[f"{side}_algorithm"]]) for side in ("row", "column"))
        percent[level, *pair] = float(row["win_rate_percent"])
    return Published(levels, algorithms, percent)
