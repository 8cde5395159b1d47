"""Figures of reports: a drawing with its formats, styles of lines and axes, charts of campaigns."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.lab.report.selection import Curve, Curves
from discreet.releases.plots import INK
from discreet.text import epsilon_text
from discreet.types import Axes, Figure, JsonMapping, JsonObject, Numbers
from discreet.validate import writable

PNG_DPI = 200
_SOLID, _DASHED, _DOTTED = "-", (0, (5, 1.5)), (0, (1.2, 1.2))
# Hues that colour-blind readers can distinguish [Okabe and Ito 2008], of middle lightness for
# white and black paper; the dash shows the family, so that no line depends on its hue alone.
# Rivals are in figures with the default plan only: dotted lines have published constants.
STYLES: Mapping[str, tuple[str, str | tuple[float, tuple[float, float]], float]] = {
    "Default": ("#7A1F5C", _SOLID, 2.4),
    "VanillaPO": ("#D55E00", _SOLID, 2.0),
    "ReplayBonusPO": ("#1A80C4", _SOLID, 2.0),
    "BonusPO": ("#8A6D3B", _SOLID, 2.0),
    "SquareCB": ("#009E73", _DASHED, 1.6),
    "FastCB": ("#CC79A7", _DASHED, 1.6),
    "LinUCB": ("#E69F00", _DOTTED, 1.8),
    "RegCB": ("#56B4E9", _DOTTED, 1.8),
    "AdaCB": ("#8B6FC0", _DOTTED, 1.8),
    "Supervised": (INK, _SOLID, 1.2),
    "Epsilon-greedy": ("#009E73", _SOLID, 1.6),
    "Thompson": ("#1A80C4", _SOLID, 1.6),
    "AdaSSP": ("#8A6D3B", _SOLID, 1.6),
    "AdaPrivateTS-protected": ("#CC79A7", _DASHED, 1.6),
    "AdaPrivateTS-clear": ("#CC79A7", _DOTTED, 1.6),
    "PlainLinUCB": (INK, _DOTTED, 1.6),
    **{
        f"{name}{words}": (hue, dash, 1.6)
        for name, hue in {
            "TreeLinUCB": "#E69F00",
            "BatchedLinUCB": "#D55E00",
            "ShuffledLinUCB": "#8B6FC0",
            "LocalLinUCB": "#56B4E9",
            "P2B": "#888888",
        }.items()
        for words, dash in {"": _DASHED, "-published": _DOTTED}.items()
    },
}
# Algorithms of users: the name decides, so that a line looks the same in every figure.
_STRANGERS = [
    (hue, dash, 1.8)
    for dash in (_SOLID, _DASHED, _DOTTED)
    for hue in ("#5B7F2B", "#B0413E", "#3D6E8F", "#888888")
]


@dataclass(frozen=True)
class Drawing:
    """A figure: its size in inches, and ``draw(figure, ink)``; the layout is computed once.

    In a page the ink becomes ``currentColor``, so that the figure is legible in light and dark.
    """

    size: tuple[float, float]
    draw: Callable[[Figure, str], None]

    def png(self) -> bytes:
        """Return a PNG on white."""
        return self._saved("png", dpi=PNG_DPI)

    def svg(self) -> str:
        """Return an SVG file on white."""
        return self._svg

    def inline(self, name: str = "") -> str:
        """Return an SVG for a page, which sets colour and size; ``name`` is a prefix of all ids."""
        text = self._svg[self._svg.index("<svg") :].replace(INK, "currentColor")
        text = re.sub(r'<g id="patch_1">.*?</g>', "", text, count=1, flags=re.DOTALL)  # the white
        # The page sizes the figure; a fixed size in points would win over its style sheet.
        text = re.sub(r' (width|height)="[^"]*pt"', "", text, count=2)
        text = re.sub(r'( d|transform|x|y)="[^"]*"', _shorter, text)
        return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text) if name else text

    @cached_property
    def _svg(self) -> str:
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        return self._saved("svg", dpi=100, metadata=nothing).decode()

    def _saved(self, form: str, **options: object) -> bytes:
        buffer = io.BytesIO()
        with self._style():
            self._figure.savefig(buffer, format=form, **options)
        return buffer.getvalue()

    @cached_property
    def _figure(self) -> Figure:
        with self._style():
            from matplotlib.figure import Figure
            from matplotlib.layout_engine import ConstrainedLayoutEngine

            layout = ConstrainedLayoutEngine()
            figure = Figure(figsize=self.size, facecolor="white", layout=layout)
            self.draw(figure, INK)
            # Laying out is most of the work, and every format has the same layout.
            layout.execute(figure)
            figure.set_layout_engine(None)
        return figure

    def _style(self) -> Any:
        import matplotlib

        inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
        return matplotlib.rc_context(
            {
                **dict.fromkeys(inks, INK),
                "axes.facecolor": "none",
                "font.size": 10,
                "svg.fonttype": "none",
                "svg.hashsalt": "discreet",
            }
        )


def write_files(out: str | Path, files: Mapping[str, str | bytes]) -> list[str]:
    """Write files into a folder, which is made; return their paths."""
    paths = [Path(out) / name for name in files]
    for path, content in zip(paths, files.values(), strict=True):
        with writable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(map(str, paths))


def _shorter(attribute: re.Match[str]) -> str:
    """Round coordinates to a hundredth of a point, which halves the size of a page."""
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", attribute[0])


def line_style(algorithm: str, ink: str) -> JsonObject:
    """Return the line style of an algorithm, the same in every figure."""
    stranger = _STRANGERS[zlib.crc32(algorithm.encode()) % len(_STRANGERS)]
    colour, dash, width = STYLES.get(algorithm, stranger)
    return {"color": ink if colour == INK else colour, "linestyle": dash, "linewidth": width}


def error_line(axis: Axes, x: Numbers, mean: Numbers, error: Numbers, **style: object) -> None:
    """Draw points with error bars, joined by a line."""
    axis.errorbar(x, mean, error, **{"marker": "o", "markersize": 3, "elinewidth": 1, **style})


def rounds_axis(axis: Axes, ink: str) -> None:
    """Draw rounds on a logarithmic axis, with a faint grid and no box."""
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(lambda value, _: short_number(value))
    axis.minorticks_off()
    plain(axis, ink)


def plain(axis: Axes, ink: str) -> None:
    """Draw a faint grid and no box."""
    axis.grid(color=ink, alpha=0.15, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def legend(figure: Figure, axes: Iterable[Axes], **style: object) -> None:
    """Draw one legend below the figure, with each name of the axes once."""
    drawn = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes]
    handles = {name: handle for pairs in drawn for handle, name in pairs}
    style = {"ncols": 4, "frameon": False, **style}
    figure.legend(handles.values(), handles, loc="outside lower center", **style)


def short_number(value: float) -> str:
    """Return ``1k`` for a thousand."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


COLOURS = ("#B35806", "#F1A340", "#FEE0B6", "#F7F7F7", "#D1E5F0", "#67A9CF", "#2166AC")
"""Orange loses, blue wins: distinguishable with common colour blindness [ColorBrewer]."""
_COLUMNS = 3


def heat_maps(rates: Sequence[JsonMapping], epsilons: Sequence[float]) -> Drawing:
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

    return Drawing((3.7 * columns, 3.5 * rows), draw)


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
) -> Drawing:
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
            error_line(axis, x, mean, error, label=name, **line_style(name, ink))
        known_levels(axis, fixed, ink)
        axis.set_xticks(range(len(epsilons)), [epsilon_text(each) for each in epsilons])
        axis.set_xlabel("ε (more privacy to the right)")
        axis.set_ylabel(words)
        plain(axis, ink)
        legend(figure, [axis], fontsize=9)

    return Drawing((6.4, 5.2), draw)


FIRST_ROUND = 15
"""First round of a curve: earlier, a mean over few losses is only noise."""
# Dark and cool for no privacy, bright and warm for much of it: an ordered ramp that keeps its
# order in grey, of middle lightness for white and black paper.
RAMP = ("#4B5CC4", "#7E4FB5", "#B5478F", "#DB5A5E", "#E8893B", "#D9B12B")
LEVELS = {"best fixed action": (0, (4, 2)), "uniform": (0, (1, 2))}
"""Line styles of losses of policies without contexts."""
_BELOW = 4
NO_CURVE = Curve(*np.empty((3, 0)))


def curve_chart(curves: Curves, known: Mapping[str, float]) -> Drawing:
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
                style = line_style(name, ink)
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
            rounds_axis(axis, ink)
        for axis in below[len(algorithms) :]:
            axis.set_axis_off()
        for axis in (top[0], *grid[:, 0]):
            axis.set_ylabel("mean loss so far", fontsize=9)
        for axis in (*top, *grid[-1]):
            axis.set_xlabel("rounds", fontsize=9)
        for axis in grid[:, 1:].reshape(-1):
            axis.tick_params(labelleft=False)
        legend(upper, top, ncols=9)
        legend(lower, below, ncols=9)

    return Drawing((13.0, sum(heights)), draw)


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
