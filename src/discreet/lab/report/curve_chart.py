"""Curves in the paper's layout: algorithms at each ε on top, below the ε of each algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from discreet.lab.report.curves import Curves
from discreet.lab.report.figure_style import Drawing, line_style, rounds_axis

FIRST_ROUND = 15
"""Curves begin here: before, a mean over a handful of losses says nothing."""

# Dark and cool for no privacy, bright and warm for much of it: an ordered ramp that keeps its
# order in grey, of middle lightness for white and black paper.
RAMP = ("#4B5CC4", "#7E4FB5", "#B5478F", "#DB5A5E", "#E8893B", "#D9B12B")
_BELOW = 4


LEVELS = {"best fixed action": (0, (4, 2)), "uniform": (0, (1, 2))}
"""How losses that need no contexts are dashed."""


def curve_chart(curves: Curves, levels: Mapping[str, float] | None = None) -> Drawing:
    """Every panel shares both axes, so that heights can be compared across the figure.

    ``levels`` are losses that need no contexts, drawn beside the curves.
    """
    algorithms = np.flatnonzero(np.isfinite(curves.mean).any(axis=(1, 2)))
    shown = np.flatnonzero(np.isfinite(curves.mean).any(axis=(0, 2)))
    rows = -(-len(algorithms) // _BELOW)
    size = (13.0, 3.4 + 2.3 * rows + 0.4)
    return Drawing(size, partial(_draw, curves, algorithms, shown, rows, levels or {}))


def _draw(
    curves: Curves,
    algorithms: Any,
    levels: Any,
    rows: int,
    known: Mapping[str, float],
    figure: Any,
    ink: str,
) -> None:
    upper, lower = figure.subfigures(2, 1, height_ratios=(3.4, 2.3 * rows + 0.4))
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


def _line(axis: Any, curves: Curves, a: int, i: int, label: str, style: Any) -> None:
    """A curve at batch ends, in a band of one standard error over seeds."""
    mean, error = curves.mean[a, i], np.nan_to_num(curves.standard_error[a, i])
    ends = curves.ends[a]
    late = (ends >= min(FIRST_ROUND, np.nanmax(ends))) & np.isfinite(mean)
    ends, mean, error = ends[late], mean[late], error[late]
    axis.plot(ends, mean, label=label, **style)
    if error.any():
        axis.fill_between(
            ends, mean - error, mean + error, color=style["color"], alpha=0.18, linewidth=0
        )


def known_levels(axis: Any, known: Mapping[str, float], ink: str) -> None:
    """Losses that need no context, as lines across the panel."""
    for name, level in known.items():
        if np.isfinite(level):
            style = {"linestyle": LEVELS[name], "linewidth": 1, "alpha": 0.6, "zorder": 1}
            axis.axhline(level, label=name, color=ink, **style)


def _finish(axis: Any, title: str, ink: str) -> None:
    axis.set_title(title, fontsize=10)
    rounds_axis(axis, ink)
