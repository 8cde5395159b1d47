"""The lift so far, release by release, on matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.releases.plotting import COLOUR, axes_for, finish, level

if TYPE_CHECKING:
    from discreet.releases.lift import Lift


def draw(found: Lift, ax: Any = None) -> Any:
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
