"""A privacy curve on matplotlib axes: loss or reward against ε, with levels for comparison."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.releases.plots import COLOUR, INK, axes_for, finish, level
from discreet.text import epsilon_text

if TYPE_CHECKING:
    from discreet.simulate.privacy_curve import PrivacyCurve


def draw(curve: PrivacyCurve, axes: Any = None, ink: str = INK) -> Any:
    """Points with intervals over seeds; the levels of what needs no context, and of no privacy."""
    axes = axes_for(axes)
    points, outcome = curve.table, curve.plan.outcome
    places = np.arange(len(points), dtype=float)
    means = outcome.value_of(np.asarray([point.loss for point in points]))
    ends = outcome.value_of(np.asarray([(point.low, point.high) for point in points]))
    low, high = ends.min(axis=-1), ends.max(axis=-1)
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
        levels["no privacy"] = (points[-1].loss, "-")
    for name, (loss, dash) in levels.items():
        colour = COLOUR if name == "no privacy" else ink
        level(axes, outcome.value_of(loss), f"{name}, {outcome.text_of(loss)}", dash, colour)
    axes.set_xlim(-0.35, places[-1] + 0.35)
    axes.set_xticks(places, [epsilon_text(point.epsilon) for point in points])
    axes.set_xlabel("ε (more privacy to the left)")
    axes.set_ylabel(f"mean {outcome.word} over {curve.rounds:,} rounds")
    return finish(axes, ink)
