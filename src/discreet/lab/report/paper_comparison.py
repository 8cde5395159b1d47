"""Published results of the paper, and win rates of a campaign compared with them."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np

from discreet.data.openml import collection
from discreet.errors import InvalidInput
from discreet.lab.campaign.presets import EPSILONS, budget_of
from discreet.lab.campaign.result_files import Folder, read
from discreet.lab.report.algorithm_comparison import outcomes
from discreet.lab.report.selection import (
    RUN_COLUMNS,
    SHORT,
    Selection,
    bandits,
    records,
    select,
)
from discreet.text import epsilon_text, listed
from discreet.types import JsonMapping, JsonObject, Numbers

CITATION = (
    "I. Attias, O. Levy, A. Ryabchenko, Y. Mansour and U. Stemmer (2026). Vanilla Policy "
    "Optimization Is Both Optimal and Differentially Private for Stochastic Contextual Bandits. "
    "Pairwise win rates over 100 OpenML data sets: results/precomputed/win_rates.csv of "
    "github.com/alex-rbch/private-contextual-bandits, commit 2ccf5ba."
)


def _packaged(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def published() -> dict[tuple[float, str, str], float]:
    """Return the published percentages over 100 data sets, by ε, row and column."""
    long = {short: name for name, short in SHORT.items()}
    return {
        (
            float(row["epsilon"]),
            long[row["row_algorithm"]],
            long[row["column_algorithm"]],
        ): float(row["win_rate_percent"])
        for row in _packaged("published_win_rates.csv")
    }


PAPER_ALGORITHMS = tuple(SHORT)[:7]
FIGURES = (901, 1489, 41027, 1462, 1560, 44743)
"""The sets whose curves the paper shows, by their number at OpenML, in its order."""


@cache
def _known() -> dict[tuple[str, int, int], int]:
    """Return numbers at OpenML by common file name, rows and actions of the paper's data sets."""
    return {
        (row["name"], int(row["rows"]), int(row["actions"])): int(row["openml_id"])
        for row in _packaged("published_sets.csv")
    }


def openml_id(name: str, about: JsonMapping) -> int | None:
    """Return the number of a data set at OpenML: by its name, or by file name, rows and actions.

    A file name alone is not enough: a generator is also called fried.

    >>> openml_id("fried", {"rows": 40768, "actions": 2})
    901
    >>> openml_id("openml:1489", {})
    1489
    >>> openml_id("fried", {"rows": 20000, "actions": 2}) is None
    True
    """
    if named := re.fullmatch(r"openml[-_: ]?(\d+)", name):
        return int(named[1])
    return _known().get((name, about.get("rows", 0), about.get("actions", 0)))


def paper_sets(datasets: Mapping[str, JsonMapping]) -> dict[str, int]:
    """Return names and numbers of the data sets that the paper uses; of two copies, the first."""
    found: dict[int, str] = {}
    for name in sorted(datasets):
        number = openml_id(name, datasets[name])
        if number in collection("paper"):
            found.setdefault(number, name)
    return {name: number for number, name in found.items()}


LEADER = "ReplayBonusPO"
RESAMPLES = 2000
SEED = 20260
COVERAGE = 95
CELLS = 210
"""Off the diagonal: 7 algorithms against 6 others at 5 privacy levels."""


def sentences(document: JsonMapping) -> list[str]:
    """Return the difference, its uncertainty and the first algorithm, in sentences."""
    cells, sets = _shared(document["cells"]), len(document["datasets"])
    lines = [
        "The campaign has fewer than two of the paper's algorithms: no published rate compares."
    ]
    if cells:
        low, high = document["interval"]
        lines = [
            "Mean absolute difference to the published win rates: "
            f"{document['mean_absolute_difference']:.1f} points over {len(cells)} cells "
            f"({COVERAGE} % bootstrap interval {low:.1f} to {high:.1f}, {sets} shared data sets).",
            f"Drawing {sets} data sets anew moves a cell by {document['by_chance']:.1f} "
            "points on average: a difference of that size is what chance alone gives.",
        ]
        for wins, words in (
            (True, "wins more than half against each other"),
            (False, "does not beat each other algorithm"),
        ):
            levels = [each for each, first in document["first"].items() if first is wins]
            if levels:
                lines.append(f"{LEADER} {words} at ε = {listed(levels)}.")
    return [*lines, *document["missing"], document["selection"]]


def compare(results_dir: Path, select_by: str = "seeds") -> JsonObject:
    """Compare win rates over the data sets that the paper uses with the published ones."""
    manifest = Folder(results_dir).manifest()
    features = manifest["grid"]["features"]
    if features != "raw":
        raise InvalidInput(
            f"features must be 'raw', as the paper's are; this campaign has {features!r}. "
            "Run it with --features raw and another --out."
        )
    selection = select(read(results_dir, RUN_COLUMNS), select_by)
    return beside_published(selection, manifest["datasets"])


def beside_published(selection: Selection, about: JsonMapping) -> JsonObject:
    """Compare a selection; raise InvalidInput where the paper shares nothing with it.

    The three statistics of the differences are NaN without published cells.
    """
    theirs = published()
    shared = paper_sets({name: about.get(name, {}) for name in selection.datasets})
    names = bandits(selection.algorithms)
    epsilons = [epsilon for epsilon in EPSILONS if epsilon in selection.epsilons]
    if not shared or len(names) < 2 or not epsilons:
        raise InvalidInput(
            "results must have two bandit algorithms and share data sets and an ε with the paper; "
            f"got {len(names)} algorithms, {len(shared)} shared data sets, {len(epsilons)} shared "
            "ε. Run two algorithms on the collection 'paper', or see campaign report."
        )
    among = [d for d, name in enumerate(selection.datasets) if name in shared]
    kept = [selection.algorithms.index(name) for name in names]
    shown = [selection.epsilons.index(epsilon) for epsilon in epsilons]
    # The percentage won by the row: 100, 50 or 0 (data sets, levels, rows, columns).
    score = np.asarray(50 * (outcomes(selection.loss[np.ix_(among, kept, shown)]) + 1))
    rates = _rates(score, np.ones((1, len(score))))[0]
    places = product(epsilons, names, names)
    truth = np.reshape([theirs.get(place, np.nan) for place in places], rates.shape)
    known = np.isfinite(rates) & ~np.eye(len(names), dtype=bool)
    both = known & np.isfinite(truth)
    estimate, interval, by_chance = np.nan, (np.nan, np.nan), np.nan
    if both.any():
        estimate = float(np.abs(rates - truth)[both].mean())
        interval, by_chance = _bootstrap(score[:, both], truth[both], estimate)
    ours, unknown = np.round(rates, 6), np.full(rates.shape, None)
    columns = {
        "epsilon": np.asarray(epsilons)[:, None, None],
        "delta": np.asarray([budget_of(epsilon).delta for epsilon in epsilons])[:, None, None],
        "row_algorithm": np.asarray(names)[:, None],
        "column_algorithm": np.asarray(names),
        "datasets": np.isfinite(score).sum(axis=0),
        "ours": ours,
        "published": np.where(both, truth, unknown),
        "difference": np.where(both, ours - truth, unknown),
    }
    cells = records(known, columns)
    first = _first(rates, names, epsilons)
    apart: dict[str, list[float]] = {}
    for each in _shared(cells):
        apart.setdefault(f"{each['epsilon']:g}", []).append(abs(each["difference"]))
    return {
        "datasets": sorted(shared),
        "mean_absolute_difference": estimate,
        "interval": list(interval),
        "coverage_percent": COVERAGE,
        "resamples": RESAMPLES,
        "by_chance": by_chance,
        "by_epsilon": {level: float(np.mean(each)) for level, each in apart.items()},
        "first": first,
        "leader_first": bool(first) and all(first.values()),
        "missing": _missing(names, epsilons, int(both.sum())),
        "selection": selection.statement,
        "citation": CITATION,
        "cells": cells,
    }


def _shared(cells: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the cells that the paper has too."""
    return [each for each in cells if each["difference"] is not None]


def _rates(score: Numbers, weights: Numbers) -> Numbers:
    """Return weighted means over the data sets with a known score: (resamples, …)."""
    flat = score.reshape(len(score), -1)
    known = np.isfinite(flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = weights @ np.where(known, flat, 0) / (weights @ known)
    return np.asarray(means.reshape(len(weights), *score.shape[1:]))


def _bootstrap(
    score: Numbers, truth: Numbers, estimate: float
) -> tuple[tuple[float, float], float]:
    """Return an interval for the mean absolute difference, and the change of a cell by chance.

    A resample adds the noise of drawing to every cell, so its mean absolute difference is larger
    than the estimate, always. The interval therefore takes from the bootstrap its spread
    around its own mean, not its place.
    """
    n = len(score)
    weights = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    resampled = _rates(score, weights.astype(np.float64))
    differences = np.nanmean(np.abs(resampled - truth), axis=1)
    tail = (100 - COVERAGE) / 2
    low, high = np.percentile(differences - differences.mean(), [tail, 100 - tail])
    moved = np.nanmean(np.abs(resampled - _rates(score, np.ones((1, n)))))
    return (max(0.0, estimate + float(low)), estimate + float(high)), float(moved)


def _first(rates: Numbers, names: list[str], epsilons: list[float]) -> dict[str, bool]:
    """Return for each finite ε if the leader wins more than half against the paper's others."""
    rivals = [k for k, name in enumerate(names) if name in PAPER_ALGORITHMS and name != LEADER]
    if LEADER not in names or not rivals:
        return {}
    ahead = (rates[:, names.index(LEADER), rivals] > 50).all(axis=1).tolist()
    levels = zip(epsilons, ahead, strict=True)
    return {f"{epsilon:g}": first for epsilon, first in levels if np.isfinite(epsilon)}


def _missing(names: list[str], epsilons: list[float], cells: int) -> list[str]:
    own = [name for name in names if name not in PAPER_ALGORITHMS]
    absent = [name for name in PAPER_ALGORITHMS if name not in names]
    without = [f"ε = {epsilon_text(each)}" for each in EPSILONS if each not in epsilons]
    lines = {
        f"Not in the paper: {listed(own)}. --cells shows the win rates.": own,
        f"Not in this campaign: {listed(absent)}.": absent,
        f"No runs at {listed(without)}.": without,
        f"{CELLS - cells} of {CELLS} cells cannot be compared.": cells < CELLS,
    }
    return [line for line, holds in lines.items() if holds]
