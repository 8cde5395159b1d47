"""Published results of the paper: its win rates, and the data sets that it uses."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from discreet.data.openml import collection
from discreet.lab.report.runs import SHORT, Level, Numbers

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
    """Return the published table, which comes with the package."""
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


FIGURES = (901, 1489, 41027, 1462, 1560, 44743)
"""The sets whose curves the paper shows, by their number at OpenML, in its order."""


@cache
def _known() -> dict[str, tuple[int, int, int]]:
    """Return common file names of the paper's data sets: number at OpenML, rows, actions."""
    text = files(__package__).joinpath("published_sets.csv").read_text(encoding="utf-8")
    return {
        row["name"]: (int(row["openml_id"]), int(row["rows"]), int(row["actions"]))
        for row in csv.DictReader(text.splitlines())
    }


def openml_id(name: str, about: Mapping[str, Any]) -> int | None:
    """Return the number of a data set at OpenML: of the manifest, or by name, rows and actions.

    A name alone is not enough: a generator is also called fried.

    >>> openml_id("fried", {"rows": 40768, "actions": 2})
    901
    >>> openml_id("openml:1489", {})
    1489
    >>> openml_id("fried", {"rows": 20000, "actions": 2}) is None
    True
    """
    if about.get("openml_id") is not None:
        return int(about["openml_id"])
    if named := re.fullmatch(r"openml[-_: ]?(\d+)", name):
        return int(named[1])
    number, rows, actions = _known().get(name, (None, 0, 0))
    return number if (about.get("rows"), about.get("actions")) == (rows, actions) else None


def paper_sets(datasets: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return names and numbers of the data sets that the paper uses; of two copies, the first."""
    found: dict[int, str] = {}
    for name in sorted(datasets):
        number = openml_id(name, datasets[name])
        if number is not None and number in collection("paper"):
            found.setdefault(number, name)
    return {name: number for number, name in found.items()}
