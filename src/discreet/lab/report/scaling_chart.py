"""Measured regret and its bounds on doubly logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from discreet.lab.report.figure_style import STYLES, Drawing, plain, short_number

Results = Mapping[str, Any]

NAMES = {
    "vanilla": "Algorithm 1",
    "batched_vanilla": "batched VanillaPO",
    "batched_bonus": "batched BonusPO",
    "private_batched_vanilla": "private VanillaPO",
    "private_batched_bonus": "private BonusPO",
}
RATES = {"theorem": "rates of the theorem", "practical": "practical rates"}
_ALGORITHM_1 = "#009E73"


INSTANCES = {
    "hard": "gap shrinks with T",
    "easy": "gap 1/2",
    "worst": "worst of gaps 1/2, 1/8, 1/32",
    "items": "actions with features",
}


def horizon_chart(results: Results) -> Drawing:
    """Regret against T: columns are instances, rows the kinds of rates."""
    return Drawing((14.4, 6.6), partial(_horizons, results))


def axes_chart(results: Results) -> Drawing:
    """Regret against A, |F| and ε on the hard instance, and A with features, both rates."""
    axes = []
    for axis in results["axes"]:
        if axis["name"] != "T":
            axes.append({**axis, "instance": "hard"})
        if axis["name"] == "A":
            words = "actions A, with features"
            axes.append({**axis, "words": words, "instance": "items"})
    return Drawing((3.8 * len(axes), 6.6), partial(_others, results, axes))


def bound_chart(results: Results) -> Drawing:
    """The bounds beside T itself and beside regret measured with the same rates, at gap 1/2."""
    return Drawing((6.2, 4.6), partial(_bounds, results))


def _horizons(results: Results, figure: Any, ink: str) -> None:
    grid = figure.subplots(2, len(INSTANCES), sharex=True, sharey=True)
    for row, rates in zip(grid, RATES, strict=True):
        for axis, (instance, words) in zip(row, INSTANCES.items(), strict=True):
            _lines(axis, results, "T", instance, rates, ink)
            _guide(axis, results, ink)
            axis.set_title(words if rates == "theorem" else "", fontsize=10)
            _finish(axis, "rounds T" if rates == "practical" else "", ink)
        row[0].set_ylabel(f"regret, {RATES[rates]}")
    _legend(figure, grid[0, 0])


def _others(results: Results, axes: Any, figure: Any, ink: str) -> None:
    from matplotlib.ticker import LogLocator

    grid = figure.subplots(2, len(axes), squeeze=False, sharex="col", sharey=True)
    for row, rates in zip(grid, RATES, strict=True):
        for axis, about in zip(row, axes, strict=True):
            _lines(axis, results, about["name"], about["instance"], rates, ink)
            _finish(axis, about["words"] if rates == "practical" else "", ink)
            axis.set_xticks(about["values"], [f"{each:g}" for each in about["values"]], fontsize=9)
        row[0].set_ylabel(f"regret, {RATES[rates]}")
        # Ticks at 1, 2 and 5 of each decade: these axes span little more than one.
        row[0].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        row[0].yaxis.set_major_formatter(lambda value, _: short_number(value))
    _legend(figure, grid[0, 0])


def _bounds(results: Results, figure: Any, ink: str) -> None:
    axis = figure.subplots()
    horizons = _line(results, "T", "hard", "vanilla", "theorem")
    rounds = np.array([point["T"] for point in horizons])
    axis.plot(rounds, rounds, color=ink, linewidth=2.2, label="T: regret is never above")
    for name, words in NAMES.items():
        line = _line(results, "T", "hard", name, "theorem")
        axis.plot(rounds, [point["bound"] for point in line], label=words, **_style(name, ink))
    for name in ("vanilla", "batched_vanilla"):
        line = _line(results, "T", "easy", name, "theorem")
        style = {**_style(name, ink), "marker": "o", "markersize": 3.5, "linewidth": 1.0}
        axis.plot(rounds, [p["mean"] for p in line], label=f"{NAMES[name]}, measured", **style)
    axis.set_ylabel("regret, and what it is bounded by")
    _finish(axis, "rounds T", ink)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)


def _lines(axis: Any, results: Results, name: str, instance: str, rates: str, ink: str) -> None:
    for algorithm, words in NAMES.items():
        line = _line(results, name, instance, algorithm, rates)
        if not line:
            continue
        axis.errorbar(
            [point["value"] for point in line],
            [point["mean"] for point in line],
            [1.96 * point["standard_error"] for point in line],
            label=words,
            marker="o",
            markersize=3,
            elinewidth=1,
            **_style(algorithm, ink),
        )


def _guide(axis: Any, results: Results, ink: str) -> None:
    """A line of slope one half, through the hard instance's first point."""
    line = _line(results, "T", "hard", "batched_bonus", "theorem")
    rounds = np.array([point["T"] for point in line])
    heights = line[0]["mean"] * np.sqrt(rounds / rounds[0])
    axis.plot(rounds, heights, color=ink, linewidth=0.8, alpha=0.6, label="slope ½")


def _line(
    results: Results, axis: str, instance: str, algorithm: str, rates: str
) -> list[Mapping[str, Any]]:
    wanted = (axis, instance, algorithm, rates)
    keys = ("axis", "instance", "algorithm", "rates")
    return [point for point in results["points"] if tuple(point[key] for key in keys) == wanted]


def _style(algorithm: str, ink: str) -> dict[str, Any]:
    """The colours of all figures; a dash says that the algorithm is private."""
    if algorithm == "vanilla":
        return {"color": _ALGORITHM_1, "linestyle": "-", "linewidth": 1.6}
    kind = "VanillaPO" if algorithm.endswith("vanilla") else "BonusPO"
    dash = (0, (4, 2)) if algorithm.startswith("private") else "-"
    colour = STYLES[kind][0]
    return {"color": ink if colour == "ink" else colour, "linestyle": dash, "linewidth": 1.6}


def _finish(axis: Any, words: str, ink: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_major_formatter(lambda value, _: short_number(value))
    axis.minorticks_off()
    axis.set_xlabel(words)
    plain(axis, ink)


def _legend(figure: Any, axis: Any) -> None:
    lines, names = axis.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
