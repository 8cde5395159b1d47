"""Plots on matplotlib axes: one run, losses by group, and a privacy curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.releases.plots import COLOUR, INK, axes_for, finish, level
from discreet.text import epsilon_text
from discreet.types import Axes

if TYPE_CHECKING:  # each of them draws itself
    from discreet.simulate.evaluation import Evaluation
    from discreet.simulate.group_losses import GroupLosses
    from discreet.simulate.privacy_curve import PrivacyCurve

MOST_POINTS = 2_000
"""Most points of a curve that a screen can show."""


def draw_evaluation(run: Evaluation, ax: Axes = None) -> Axes:
    """Draw the mean so far from the end of the first batch on."""
    ax = axes_for(ax)
    outcome, last = run.outcome, len(run.losses)
    first = int(run.table["rounds"][0])
    shown = np.unique(np.geomspace(first, last, MOST_POINTS).astype(int))
    budget = run.noise_scale_of
    noise = f"noise of {budget.text}" if budget.private else "no noise"
    means = outcome.value_of(run.curve[shown - 1])
    ax.plot(shown, means, color=COLOUR, lw=2.2, label=f"the plan, {outcome.text_of(run.loss)}")
    plain = {"uniform actions": (run.uniform, ":"), "best fixed action": (run.best_fixed, "--")}
    for name, (loss, dash) in plain.items():
        level(ax, outcome.value_of(loss), f"{name}, {outcome.text_of(loss)}", dash)
    ends = run.table["rounds"][:-1]
    ax.plot(
        *(ends, outcome.value_of(run.curve[ends - 1])),
        **{"ls": "", "marker": "|", "ms": 9, "color": COLOUR, "label": "releases"},
    )
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.xaxis.set_minor_formatter("")
    ax.set_xlim(first, last)
    ax.set_xlabel(f"rounds ({noise})")
    ax.set_ylabel(f"mean {outcome.word} so far, in {outcome.range}")
    return finish(ax)


# Hues that colour-blind readers can distinguish [Okabe and Ito 2008]; the marker differs too.
HUES = ("#7A1F5C", "#D55E00", "#1A80C4", "#009E73", "#E69F00", "#CC79A7", "#8A6D3B", "#888888")
MARKERS = "osD^vP*X"
DISTANCE = 0.08
"""Horizontal distance between groups, so that their intervals can be seen."""


def draw_groups(losses: GroupLosses, axes: Axes = None, ink: str = INK) -> Axes:
    """Draw means with intervals, and dashed the best fixed action of each group."""
    axes = axes_for(axes)
    outcome, names = losses.outcome, losses.names
    for place, name in enumerate(names):
        lines = [line for line in losses if line.group == name]
        x = np.arange(len(lines)) + DISTANCE * (place - (len(names) - 1) / 2)
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


def draw_privacy_curve(curve: PrivacyCurve, axes: Axes = None, ink: str = INK) -> Axes:
    """Draw points with intervals over seeds, and levels of plain actions and of no privacy."""
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
