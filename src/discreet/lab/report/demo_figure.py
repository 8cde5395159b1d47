"""Progressive-validation curves of the demo."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from discreet.formatting import epsilon_text
from discreet.lab.report.curve_chart import known_levels
from discreet.lab.report.figure_style import Drawing, line_style, rounds_axis

Results = Mapping[str, Any]


def demo_figure(results: Results) -> Drawing:
    """A row for each data set, a column for each ε."""
    size = (3.4 * len(results["epsilons"]), 0.9 + 2.6 * len(results["sets"]))
    return Drawing(size, partial(_draw, results))


def _draw(results: Results, figure: Any, ink: str) -> None:
    sets, epsilons = results["sets"], results["epsilons"]
    axes = figure.subplots(len(sets), len(epsilons), squeeze=False, sharex="row", sharey="row")
    for row, data in zip(axes, sets, strict=True):
        for axis, epsilon in zip(row, epsilons, strict=True):
            _panel(axis, results, data, epsilon, ink)
        row[0].set_ylabel(f"{data['name']}: mean loss so far")
    for axis, epsilon in zip(axes[0], epsilons, strict=True):
        axis.set_title(f"ε = {epsilon_text(float(epsilon))}")
    for axis in axes[-1]:
        axis.set_xlabel("rounds")
    lines, names = axes[0][0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=4, frameon=False)


def _panel(axis: Any, results: Results, data: Any, epsilon: Any, ink: str) -> None:
    shown = [
        run for run in results["runs"] if run["data"] == data["name"] and run["epsilon"] == epsilon
    ]
    for run in shown:
        name = run["algorithm"]
        axis.plot(run["rounds"], run["curve"], label=name, **line_style(name, ink))
    levels = {"best fixed action": data["best_fixed"], "uniform": data["uniform"]}
    known_levels(axis, levels, ink)
    rounds_axis(axis, ink)
