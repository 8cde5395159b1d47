"""Figures of a campaign: heat maps of win rates, losses against ε, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from discreet.lab.report import figures
from discreet.lab.report.selection import Curve, Curves
from discreet.text import epsilon_text
from discreet.types import Axes, Figure, JsonMapping

COLOURS = ("#B35806", "#F1A340", "#FEE0B6", "#F7F7F7", "#D1E5F0", "#67A9CF", "#2166AC")
"""Orange loses, blue wins: distinguishable with common colour blindness [ColorBrewer]."""
_COLUMNS = 3


def heat_maps(rates: Sequence[JsonMapping], epsilons: Sequence[float]) -> figures.Drawing:
    """Draw percentages of the row against the column, a map for each privacy level."""
    columns = min(_COLUMNS, len(epsilons))
    rows = -(-len(epsilons) // columns)
    names = list(dict.fromkeys(each["row_algorithm"] for each in rates))

    def draw(figure: Figure, _: str) -> None:
        axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
        for axis, epsilon in zip(axes, epsilons, strict=False):
            _map(axis, [each for each in rates if each["epsilon"] == epsilon], names)
            axis.set_title(f"ε = {epsilon_text(epsilon)}", fontsize=11)
        for axis in axes[len(epsilons) :]:
            axis.set_axis_off()
        if len(epsilons) > 1:
            words = "% of data sets on which the row has less mean final loss; ties count half"
            figure.supxlabel(words, fontsize=10)

    return figures.Drawing((3.7 * columns, 3.5 * rows), draw)


def _map(axis: Axes, rates: Sequence[JsonMapping], names: list[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    percent = np.full((len(names), len(names)), np.nan)
    for each in rates:
        place = names.index(each["row_algorithm"]), names.index(each["column_algorithm"])
        percent[place] = each["win_rate_percent"]
    colours = LinearSegmentedColormap.from_list("win rate", COLOURS)
    # pcolormesh, because imshow would put a bitmap into the SVG.
    axis.pcolormesh(
        np.ma.masked_invalid(percent), cmap=colours, vmin=0, vmax=100, edgecolors="white", lw=1
    )
    style = {"ha": "center", "va": "center", "fontsize": 9.5}
    for (j, k), value in np.ndenumerate(percent):
        if np.isfinite(value):
            text = "–" if j == k else f"{value:.0f}"
            axis.text(k + 0.5, j + 0.5, text, color=legible_on(colours(value / 100)), **style)
    places = np.arange(len(names)) + 0.5
    axis.set_xticks(places, names, rotation=40, ha="right", fontsize=9)
    axis.set_yticks(places, names, fontsize=9)
    axis.tick_params(length=0)
    axis.invert_yaxis()
    axis.set_aspect("equal")
    axis.spines[:].set_visible(False)


def legible_on(colour: tuple[float, ...]) -> str:
    """Return dark or light ink, the one with more contrast [WCAG 2.2, relative luminance]."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return "#000000" if luminance > 0.179 else "#ffffff"


def against_epsilon(
    records: Sequence[JsonMapping], column: str, words: str, fixed: Mapping[str, float]
) -> figures.Drawing:
    """Draw a line per algorithm with one standard error; ``fixed`` are horizontal lines."""
    epsilons = sorted({each["epsilon"] for each in records}, reverse=True)
    names = list(dict.fromkeys(each["algorithm"] for each in records))

    def draw(figure: Figure, ink: str) -> None:
        axis = figure.subplots()
        for a, name in enumerate(names):
            line = {each["epsilon"]: each for each in records if each["algorithm"] == name}
            # A small horizontal offset separates the error bars of different algorithms.
            x = [epsilons.index(each) + 0.02 * (a - (len(names) - 1) / 2) for each in line]
            mean = [each[column] for each in line.values()]
            error = np.nan_to_num([each["standard_error"] for each in line.values()])
            figures.error_line(axis, x, mean, error, label=name, **figures.line_style(name, ink))
        known_levels(axis, fixed, ink)
        axis.set_xticks(range(len(epsilons)), [epsilon_text(each) for each in epsilons])
        axis.set_xlabel("ε (more privacy to the right)")
        axis.set_ylabel(words)
        figures.plain(axis, ink)
        figures.legend(figure, [axis], fontsize=9)

    return figures.Drawing((6.4, 5.2), draw)


FIRST_ROUND = 15
"""First round of a curve: earlier, a mean over few losses is only noise."""
# Dark and cool for no privacy, bright and warm for much of it: an ordered ramp that keeps its
# order in grey, of middle lightness for white and black paper.
RAMP = ("#4B5CC4", "#7E4FB5", "#B5478F", "#DB5A5E", "#E8893B", "#D9B12B")
LEVELS = {"best fixed action": (0, (4, 2)), "uniform": (0, (1, 2))}
"""Line styles of losses of policies without contexts."""
_BELOW = 4
NO_CURVE = Curve(*np.empty((3, 0)))


def curve_chart(curves: Curves, known: Mapping[str, float]) -> figures.Drawing:
    """Draw algorithms at each ε above, and the ε of each algorithm below, as the paper does.

    Axes are common, so that heights can be compared across the figure. ``known`` are losses of
    policies without contexts, drawn as horizontal lines.
    """
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in curves))
    epsilons = sorted({epsilon for _, epsilon in curves}, reverse=True)
    columns, rows = min(_BELOW, len(algorithms)), -(-len(algorithms) // _BELOW)
    heights = (3.4, 2.3 * rows + 0.4)
    shades = np.linspace(0, len(RAMP) - 1, len(epsilons)).round().astype(int)

    def draw(figure: Figure, ink: str) -> None:
        upper, lower = figure.subfigures(2, 1, height_ratios=heights)
        for part in (upper, lower):
            part.patch.set_alpha(0)
        top = upper.subplots(1, len(epsilons), squeeze=False, sharex=True, sharey=True)[0]
        grid = lower.subplots(rows, columns, squeeze=False, sharex=True)
        below = grid.reshape(-1)
        for axis, epsilon in zip(top, epsilons, strict=True):
            axis.set_title(f"ε = {epsilon_text(epsilon)}", fontsize=10)
            for name in algorithms:
                style = figures.line_style(name, ink)
                _line(axis, curves.get((name, epsilon), NO_CURVE), name, style)
        for axis, name in zip(below, algorithms, strict=False):
            axis.set_title(name, fontsize=10)
            axis.sharey(top[0])
            for epsilon, shade in zip(epsilons, shades, strict=True):
                style = {"color": RAMP[shade], "linewidth": 1.6}
                label = f"ε = {epsilon_text(epsilon)}"
                _line(axis, curves.get((name, epsilon), NO_CURVE), label, style)
        for axis in (*top, *below[: len(algorithms)]):
            known_levels(axis, known, ink)
            figures.rounds_axis(axis, ink)
        for axis in below[len(algorithms) :]:
            axis.set_axis_off()
        for axis in (top[0], *grid[:, 0]):
            axis.set_ylabel("mean loss so far", fontsize=9)
        for axis in (*top, *grid[-1]):
            axis.set_xlabel("rounds", fontsize=9)
        for axis in grid[:, 1:].reshape(-1):
            axis.tick_params(labelleft=False)
        figures.legend(upper, top, ncols=9)
        figures.legend(lower, below, ncols=9)

    return figures.Drawing((13.0, sum(heights)), draw)


def _line(axis: Axes, curve: Curve, label: str, style: JsonMapping) -> None:
    """Draw a curve at batch ends, with a band of one standard error over seeds."""
    late = curve.ends >= min(FIRST_ROUND, curve.ends.max(initial=0))
    ends, mean, error = (values[late] for values in curve)
    axis.plot(ends, mean, label=label, **style)
    if error.any():
        band = mean - error, mean + error
        axis.fill_between(ends, *band, color=style["color"], alpha=0.18, linewidth=0)


def known_levels(axis: Axes, known: Mapping[str, float], ink: str) -> None:
    """Draw losses of policies without contexts, as horizontal lines."""
    style = {"color": ink, "linewidth": 1, "alpha": 0.6, "zorder": 1}
    for name, level in known.items():
        if np.isfinite(level):
            axis.axhline(level, label=name, linestyle=LEVELS[name], **style)
