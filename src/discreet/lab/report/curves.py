"""Progressive-validation curves of the selected configurations, batch end by batch end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.lab.report.paper_sets import FIGURES, openml_id
from discreet.lab.report.runs import Level, Numbers
from discreet.lab.report.selection import Selection
from discreet.schedule import Schedule
from discreet.validate import one_of

NAMED = ("dataset", "algorithm", "oracle", "epsilon", "delta", "seed", "settings")
COLUMNS = (*NAMED, "first_batch", "growth", "curve")


@dataclass(frozen=True)
class Curves:
    """One data set: mean loss so far and its standard error, (algorithms, levels, batches).

    Algorithms may have batches of their own; after its last batch an algorithm has NaN.
    """

    dataset: str
    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    ends: Numbers
    """(algorithms, batches): rounds played when a batch ends."""
    mean: Numbers
    standard_error: Numbers


def shown(selection: Selection, wanted: str | Sequence[str], about: Mapping[str, Any]) -> list[str]:
    """Whose curves are drawn: ``paper`` (its six, or else the first three), ``all``, or names."""
    if wanted == "all":
        return list(selection.datasets)
    if wanted == "paper":
        numbers = {openml_id(name, about.get(name, {})): name for name in selection.datasets}
        present = [numbers[number] for number in FIGURES if number in numbers]
        return present or list(selection.datasets[:3])
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        one_of("curves", name, selection.datasets)
    return names


def curves(table: Any, selection: Selection, dataset: str) -> Curves | None:
    """Mean over the reporting seeds; None where the data set has no winner at all."""
    import pyarrow.compute as pc

    d = selection.datasets.index(dataset)
    names, levels = selection.algorithms, selection.levels
    rows = table.filter(pc.equal(table["dataset"], dataset))
    pieces, stops = {}, {}
    for a, i in np.argwhere(selection.has[d]):
        level = levels[i]
        wanted = {
            "algorithm": names[a],
            "epsilon": level.epsilon,
            "delta": level.delta,
            "oracle": selection.oracles[selection.oracle[d, a, i]],
            "settings": selection.texts[selection.settings[d, a, i]],
        }
        found = rows
        for column, value in wanted.items():
            found = found.filter(pc.equal(found[column], value))
        pieces[a, i] = piece = _of_the_seeds(found, selection, d)
        first, growth = (found[column][0].as_py() for column in ("first_batch", "growth"))
        stops[a] = np.cumsum(Schedule(first, int(selection.rounds[d]), growth).lengths())
        if piece.shape[1] != len(stops[a]):
            raise InvalidInput(
                f"curves of {dataset} must have a value for each of {len(stops[a])} batches; "
                "some have another length. Delete the result files and run the campaign again."
            )
    if not pieces:
        return None
    mean = np.full((len(names), len(levels), max(map(len, stops.values()))), np.nan)
    error, ends = mean.copy(), mean[:, 0].copy()
    for (a, i), piece in pieces.items():
        batches = len(stops[a])
        ends[a, :batches], mean[a, i, :batches] = stops[a], piece.mean(axis=0)
        if len(piece) > 1:
            error[a, i, :batches] = piece.std(axis=0, ddof=1) / np.sqrt(len(piece))
    return Curves(dataset, names, levels, ends, mean, error)


def _of_the_seeds(rows: Any, selection: Selection, dataset: int) -> Numbers:
    """(seeds, batches), in the order of the seeds."""
    seeds = np.asarray(selection.seeds)[selection.reporting[dataset]]
    column = rows["seed"].to_numpy()
    order = np.argsort(column, kind="stable")
    kept = order[np.isin(column[order], seeds)]
    lists = rows["curve"].combine_chunks().take(kept)
    values = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    return np.asarray(values.reshape(len(kept), -1))
