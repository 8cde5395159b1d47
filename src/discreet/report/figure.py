"""Progressive-validation curves: a row for each data set, a column for each ε."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidInput

Results = Mapping[str, Any]

INK = "#222222"
_CURRENT = "#010203"
"""Ink that becomes ``currentColor``, so that a page can show the figure in light and dark."""

# Hues that colour-blind readers can tell apart [Okabe and Ito 2008], of middle lightness for
# white and black paper; the dash says the family, so that no line depends on its hue alone.
_SOLID, _DASHED, _DOTTED = "-", (0, (5, 1.5)), (0, (1.2, 1.2))
STYLES: Mapping[str, tuple[str, Any, float]] = {
    "VanillaPO": ("#D55E00", _SOLID, 2.0),
    "ReplayBonusPO": ("#1A80C4", _SOLID, 2.0),
    "SquareCB": ("#009E73", _DASHED, 1.6),
    "FastCB": ("#CC79A7", _DASHED, 1.6),
    "LinUCB": ("#E69F00", _DOTTED, 1.8),
    "RegCB": ("#56B4E9", _DOTTED, 1.8),
    "AdaCB": ("#8B6FC0", _DOTTED, 1.8),
    "Supervised": ("ink", _SOLID, 1.2),
}


def curves_png(results: Results) -> bytes:
    """The figure on white, 200 dots an inch."""
    return _drawn(results, INK, "png", facecolor="white")


def curves_svg(results: Results, *, inline: bool = False) -> str:
    """The figure as SVG; ``inline`` takes its ink from the page around it."""
    if not inline:
        return _drawn(results, INK, "svg", facecolor="white").decode()
    text = _drawn(results, _CURRENT, "svg", transparent=True).decode()
    text = text[text.index("<svg") :].replace(_CURRENT, "currentColor")
    # The page sizes the figure; a fixed size in points would win over its style sheet.
    return re.sub(r' (width|height)="[^"]*pt"', "", text, count=2)


def _drawn(results: Results, ink: str, kind: str, **saving: Any) -> bytes:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput(
            "matplotlib must be installed for figures; it is not. "
            "Run pip install 'discreet[campaign]'."
        ) from None
    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: dict[str, Any] = {
        **dict.fromkeys(inks, ink),
        "font.size": 10,
        "svg.fonttype": "none",
        "svg.hashsalt": "discreet",
    }
    buffer = io.BytesIO()
    with matplotlib.rc_context(style):
        sets, epsilons = results["sets"], results["epsilons"]
        size = (3.4 * len(epsilons), 0.9 + 2.6 * len(sets))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(sets), len(epsilons), squeeze=False, sharex="row", sharey="row")
        for row, data in zip(axes, sets, strict=True):
            for axis, epsilon in zip(row, epsilons, strict=True):
                _panel(axis, results, data, epsilon, ink)
            row[0].set_ylabel(f"{data['name']}: mean loss so far")
        for axis, epsilon in zip(axes[0], epsilons, strict=True):
            axis.set_title(f"ε = {'∞' if epsilon == 'inf' else format(epsilon, 'g')}")
        for axis in axes[-1]:
            axis.set_xlabel("rounds")
        lines, names = axes[0][0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=4, frameon=False)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type")) if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=200, metadata=nothing, **saving)
    return buffer.getvalue()


def _panel(axis: Any, results: Results, data: Any, epsilon: Any, ink: str) -> None:
    shown = [
        run for run in results["runs"] if run["data"] == data["name"] and run["epsilon"] == epsilon
    ]
    for run in shown:
        colour, dash, width = STYLES.get(run["algorithm"], ("#888888", _SOLID, 1.4))
        axis.plot(
            run["rounds"],
            run["curve"],
            label=run["algorithm"],
            color=ink if colour == "ink" else colour,
            linestyle=dash,
            linewidth=width,
        )
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(lambda value, _: _short(value))
    axis.xaxis.set_minor_formatter(lambda *_: "")
    axis.grid(color=ink, alpha=0.15, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
