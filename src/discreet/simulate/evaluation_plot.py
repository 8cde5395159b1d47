"""One run on matplotlib axes: the mean so far, beside what needs no context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.releases.plots import COLOUR, axes_for, finish, level

if TYPE_CHECKING:
    from discreet.simulate.environment import Evaluation

MOST_POINTS = 2_000
"""More points than this cannot be told apart on a screen."""


def draw(run: Evaluation, ax: Any = None) -> Any:
    """The curve from the end of the first batch on: before it, a mean is of few random rounds."""
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
