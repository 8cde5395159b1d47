"""Best configuration of each algorithm on each data set at each privacy level."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.lab.campaign.presets import budget_of
from discreet.types import Frame, JsonObject, Numbers
from discreet.validate import one_of

SHORT = {
    "ReplayBonusPO": "bpo",
    "VanillaPO": "vpo",
    "SquareCB": "squarecb",
    "FastCB": "fastcb",
    "LinUCB": "linucb",
    "RegCB": "regcb",
    "AdaCB": "adacb",
    "BonusPO": "exact_bpo",
}
"""Names in the paper's table: its BonusPO is our ReplayBonusPO, and it lacks the exact BonusPO."""
REFERENCE = "Supervised"
"""Algorithm that sees the loss of every action, so it does not compete."""
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
NAMED = ("dataset", "algorithm", "oracle", "epsilon", "settings", "seed", "rounds")
RUN_COLUMNS = (*NAMED, "loss")
CURVE_COLUMNS = (*NAMED, "first_batch", "growth", "curve")
Records = list[JsonObject]


def place(algorithm: str) -> tuple[int, str]:
    """Return the sort key of an algorithm: the paper's order, then others, the reference last."""
    if algorithm == REFERENCE:
        return len(SHORT) + 1, algorithm
    return (list(SHORT).index(algorithm) if algorithm in SHORT else len(SHORT)), algorithm


def bandits(algorithms: Iterable[str]) -> list[str]:
    """Return all algorithms but the reference."""
    return [each for each in algorithms if each != REFERENCE]


def records(where: Numbers, columns: Mapping[str, Numbers]) -> Records:
    """Return a record for each true cell of a mask; columns broadcast to the mask."""
    cells = [np.broadcast_to(values, where.shape)[where].tolist() for values in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]


@dataclass(frozen=True)
class Selection:
    """Winners, as arrays (data sets, algorithms, levels); NaN and "" where there is none."""

    how: str
    datasets: tuple[str, ...]
    algorithms: tuple[str, ...]
    epsilons: tuple[float, ...]
    """From no privacy to the most privacy."""
    loss: Numbers
    """Mean final loss over the reporting seeds."""
    standard_error: Numbers
    selecting_loss: Numbers
    """Mean final loss over the selecting seeds; equal to ``loss`` unless the seeds were split."""
    oracle: Numbers
    settings: Numbers
    """Canonical JSON."""
    reporting: tuple[tuple[int, ...], ...] = field(repr=False)
    """Reported seeds of each data set."""
    runs: int
    not_finite: int
    unfinished: int
    """Configurations that lack a seed which the others have; they do not compete."""
    idle_seeds: int
    """Seeds of a data set that only some configurations have; they do not count."""

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

    @property
    def deltas(self) -> list[float]:
        return [budget_of(epsilon).delta for epsilon in self.epsilons]

    def winners(self) -> Records:
        """Return the lines of ``best.csv``."""
        return records(
            self.has,
            {
                "dataset": np.asarray(self.datasets)[:, None, None],
                "algorithm": np.asarray(self.algorithms)[:, None],
                "epsilon": self.epsilons,
                "delta": self.deltas,
                "oracle": self.oracle,
                "settings": self.settings,
                "loss": self.loss,
                "standard_error": self.standard_error,
            },
        )

    def choices(self) -> Records:
        """Return the number of data sets on which each pair of oracle and λ was selected."""
        counts: Counter[tuple[Any, ...]] = Counter()
        for d, a, i in np.argwhere(self.settings != "").tolist():
            ridge = json.loads(self.settings[d, a, i]).get("ridge")
            if ridge is not None:
                counts[a, i, _oracle_order(str(self.oracle[d, a, i])), float(ridge)] += 1
        return [
            {
                "algorithm": self.algorithms[a],
                "epsilon": self.epsilons[i],
                "delta": self.deltas[i],
                "oracle": oracle,
                "ridge": ridge,
                "datasets": count,
            }
            for (a, i, (_, oracle), ridge), count in sorted(counts.items())
        ]


def select(table: Frame, how: str = "seeds") -> Selection:
    """Select the least mean final loss over the selecting seeds, from runs in any order.

    Ties go to Ridge, then to small settings.

    All configurations of a data set are judged by the same seeds: those that most of them
    have. A configuration that lacks one, or has a loss that is not finite, does not compete.
    """
    one_of("select", how, HOW)
    if table.num_rows == 0:
        raise InvalidInput(
            "results must hold at least one run; they hold none. "
            "Run the campaign first, or see why its tasks failed with campaign status."
        )
    datasets, dataset_of_run = _coded(table, "dataset", str)
    algorithms, algorithm_of_run = _coded(table, "algorithm", place)
    epsilons, level_of_run = _coded(table, "epsilon", lambda each: -each)
    oracles, oracle_of_run = _coded(table, "oracle", _oracle_order)
    texts, text_of_run = _coded(table, "settings", _settings_order)
    seeds, seed_of_run = _coded(table, "seed", int)

    # Configurations are sorted in the order that breaks ties.
    shape = tuple(map(len, (datasets, algorithms, epsilons, oracles, texts)))
    codes = dataset_of_run, algorithm_of_run, level_of_run, oracle_of_run, text_of_run
    key, configuration = np.unique(np.ravel_multi_index(codes, shape), return_inverse=True)
    dataset, algorithm, level, oracle, text = np.unravel_index(key, shape)
    lost_in_run, rounds_of_run = _lost_rounds(table)
    lost = np.full((len(key), len(seeds)), np.nan)
    lost[configuration, seed_of_run] = lost_in_run
    present = np.zeros(lost.shape, dtype=bool)
    present[configuration, seed_of_run] = True
    rounds = np.zeros(len(key))
    rounds[configuration] = rounds_of_run

    selecting, reporting, idle = _seeds(present, dataset, how)
    complete = (present | ~(selecting | reporting)[dataset]).all(axis=1)
    mean, _ = _mean(lost, selecting[dataset])
    reported, error = _mean(lost, reporting[dataset])
    competes = complete & np.isfinite(mean)
    cell = np.ravel_multi_index((dataset, algorithm, level), shape[:3])
    ranked = np.lexsort((np.where(competes, mean, np.inf), cell))
    best = ranked[np.unique(cell[ranked], return_index=True)[1]]
    best = best[competes[best]]

    def laid_out(values: Numbers, empty: float | str) -> Numbers:
        array = np.full(shape[:3], empty, dtype=values.dtype)
        array.reshape(-1)[cell[best]] = values
        return array

    return Selection(
        how=how,
        datasets=datasets,
        algorithms=algorithms,
        epsilons=epsilons,
        loss=laid_out((reported / rounds)[best], np.nan),
        standard_error=laid_out((error / rounds)[best], np.nan),
        selecting_loss=laid_out((mean / rounds)[best], np.nan),
        oracle=laid_out(np.asarray(oracles)[oracle[best]], ""),
        settings=laid_out(np.asarray(texts)[text[best]], ""),
        reporting=tuple(tuple(np.asarray(seeds)[mask].tolist()) for mask in reporting),
        runs=table.num_rows,
        not_finite=int((~np.isfinite(lost_in_run)).sum()),
        unfinished=int((~complete).sum()),
        idle_seeds=idle,
    )


def _coded(table: Frame, name: str, order: Callable[[Any], Any]) -> tuple[tuple[Any, ...], Numbers]:
    """Return the sorted values of a column, and for each run the index of its value."""
    column = table[name].combine_chunks().dictionary_encode()
    words = column.dictionary.to_pylist()
    values = sorted(words, key=order)
    ranks = {value: rank for rank, value in enumerate(values)}
    return tuple(values), np.asarray([ranks[word] for word in words])[column.indices.to_numpy()]


def _oracle_order(name: str) -> tuple[bool, str]:
    return name != "Ridge", name


def _settings_order(text: str) -> tuple[object, ...]:
    """Return a sort key by name, then by size as numbers and not as text: 1e-06 before 0.1."""
    return tuple(
        (name, 0, value) if isinstance(value, (int, float)) else (name, 1, str(value))
        for name, value in sorted(json.loads(text).items())
    )


def _lost_rounds(table: Frame) -> tuple[Numbers, Numbers]:
    """Return the lost rounds of every run, and its rounds.

    A float32 loss is a rounded n/T. Lost rounds are n again, so that equal sums are equal.
    """
    loss = table["loss"].to_numpy()
    rounds = table["rounds"].to_numpy().astype(np.float64)
    lost = loss.astype(np.float64) * rounds
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.rint(lost)
        return np.where((whole / rounds).astype(loss.dtype) == loss, whole, lost), rounds


def _seeds(present: Numbers, dataset: Numbers, how: str) -> tuple[Numbers, Numbers, int]:
    """Return masks of selecting and reporting seeds (data sets, seeds), and the count of others."""
    held = np.zeros((dataset[-1] + 1, present.shape[1]), dtype=int)
    np.add.at(held, dataset, present)
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


def _mean(lost: Numbers, chosen: Numbers) -> tuple[Numbers, Numbers]:
    """Return the mean of each row over the chosen seeds, and its standard error."""
    n = chosen.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(chosen, lost, 0.0).sum(axis=1) / n
        squares = np.where(chosen, (lost - mean[:, None]) ** 2, 0.0)
        # Not squares.sum(axis=1), whose last digits differ from those of earlier reports.
        summed = np.add.reduceat(squares, [0], axis=1)[:, 0]
        return mean, np.where(n > 1, np.sqrt(summed / (n - 1) / n), np.nan)


class Curve(NamedTuple):
    """Mean loss so far at the end of each batch, and its standard error over seeds."""

    ends: Numbers
    mean: Numbers
    standard_error: Numbers


Curves = dict[tuple[str, float], Curve]
"""Curves of one data set, by algorithm and ε."""


def curves(table: Frame, selection: Selection, dataset: str) -> Curves:
    """Return curves over the reporting seeds, where something was selected on the data set."""
    import pyarrow.compute as pc

    d = selection.datasets.index(dataset)
    made: Curves = {}
    for a, i in np.argwhere(selection.has[d]).tolist():
        algorithm, epsilon = selection.algorithms[a], selection.epsilons[i]
        wanted = {
            "dataset": dataset,
            "algorithm": algorithm,
            "epsilon": epsilon,
            "oracle": str(selection.oracle[d, a, i]),
            "settings": str(selection.settings[d, a, i]),
        }
        found = table
        for column, value in wanted.items():
            found = found.filter(pc.equal(found[column], value))
        reported = np.isin(found["seed"].to_numpy(), selection.reporting[d])
        found = found.filter(reported).sort_by("seed")
        batches = (found[column][0].as_py() for column in ("first_batch", "rounds", "growth"))
        played = np.asarray(found["curve"].to_pylist(), dtype=np.float64)
        error = np.zeros(played.shape[1])
        if len(played) > 1:
            error = played.std(axis=0, ddof=1) / np.sqrt(len(played))
        ends = np.cumsum(Schedule(*batches).lengths())
        made[algorithm, epsilon] = Curve(ends, played.mean(axis=0), error)
    return made
