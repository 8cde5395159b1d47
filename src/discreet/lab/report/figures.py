"""Figures of reports: a drawing with its formats, and the styles of lines and axes."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.releases.plots import INK
from discreet.types import Axes, Figure, JsonObject, Numbers
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
