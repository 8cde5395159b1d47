"""Progressive-validation curves of selected configurations at batch ends, and their figures.

A figure has the layout of the paper: algorithms at each ε above, the ε of each algorithm below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.lab.report.campaign_results import Level, Numbers
from discreet.lab.report.figures import Drawing, line_style, rounds_axis
from discreet.lab.report.paper_comparison import FIGURES, openml_id
from discreet.lab.report.selection import Selection
from discreet.types import JsonMapping
from discreet.validate import one_of

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Curves:
    """One data set: mean loss so far and its standard error, (algorithms, levels, batches).

    Algorithms may have different batches; after its last batch an algorithm has NaN.
    """

    dataset: str
    algorithms: tuple[str, ...]
    levels: tuple[Level, ...]
    ends: Numbers
    """(algorithms, batches): rounds played when a batch ends."""
    mean: Numbers
    standard_error: Numbers


def shown(selection: Selection, wanted: str | Sequence[str], about: JsonMapping) -> list[str]:
    """Return the data sets to draw: ``paper`` (its six, or the first three), ``all``, or names."""
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


def curves(table: pa.Table, selection: Selection, dataset: str) -> Curves | None:
    """Return means over the reporting seeds; None where nothing was selected on the data set."""
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


def _of_the_seeds(rows: pa.Table, selection: Selection, dataset: int) -> Numbers:
    """Return curves (seeds, batches) in the order of the seeds."""
    seeds = np.asarray(selection.seeds)[selection.reporting[dataset]]
    column = rows["seed"].to_numpy()
    order = np.argsort(column, kind="stable")
    kept = order[np.isin(column[order], seeds)]
    lists = rows["curve"].combine_chunks().take(kept)
    values = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    return np.asarray(values.reshape(len(kept), -1))


FIRST_ROUND = 15
"""First round of a curve: earlier, a mean over few losses is only noise."""

# Dark and cool for no privacy, bright and warm for much of it: an ordered ramp that keeps its
# order in grey, of middle lightness for white and black paper.
RAMP = ("#4B5CC4", "#7E4FB5", "#B5478F", "#DB5A5E", "#E8893B", "#D9B12B")
_BELOW = 4


LEVELS = {"best fixed action": (0, (4, 2)), "uniform": (0, (1, 2))}
"""Line styles of losses of policies without contexts."""


def curve_chart(curves: Curves, levels: Mapping[str, float] | None = None) -> Drawing:
    """Draw all panels with common axes, so that heights can be compared across the figure.

    ``levels`` are losses of policies without contexts, drawn as horizontal lines.
    """
    algorithms = np.flatnonzero(np.isfinite(curves.mean).any(axis=(1, 2)))
    shown = np.flatnonzero(np.isfinite(curves.mean).any(axis=(0, 2)))
    rows = -(-len(algorithms) // _BELOW)
    size = (13.0, 3.4 + 2.3 * rows + 0.4)
    return Drawing(size, partial(_draw, curves, algorithms, shown, rows, levels or {}))


def _draw(
    curves: Curves,
    algorithms: Numbers,
    levels: Numbers,
    rows: int,
    known: Mapping[str, float],
    figure: Figure,
    ink: str,
) -> None:
    heights = (3.4, 2.3 * rows + 0.4)
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=heights).ravel()
    for part in (upper, lower):
        part.patch.set_alpha(0)
    ramp = np.linspace(0, len(RAMP) - 1, len(levels)).round().astype(int)
    colours = dict(zip(levels, (RAMP[i] for i in ramp), strict=True))

    top = upper.subplots(1, len(levels), squeeze=False, sharex=True, sharey=True)[0]
    for axis, i in zip(top, levels, strict=True):
        for a in algorithms:
            _line(axis, curves, a, i, curves.algorithms[a], line_style(curves.algorithms[a], ink))
        known_levels(axis, known, ink)
        _finish(axis, curves.levels[i].text, ink)
    below = lower.subplots(rows, min(_BELOW, len(algorithms)), squeeze=False, sharex=True)
    for axis, a in zip(below.reshape(-1), algorithms, strict=False):
        for i in levels:
            style = {"color": colours[i], "linewidth": 1.6}
            _line(axis, curves, a, i, curves.levels[i].text, style)
        known_levels(axis, known, ink)
        axis.sharey(top[0])
        _finish(axis, curves.algorithms[a], ink)
    for axis in below.reshape(-1)[len(algorithms) :]:
        axis.set_axis_off()
    for axis in (top[0], *below[:, 0]):
        axis.set_ylabel("mean loss so far", fontsize=9)
    for axis in (*top, *below[-1]):
        axis.set_xlabel("rounds", fontsize=9)
    for axis in below[:, 1:].reshape(-1):
        axis.tick_params(labelleft=False)
    for part, axes in ((upper, top), (lower, below.reshape(-1))):
        drawn = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes]
        handles = {name: handle for pairs in drawn for handle, name in pairs}
        part.legend(handles.values(), handles, loc="outside lower center", ncols=9, frameon=False)


def _line(axis: Axes, curves: Curves, a: int, i: int, label: str, style: Any) -> None:
    """Draw a curve at batch ends, with a band of one standard error over seeds."""
    mean, error = curves.mean[a, i], np.nan_to_num(curves.standard_error[a, i])
    ends = curves.ends[a]
    late = (ends >= min(FIRST_ROUND, np.nanmax(ends))) & np.isfinite(mean)
    ends, mean, error = ends[late], mean[late], error[late]
    axis.plot(ends, mean, label=label, **style)
    if error.any():
        axis.fill_between(
            ends, mean - error, mean + error, color=style["color"], alpha=0.18, linewidth=0
        )


def known_levels(axis: Axes, known: Mapping[str, float], ink: str) -> None:
    """Draw losses of policies without contexts, as horizontal lines."""
    for name, level in known.items():
        if np.isfinite(level):
            dash = LEVELS[name]
            axis.axhline(
                level, label=name, color=ink, linestyle=dash, linewidth=1, alpha=0.6, zorder=1
            )


def _finish(axis: Axes, title: str, ink: str) -> None:
    axis.set_title(title, fontsize=10)
    rounds_axis(axis, ink)
