"""Charts of a campaign: heat maps of win rates, increase of the loss, mean loss against ε."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from discreet.lab.report.figure_style import Drawing, line_style, plain
from discreet.lab.report.final_loss import LossIncrease, MeanLoss, without_contexts
from discreet.lab.report.selection import Selection
from discreet.lab.report.win_rates import WinRates
from discreet.text import epsilon_text

COLOURS = ("#B35806", "#F1A340", "#FEE0B6", "#F7F7F7", "#D1E5F0", "#67A9CF", "#2166AC")
"""Orange loses, blue wins: distinguishable with common colour blindness [ColorBrewer]."""

_DARK, _LIGHT = "#000000", "#ffffff"
_COLUMNS = 3


def heat_map(rates: WinRates, level: int) -> Drawing:
    """Draw one privacy level: percentages of the row against the column."""
    return Drawing((3.7, 3.5), lambda figure, _: _map(figure.subplots(), rates, level))


def heat_maps(rates: WinRates) -> Drawing:
    """Draw all privacy levels in one figure."""
    columns = min(_COLUMNS, len(rates.levels))
    rows = -(-len(rates.levels) // columns)
    return Drawing((3.7 * columns, 3.5 * rows), partial(_maps, rates, rows, columns))


def _maps(rates: WinRates, rows: int, columns: int, figure: Any, ink: str) -> None:
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for level in range(len(rates.levels)):
        _map(axes[level], rates, level)
    for axis in axes[len(rates.levels) :]:
        axis.set_axis_off()
    if len(rates.levels) < len(axes):
        words = (
            "% of data sets on which the row\nhas less mean final loss than\nthe column; "
            "ties count half.\n\nBlue: the row wins more often.\nOrange: the column does."
        )
        axes[-1].text(0.05, 0.55, words, va="center", color=ink, fontsize=11, linespacing=1.5)
    else:
        figure.supxlabel("% of data sets on which the row has less mean final loss", fontsize=10)


def _map(axis: Any, rates: WinRates, level: int) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    percent, names = rates.percent[level], rates.algorithms
    colours = LinearSegmentedColormap.from_list("win rate", COLOURS)
    # pcolormesh, because imshow would put a bitmap into the SVG.
    axis.pcolormesh(
        np.ma.masked_invalid(percent), cmap=colours, vmin=0, vmax=100, edgecolors="white", lw=1
    )
    for (j, k), value in np.ndenumerate(percent):
        if np.isfinite(value):
            text = "–" if j == k else f"{value:.0f}"
            axis.text(
                *(k + 0.5, j + 0.5, text),
                ha="center",
                va="center",
                fontsize=9.5,
                color=_legible_on(colours(value / 100)),
            )
    axis.set_xticks(np.arange(len(names)) + 0.5, names, rotation=40, ha="right", fontsize=9)
    axis.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=9)
    axis.tick_params(length=0)
    axis.invert_yaxis()
    axis.set_aspect("equal")
    axis.spines[:].set_visible(False)
    axis.set_title(rates.levels[level].text, fontsize=11)


def _legible_on(colour: tuple[float, ...]) -> str:
    """Return dark or light ink, the one with more contrast [WCAG 2.2, relative luminance]."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return _DARK if luminance > 0.179 else _LIGHT


def increase_chart(increase: LossIncrease) -> Drawing:
    """Draw the mean increase of the final loss at each ε, with standard errors over data sets."""
    return Drawing((5.8, 4.6), partial(_increase, increase))


def _increase(increase: LossIncrease, figure: Any, ink: str) -> None:
    axis = figure.subplots()
    private = [i for i, level in enumerate(increase.levels) if level.private]
    places = np.arange(len(private))
    count = len(increase.algorithms)
    for a, name in enumerate(increase.algorithms):
        # A small horizontal offset separates the error bars of different algorithms.
        offset = 0.02 * (a - (count - 1) / 2)
        axis.errorbar(
            places + offset,
            increase.mean[a, private],
            np.nan_to_num(increase.standard_error[a, private]),
            label=name,
            marker="o",
            markersize=4,
            elinewidth=1,
            capsize=0,
            **line_style(name, ink),
        )
    axis.set_xticks(places, [epsilon_text(increase.levels[i].epsilon) for i in private])
    axis.set_xlabel("ε (more privacy to the right)")
    axis.set_ylabel(f"final loss, less that at {increase.relative_to.text}")
    plain(axis, ink)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)


def level_chart(selection: Selection, means: MeanLoss, about: Mapping[str, Any]) -> Drawing:
    """Draw mean final loss against ε: a line per algorithm, one standard error over data sets."""
    return Drawing((6.4, 5.6), partial(_levels, selection, means, about))


def _levels(selection: Selection, means: MeanLoss, about: Any, figure: Any, ink: str) -> None:
    axis = figure.subplots()
    places = np.arange(len(selection.levels))
    for a, name in enumerate(selection.algorithms):
        axis.errorbar(
            places,
            means.mean[a],
            np.nan_to_num(means.standard_error[a]),
            label=name,
            marker="o",
            markersize=3,
            elinewidth=0.8,
            capsize=0,
            **line_style(name, ink),
        )
    known = means.common.any(axis=1)
    for (name, losses), dash in zip(
        without_contexts(about, selection.datasets).items(), ("--", ":"), strict=True
    ):
        axis.axhline(float(np.mean(losses[known])), color=ink, lw=1, ls=dash, label=name)
    axis.set_xticks(places, [epsilon_text(level.epsilon) for level in selection.levels])
    axis.set_xlabel("ε (more privacy to the right)")
    axis.set_ylabel("mean final loss")
    plain(axis, ink)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
