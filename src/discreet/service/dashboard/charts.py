"""What the charts of the first page draw; the browser gets numbers, and no picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.releases.lift import Lift
from discreet.releases.quality import Quality
from discreet.service.storage.traffic_table import HOUR

HOURS = 7 * 24
"""The most hours that the chart of decisions covers."""
TWO_SIDED = 1.96
"""Standard errors on either side of a mean that hold 95 % of a normal law."""


def outcomes(found: list[Quality]) -> dict[str, Any] | None:
    """The mean loss or reward of each release within the interval that its noise leaves; releases
    whose noise exceeds the whole range have none."""
    told = [each for each in found if each.standard_error <= 0.5]
    if not told:
        return None
    low, high = told[0].outcome.low, told[0].outcome.high
    wide = [TWO_SIDED * each.mean_error for each in told]
    means = [each.mean for each in told]
    return _within(
        [each.number for each in told],
        f"mean {told[0].outcome.word}",
        means,
        [max(low, mean - side) for mean, side in zip(means, wide, strict=True)],
        [min(high, mean + side) for mean, side in zip(means, wide, strict=True)],
    )


def lift_so_far(lift: Lift) -> dict[str, Any] | None:
    """The lift so far, release by release, within the interval that is valid at any time.

    None, and no point for a release, where it cannot be told yet.
    """
    columns, span = lift.table, lift.outcome.high - lift.outcome.low
    told = np.isfinite(columns["half_width_any_time"])
    if not told.any():
        return None
    number, apart, wide = (
        columns[name][told] for name in ("number", "lift_so_far", "half_width_any_time")
    )
    return _within(
        number.tolist(),
        "difference",
        apart.tolist(),
        (apart - wide).clip(-span, span).tolist(),
        (apart + wide).clip(-span, span).tolist(),
    ) | {"zero": True}


def _within(
    x: list[int], word: str, middle: list[float], low: list[float], high: list[float]
) -> dict[str, Any]:
    return {
        "x": x,
        "label": "release",
        "whole": True,
        "band": True,
        "lines": [
            {"label": word, "values": middle},
            {"label": "at least", "values": low, "dashed": True},
            {"label": "at most", "values": high, "dashed": True},
        ],
    }


def traffic(hours: dict[int, int], now: float) -> dict[str, Any] | None:
    """Decisions in each hour up to now; hours without any are zero."""
    if not hours:
        return None
    last = int(now // HOUR) * HOUR
    first = max(min(min(hours), last - 11 * HOUR), last - (HOURS - 1) * HOUR)
    x = list(range(first, last + 1, HOUR))
    return {
        "x": x,
        "label": "hour",
        "time": True,
        "bars": True,
        "from": 0,
        "lines": [{"label": "decisions", "values": [hours.get(hour, 0) for hour in x]}],
    }
