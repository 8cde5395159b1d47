"""Figures of reports: their style, and the charts of a campaign."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.lab.report.algorithm_comparison import (
    LossIncrease,
    MeanLosses,
    WinRates,
    without_contexts,
)
from discreet.lab.report.selection import Selection
from discreet.text import epsilon_text
from discreet.types import JsonMapping, JsonObject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PNG_DPI = 200
INK = "#222222"
"""In a page it becomes ``currentColor``, so that the figure is legible in light and dark."""

# Hues that colour-blind readers can distinguish [Okabe and Ito 2008], of middle lightness for
# white and black paper; the dash shows the family, so that no line depends on its hue alone.
Dash = str | tuple[float, tuple[float, float]]
_SOLID, _DASHED, _DOTTED = "-", (0, (5, 1.5)), (0, (1.2, 1.2))
STYLES: Mapping[str, tuple[str, Dash, float]] = {
    "Default": ("#7A1F5C", _SOLID, 2.4),
    "VanillaPO": ("#D55E00", _SOLID, 2.0),
    "ReplayBonusPO": ("#1A80C4", _SOLID, 2.0),
    "BonusPO": ("#8A6D3B", _SOLID, 2.0),
    "SquareCB": ("#009E73", _DASHED, 1.6),
    "FastCB": ("#CC79A7", _DASHED, 1.6),
    "LinUCB": ("#E69F00", _DOTTED, 1.8),
    "RegCB": ("#56B4E9", _DOTTED, 1.8),
    "AdaCB": ("#8B6FC0", _DOTTED, 1.8),
    "Supervised": ("ink", _SOLID, 1.2),
}
# Rival algorithms, in figures with the default plan: dotted lines have published constants.
RIVALS: Mapping[str, tuple[str, Dash, float]] = {
    "Epsilon-greedy": ("#009E73", _SOLID, 1.6),
    "Thompson": ("#1A80C4", _SOLID, 1.6),
    "AdaSSP": ("#8A6D3B", _SOLID, 1.6),
    "AdaPrivateTS-protected": ("#CC79A7", _DASHED, 1.6),
    "AdaPrivateTS-clear": ("#CC79A7", _DOTTED, 1.6),
    "PlainLinUCB": ("ink", _DOTTED, 1.6),
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
    """A figure: its size in inches, and ``draw(figure, ink)``; the layout is computed once."""

    size: tuple[float, float]
    draw: Callable[[Figure, str], None]

    def png(self) -> bytes:
        """Return a PNG on white."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        return self._printed(FigureCanvasAgg, "print_png", dpi=PNG_DPI)

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
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        return self._printed(FigureCanvasSVG, "print_svg", metadata=nothing).decode()

    def _printed(self, canvas: Any, method: str, dpi: int = 100, **how: Any) -> bytes:
        """Print without ``savefig``, which would compute the layout twice."""
        buffer = io.BytesIO()
        with self._style():
            self._figure.dpi = dpi
            getattr(canvas(self._figure), method)(buffer, **how)
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
            figure.set_layout_engine("none")
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


def _shorter(attribute: re.Match[str]) -> str:
    """Round coordinates to a hundredth of a point, which halves the size of a page."""
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", attribute[0])


def line_style(algorithm: str, ink: str) -> JsonObject:
    """Return the line style of an algorithm, the same in every figure."""
    stranger = _STRANGERS[zlib.crc32(algorithm.encode()) % len(_STRANGERS)]
    colour, dash, width = STYLES.get(algorithm) or RIVALS.get(algorithm, stranger)
    return {
        "color": ink if colour == "ink" else colour,
        "linestyle": dash,
        "linewidth": width,
    }


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


def short_number(value: float) -> str:
    """Return ``1k`` for a thousand."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


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


def _maps(rates: WinRates, rows: int, columns: int, figure: Figure, ink: str) -> None:
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


def _map(axis: Axes, rates: WinRates, level: int) -> None:
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


def _increase(increase: LossIncrease, figure: Figure, ink: str) -> None:
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


def level_chart(selection: Selection, means: MeanLosses, about: JsonMapping) -> Drawing:
    """Draw mean final loss against ε: a line per algorithm, one standard error over data sets."""
    return Drawing((6.4, 5.6), partial(_levels, selection, means, about))


def _levels(
    selection: Selection, means: MeanLosses, about: JsonMapping, figure: Figure, ink: str
) -> None:
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
