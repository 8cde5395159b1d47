"""Plots of releases and of the lift, on matplotlib axes of one look."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import InvalidInput
from discreet.releases.quality import quality
from discreet.releases.released import Released
from discreet.types import Axes
from discreet.validate import installed

if TYPE_CHECKING:
    from discreet.releases.lift import Lift

COLOUR = "#7A1F5C"
"""That of the default plan in every figure."""
INK = "#222222"


def axes_for(ax: Axes | None) -> Axes:
    """Return these axes, or new ones."""
    if ax is not None:
        return ax
    installed("campaign", "to plot", "matplotlib")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]


def level(ax: Axes, height: float, label: str, dash: str, colour: str = INK) -> None:
    """A horizontal line to compare with."""
    ax.axhline(height, label=label, color=colour, ls=dash, lw=1.3, alpha=0.7, zorder=1)


def finish(ax: Axes, ink: str = INK) -> Axes:
    """Grid, frame and legend above the axes; returns them."""
    ax.set_axisbelow(True)
    ax.grid(axis="y", color=ink, alpha=0.15, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
    return ax


def draw_lift(found: Lift, ax: Axes = None) -> Axes:
    """Lines at the end of each release, with the interval for any time and the narrower one."""
    ax = axes_for(ax)
    columns, outcome, share = found.table, found.outcome, f"{found.confidence:.0%}"
    ends, middle = np.cumsum(columns["records"]), columns["lift_so_far"]
    span = outcome.high - outcome.low
    for name, alpha, label in (
        ("any_time", 0.15, f"{share}, valid at any time"),
        ("fixed_time", 0.3, f"{share}, for one look at a time fixed before"),
    ):
        wide = columns[f"half_width_{name}"]
        low, high = (np.clip(middle + side * wide, -span, span) for side in (-1, 1))
        ax.fill_between(ends, low, high, color=COLOUR, alpha=alpha, lw=0, label=label)
    ax.plot(ends, middle, color=COLOUR, lw=2.2, marker="o", ms=4, label="policy less control")
    level(ax, 0.0, "no difference", "--")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.xaxis.set_minor_formatter("")
    ax.set_xlabel("records released")
    ax.set_ylabel(f"lift in mean {outcome.word}")
    return finish(ax)


NORMAL_95 = 1.96
MOST_LABELS = 12
"""More would run into each other."""


def draw_quality(released: Released, ax: Axes = None) -> Axes:
    """Mean loss or reward of each batch, with the interval that the noise of its release causes."""
    found = quality(released)
    if not found:
        raise InvalidInput(
            "releases must have mean outcomes to be plotted; none has. Plot them after the "
            "first release of a plan with bandit feedback and the oracle PooledRidge."
        )
    ax = axes_for(ax)
    outcome = released.outcome
    means = np.asarray([each.mean for each in found])
    wide = NORMAL_95 * np.asarray([each.mean_error for each in found])
    low, high = (np.clip(means + side * wide, outcome.low, outcome.high) for side in (-1, 1))
    places = np.arange(len(found))
    ax.errorbar(
        *(places, means, [means - low, high - means]),
        label="mean of a batch, 95% interval of its noise",
        **{"fmt": "o", "ms": 5.5, "color": COLOUR, "elinewidth": 1.4, "capsize": 3},
    )
    step = math.ceil(len(found) / MOST_LABELS)
    marked = [place for place in places if (len(found) - 1 - place) % step == 0]
    ax.set_xticks(marked, [f"{found[each].number}\n{found[each].records:,}" for each in marked])
    ax.set_xlabel("release, and the records of its batch")
    ax.set_ylabel(f"mean {outcome.word}, in {outcome.range}")
    return finish(ax)
