"""Best configuration of each algorithm on each data set at each privacy level."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.lab.report.campaign_results import Level, Numbers, Runs
from discreet.types import Frame, JsonObject
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
    runs: int
    not_finite: int
    unfinished: int
    """Configurations that lack a seed which the others have; they do not compete."""
    idle_seeds: int
    """Seeds of a data set that only some configurations have; they do not count."""
    mechanism: str

    @property
    def statement(self) -> str:
        return HOW[self.how]

    @property
    def has(self) -> Numbers:
        """(data sets, algorithms, levels): mask of cells with a loss to report."""
        return np.isfinite(self.loss)

    @property
    def optimism(self) -> float:
        """Mean reported loss, less that on the seeds that selected."""
        return float(np.nanmean((self.loss - self.selecting_loss)[self.has]))

    def records(self) -> list[JsonObject]:
        """Return the lines of ``best.csv``."""
        return [
            {
                "dataset": self.datasets[d],
                "algorithm": self.algorithms[a],
                **self.levels[i]._asdict(),
                "oracle": self.oracles[self.oracle[d, a, i]],
                "settings": self.texts[self.settings[d, a, i]],
                "loss": float(self.loss[d, a, i]),
                "standard_error": float(self.standard_error[d, a, i]),
            }
            for d, a, i in np.argwhere(self.has)
        ]

    def choices(self) -> list[JsonObject]:
        """Return the number of data sets on which each pair of oracle and λ was selected."""
        ridge = [json.loads(text).get("ridge") for text in self.texts]
        found: dict[tuple[int, int, int, float], int] = {}
        for d, a, i in np.argwhere(self.settings >= 0):
            chosen = ridge[self.settings[d, a, i]]
            if chosen is not None:
                key = (int(a), int(i), int(self.oracle[d, a, i]), chosen)
                found[key] = found.get(key, 0) + 1
        return [
            {
                "algorithm": self.algorithms[a],
                **self.levels[i]._asdict(),
                "oracle": self.oracles[o],
                "ridge": float(chosen),
                "datasets": count,
            }
            for (a, i, o, chosen), count in sorted(found.items())
        ]


def select(runs: Runs, how: str = "seeds") -> Selection:
    """Select the least mean final loss over the selecting seeds.

    Ties go to Ridge, then to small settings.

    All configurations of a data set are judged by the same seeds: those that most of them
    have. A configuration that lacks one, or has a loss that is not finite, does not compete.
    """
    one_of("select", how, HOW)
    shape = tuple(len(each.values) for each in (runs.dataset, runs.algorithm, runs.level))
    oracles, settings, seeds = (
        len(each.values) for each in (runs.oracle, runs.settings, runs.seed)
    )
    # One number per configuration, in the order that breaks ties; inside it, seed by seed.
    key = runs.dataset.codes
    for part in (runs.algorithm, runs.level, runs.oracle, runs.settings):
        key = key * len(part.values) + part.codes
    order = np.argsort(key * seeds + runs.seed.codes, kind="stable")
    key, seed, lost = key[order], runs.seed.codes[order], runs.lost[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    group = key[first] // (oracles * settings)
    dataset = group // (shape[1] * shape[2])
    rounds = runs.rounds[order][first]

    row_dataset = np.repeat(dataset, np.diff(first, append=len(key)))
    selecting, reporting, idle = _seeds(row_dataset, seed, (shape[0], seeds), how)
    used = selecting | reporting
    held = np.add.reduceat(used[row_dataset, seed], first, dtype=np.int64)
    complete = held == used.sum(1)[dataset]
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
        oracle=laid_out(key[first] // settings % oracles, -1),
        settings=laid_out(key[first] % settings, -1),
        oracles=runs.oracle.values,
        texts=runs.settings.values,
        seeds=runs.seed.values,
        reporting=reporting,
        rounds=horizon,
        runs=len(lost),
        not_finite=int((~np.isfinite(lost)).sum()),
        unfinished=int((~complete).sum()),
        idle_seeds=idle,
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


@dataclass(frozen=True)
class Curves:
    """One data set: mean loss so far and its standard error, (algorithms, levels, batches).

    Algorithms may have different batches; after its last batch an algorithm has NaN.
    """

    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    ends: Numbers
    """(algorithms, batches): rounds played when a batch ends."""
    mean: Numbers
    standard_error: Numbers


def curves(table: Frame, selection: Selection, dataset: str) -> Curves | None:
    """Return means over the reporting seeds; None where nothing was selected on the data set."""
    import pyarrow.compute as pc

    d = selection.datasets.index(dataset)
    names, levels = selection.algorithms, selection.levels
    seeds = np.asarray(selection.seeds)[selection.reporting[d]]
    pieces, stops = {}, {}
    for a, i in np.argwhere(selection.has[d]):
        wanted = {
            "algorithm": names[a],
            "epsilon": levels[i].epsilon,
            "oracle": selection.oracles[selection.oracle[d, a, i]],
            "settings": selection.texts[selection.settings[d, a, i]],
        }
        found = table
        for column, value in wanted.items():
            found = found.filter(pc.equal(found[column], value))
        found = found.filter(np.isin(found["seed"].to_numpy(), seeds)).sort_by("seed")
        first, growth = (found[column][0].as_py() for column in ("first_batch", "growth"))
        stops[a] = np.cumsum(Schedule(first, int(selection.rounds[d]), growth).lengths())
        pieces[a, i] = np.asarray(found["curve"].to_pylist(), dtype=np.float64)
    if not pieces:
        return None
    mean = np.full((len(names), len(levels), max(map(len, stops.values()))), np.nan)
    error, ends = mean.copy(), mean[:, 0].copy()
    for (a, i), piece in pieces.items():
        batches = len(stops[a])
        ends[a, :batches], mean[a, i, :batches] = stops[a], piece.mean(axis=0)
        if len(piece) > 1:
            error[a, i, :batches] = piece.std(axis=0, ddof=1) / np.sqrt(len(piece))
    return Curves(names, levels, ends, mean, error)
