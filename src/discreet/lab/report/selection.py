"""Best configuration of each algorithm on each data set at each privacy level."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from discreet.errors import InvalidInput
from discreet.lab.report.campaign_results import Level, Numbers, Runs, settings_of
from discreet.validate import one_of

HOW = {
    "seeds": (
        "Each configuration was selected by its mean final loss over the same seeds that are "
        "reported here, as the paper does; the best of many looks a little better than it is."
    ),
    "split": (
        "Half of the seeds selected each configuration, and the other half, which took no part "
        "in the selection, is reported here."
    ),
}

BEST_COLUMNS = (
    "dataset",
    "algorithm",
    "epsilon",
    "delta",
    "oracle",
    "settings",
    "loss",
    "standard_error",
)


@dataclass(frozen=True)
class Selection:
    """Winners, as arrays (data sets, algorithms, levels); NaN and −1 where there is none."""

    how: str
    datasets: tuple[str, ...]
    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    loss: Numbers
    """Mean final loss over the reporting seeds."""
    standard_error: Numbers
    selecting_loss: Numbers
    """Mean final loss over the selecting seeds; equal to ``loss`` unless the seeds were split."""
    oracle: Numbers
    settings: Numbers
    oracles: tuple[str, ...]
    texts: tuple[str, ...]
    """The canonical JSON that ``settings`` counts."""
    seeds: tuple[int, ...]
    reporting: Numbers = field(repr=False)
    """(data sets, seeds): mask of reported seeds."""
    rounds: Numbers = field(repr=False)
    """(data sets,): T."""
    runs: int = 0
    not_finite: int = 0
    unfinished: int = 0
    """Configurations that lack a seed which the others have; they do not compete."""
    idle_seeds: int = 0
    """Seeds of a data set that only some configurations have; they do not count."""
    mechanism: str = ""

    @property
    def statement(self) -> str:
        return HOW[self.how]

    @property
    def has(self) -> Numbers:
        """(data sets, algorithms, levels): mask of cells with a loss to report."""
        return np.isfinite(self.loss)

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows of ``best.csv``."""
        return [
            (
                self.datasets[d],
                self.algorithms[a],
                self.levels[i].epsilon,
                self.levels[i].delta,
                self.oracles[self.oracle[d, a, i]],
                self.texts[self.settings[d, a, i]],
                float(self.loss[d, a, i]),
                float(self.standard_error[d, a, i]),
            )
            for d, a, i in np.argwhere(self.has)
        ]


def select(runs: Runs, how: str = "seeds") -> Selection:
    """Select the least mean final loss over the selecting seeds.

    Ties go to Ridge, then to small settings.

    All configurations of a data set are judged by the same seeds: those that most of them
    have. A configuration that lacks one, or has a loss that is not finite, does not compete.
    """
    one_of("select", how, HOW)
    shape = (len(runs.dataset), len(runs.algorithm), len(runs.level))
    # One number per configuration, in the order that breaks ties; inside it, seed by seed.
    key = runs.dataset.codes
    for part in (runs.algorithm, runs.level, runs.oracle, runs.settings):
        key = key * len(part) + part.codes
    order = np.argsort(key * len(runs.seed) + runs.seed.codes, kind="stable")
    key, seed, lost = key[order], runs.seed.codes[order], runs.lost[order]
    _refuse_twins(key, seed)
    first = np.flatnonzero(np.diff(key, prepend=-1))
    group = key[first] // (len(runs.oracle) * len(runs.settings))
    dataset = group // (shape[1] * shape[2])
    rounds = runs.rounds[order][first]

    row_dataset = np.repeat(dataset, np.diff(first, append=len(key)))
    selecting, reporting, idle = _seeds(row_dataset, seed, (shape[0], len(runs.seed)), how)
    used = (selecting | reporting)[row_dataset, seed]
    complete = (
        np.add.reduceat(used, first, dtype=np.int64) == (selecting | reporting).sum(1)[dataset]
    )
    mean, _ = _mean(lost, first, selecting, row_dataset, seed, dataset)
    competes = complete & np.isfinite(mean)

    ranked = np.lexsort((np.where(competes, mean, np.inf), group))
    best = ranked[np.flatnonzero(np.diff(group[ranked], prepend=-1))]
    best = best[competes[best]]
    reported, error = _mean(lost, first, reporting, row_dataset, seed, dataset)

    def laid_out(values: Numbers, empty: float) -> Numbers:
        array = np.full(shape, empty, dtype=values.dtype)
        array.reshape(-1)[group[best]] = values[best]
        return array

    horizon = np.zeros(shape[0])
    horizon[dataset] = rounds
    return Selection(
        how=how,
        datasets=runs.dataset.values,
        algorithms=runs.algorithm.values,
        levels=runs.level.values,
        loss=laid_out(reported / rounds, np.nan),
        standard_error=laid_out(error / rounds, np.nan),
        selecting_loss=laid_out(mean / rounds, np.nan),
        oracle=laid_out(key[first] // len(runs.settings) % len(runs.oracle), -1),
        settings=laid_out(key[first] % len(runs.settings), -1),
        oracles=runs.oracle.values,
        texts=runs.settings.values,
        seeds=runs.seed.values,
        reporting=reporting,
        rounds=horizon,
        runs=len(runs),
        not_finite=int((~np.isfinite(lost)).sum()),
        unfinished=int((~complete).sum()),
        idle_seeds=int(idle),
        mechanism=runs.mechanism,
    )


def _seeds(
    dataset: Numbers, seed: Numbers, shape: tuple[int, int], how: str
) -> tuple[Numbers, Numbers, int]:
    """Return masks of selecting and reporting seeds (data sets, seeds), and the count of others."""
    held = np.bincount(dataset * shape[1] + seed, minlength=shape[0] * shape[1]).reshape(shape)
    used = held == held.max(axis=1, keepdims=True)
    idle = int(((held > 0) & ~used).sum())
    if how == "seeds":
        return used, used, idle
    count = used.sum(axis=1, keepdims=True)
    if not (count > 1).any():
        raise InvalidInput(
            "seeds must be at least 2 for select='split'; got 1. "
            "Run the campaign with more seeds, or select='seeds'."
        )
    selects = used & (np.cumsum(used, axis=1) <= count // 2)
    return selects, used & ~selects, idle


def _mean(
    lost: Numbers, first: Numbers, chosen: Numbers, dataset: Numbers, seed: Numbers, of: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the mean over the chosen seeds for each configuration, and its standard error."""
    counted = chosen[dataset, seed]
    n = chosen.sum(axis=1)[of]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.add.reduceat(np.where(counted, lost, 0.0), first) / n
        spread = lost - np.repeat(mean, np.diff(first, append=len(lost)))
        squares = np.add.reduceat(np.where(counted, spread * spread, 0.0), first)
        error = np.where(n > 1, np.sqrt(squares / (n - 1) / n), np.nan)
    return mean, error


def _refuse_twins(key: Numbers, seed: Numbers) -> None:
    twins = int(((np.diff(key) == 0) & (np.diff(seed) == 0)).sum())
    if twins:
        raise InvalidInput(
            f"each run must be there once; {twins} are there twice. "
            "Delete the result files that overlap and run the campaign again."
        )


CHOICE_COLUMNS = ("algorithm", "epsilon", "delta", "oracle", "ridge", "datasets")


@dataclass(frozen=True)
class Choices:
    """Data sets on which a pair (oracle, λ) won: (algorithms, levels, oracles, λ)."""

    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    oracles: tuple[str, ...]
    ridges: tuple[float, ...]
    datasets: Numbers

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows of ``choices.csv`` that are not zero."""
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
    """Count how often each oracle and λ was selected, over the data sets."""
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
