"""Axes in one plain look, for objects that plot themselves; matplotlib is imported when asked."""

from __future__ import annotations

from typing import Any

from discreet.validate import installed

COLOUR = "#7A1F5C"
"""That of the default plan in every figure."""
INK = "#222222"


def axes_for(ax: Any) -> Any:
    """The axes that were given, or new ones."""
    if ax is not None:
        return ax
    installed("campaign", "to plot", "matplotlib")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]


def level(ax: Any, height: float, label: str, dash: str, colour: str = INK) -> None:
    """A horizontal line to compare with."""
    ax.axhline(height, label=label, color=colour, ls=dash, lw=1.3, alpha=0.7, zorder=1)


def finish(ax: Any, ink: str = INK) -> Any:
    """Grid, frame and legend above the axes; returns them."""
    ax.set_axisbelow(True)
    ax.grid(axis="y", color=ink, alpha=0.15, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
    return ax
