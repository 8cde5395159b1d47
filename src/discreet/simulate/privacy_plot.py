"""A privacy curve on matplotlib axes: loss against ε, between random play and no privacy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.formatting import epsilon_text
from discreet.validate import installed

if TYPE_CHECKING:
    from discreet.simulate.privacy_curve import PrivacyCurve

COLOUR = "#7A1F5C"
"""That of the default plan in every figure."""


def draw(curve: PrivacyCurve, axes: Any = None, ink: str = "#222222") -> Any:
    """Points with intervals over seeds; the levels of what needs no context, and of no privacy."""
    if axes is None:
        installed("campaign", "to plot", "matplotlib")
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]
    points = curve.table
    places = np.arange(len(points), dtype=float)
    means = np.asarray([point.loss for point in points])
    low, high = (np.asarray([getattr(each, side) for each in points]) for side in ("low", "high"))
    private = np.asarray([math.isfinite(point.epsilon) for point in points])
    axes.fill_between(places[private], low[private], high[private], color=COLOUR, alpha=0.15, lw=0)
    axes.plot(places[private], means[private], color=COLOUR, lw=2.2)
    axes.errorbar(
        *(places, means, [means - low, high - means]),
        label=f"the plan, {curve.confidence:.0%} interval over {curve.seeds} seeds",
        **{"fmt": "o", "ms": 5.5, "color": COLOUR, "elinewidth": 1.4, "capsize": 3},
    )
    levels = {
        "uniform actions": (curve.uniform, ":"),
        "best fixed action": (curve.best_fixed, "--"),
    }
    if not private[-1]:
        levels["no privacy"] = (float(means[-1]), "-")
    for name, (level, dash) in levels.items():
        colour = COLOUR if name == "no privacy" else ink
        style = {"color": colour, "ls": dash, "lw": 1.3, "alpha": 0.7, "zorder": 1}
        axes.axhline(level, label=f"{name}, {level:.3f}", **style)
    axes.set_xlim(-0.35, places[-1] + 0.35)
    axes.set_xticks(places, [epsilon_text(point.epsilon) for point in points])
    axes.set_xlabel("ε (more privacy to the left)")
    axes.set_ylabel(f"mean loss over {curve.rounds:,} rounds")
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=ink, alpha=0.15, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
    return axes
