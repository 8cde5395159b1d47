"""How people fared, release by release, on matplotlib axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.releases.plotting import COLOUR, axes_for, finish
from discreet.releases.quality import quality
from discreet.releases.released import Released

NORMAL_95 = 1.96
MOST_LABELS = 12
"""More would run into each other."""


def draw(released: Released, ax: Any = None) -> Any:
    """Mean loss or reward of each batch, with the interval that the noise of its release causes."""
    found = quality(released)
    if not found:
        raise InvalidInput(
            "releases must tell how people fared to be plotted; none does. Plot them after the "
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
