"""First page of an experiment: its state, the comparison with the control, the next release."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.responses import JSONResponse, Response

from discreet.releases.lift import Lift
from discreet.releases.quality import Quality, quality
from discreet.service.dashboard import experiment_summary
from discreet.service.dashboard.experiment_summary import summary
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service
from discreet.service.storage.document_table import HOUR


async def overview(page: PageRequest, service: Service) -> Response:
    """Render the page, or the part that the browser requests every few seconds."""
    plan = service.settings.plan
    found, ledger = await summary(service), await service.state.ledger()
    drawn: dict[str, Any] = {}
    if not page.partial:
        released = service.state.serving.chain.deciding
        drawn = {
            "outcomes": outcomes(quality(released)),
            "lift_chart": found.lift and lift_so_far(found.lift),
            "traffic": traffic(found.hours, found.status["now"]),
        }
    return page.render(
        "part_overview.html" if page.partial else "overview.html",
        found=found,
        status=found.status,
        privacy=experiment_summary.privacy(ledger.spent(), ledger.budget, plan.participation),
        guardrails=service.guardrails(),
        compared=plan.control and experiment_summary.control(plan),
        **drawn,
    )


async def newest(_page: PageRequest, service: Service) -> Response:
    """Return the number of the newest document, so that an open page can show that it is old."""
    return JSONResponse({"newest": service.state.serving.newest})


HOURS = 7 * 24
"""The most hours that the chart of decisions covers."""
TWO_SIDED = 1.96
"""Standard errors on either side of a mean that hold 95 % of a normal law."""


def outcomes(found: list[Quality]) -> dict[str, object] | None:
    """Return the mean loss or reward of each release within the interval of its noise; releases
    whose noise exceeds the whole range have none."""
    known = [each for each in found if each.standard_error <= 0.5]
    if not known:
        return None
    low, high = known[0].outcome.low, known[0].outcome.high
    wide = [TWO_SIDED * each.mean_error for each in known]
    means = [each.mean for each in known]
    return _within(
        [each.number for each in known],
        f"mean {known[0].outcome.word}",
        means,
        [max(low, mean - side) for mean, side in zip(means, wide, strict=True)],
        [min(high, mean + side) for mean, side in zip(means, wide, strict=True)],
    )


def lift_so_far(lift: Lift) -> dict[str, object] | None:
    """Return the lift so far, release by release, within the interval that is valid at any time.

    None, and no point for a release, where it is not known yet.
    """
    columns, span = lift.table, lift.outcome.high - lift.outcome.low
    known = np.isfinite(columns["half_width_any_time"])
    if not known.any():
        return None
    number, difference, wide = (
        columns[name][known] for name in ("number", "lift_so_far", "half_width_any_time")
    )
    return _within(
        number.tolist(),
        "difference",
        difference.tolist(),
        (difference - wide).clip(-span, span).tolist(),
        (difference + wide).clip(-span, span).tolist(),
    ) | {"zero": True}


def _within(
    x: list[int], word: str, middle: list[float], low: list[float], high: list[float]
) -> dict[str, object]:
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


def traffic(hours: dict[int, int], now: float) -> dict[str, object] | None:
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
