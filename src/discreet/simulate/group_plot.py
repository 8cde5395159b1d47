"""Losses by group on matplotlib axes: a line per group, beside its own best fixed action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.releases.plots import INK, axes_for, finish
from discreet.text import epsilon_text

if TYPE_CHECKING:
    from discreet.simulate.group_losses import GroupLosses

# Hues that colour-blind readers can tell apart [Okabe and Ito 2008]; the marker differs too.
HUES = ("#7A1F5C", "#D55E00", "#1A80C4", "#009E73", "#E69F00", "#CC79A7", "#8A6D3B", "#888888")
MARKERS = "osD^vP*X"
APART = 0.08
"""Groups stand beside each other, so that their intervals can be seen."""


def draw(losses: GroupLosses, axes: Any = None, ink: str = INK) -> Any:
    """Means with intervals; the level of each group's best fixed action is dashed."""
    axes = axes_for(axes)
    outcome, names = losses.outcome, losses.names
    for place, name in enumerate(names):
        lines = [line for line in losses if line.group == name]
        x = np.arange(len(lines)) + APART * (place - (len(names) - 1) / 2)
        means = outcome.value_of(np.asarray([line.loss for line in lines]))
        ends = outcome.value_of(np.asarray([(line.low, line.high) for line in lines]))
        hue = HUES[place % len(HUES)]
        axes.errorbar(
            *(x, means, np.abs(ends.T - means)),
            label=f"{name}, {lines[0].rounds:,} rounds",
            **{"fmt": f"{MARKERS[place % len(MARKERS)]}-", "color": hue, "ms": 5, "capsize": 3},
        )
        axes.hlines(
            outcome.value_of(lines[0].best_fixed),
            *(-0.4, len(lines) - 0.6),
            **{"color": hue, "ls": "--", "lw": 1.2, "alpha": 0.7},
            label="best fixed action of that group" if place == 0 else None,
        )
    shown = [epsilon_text(line.epsilon) for line in losses if line.group == names[0]]
    axes.set_xticks(range(len(shown)), shown)
    axes.set_xlabel("ε (more privacy to the left)")
    axes.set_ylabel(f"mean {outcome.word} of the group")
    return finish(axes, ink)
