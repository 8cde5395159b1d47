"""First page of an experiment: its state, the comparison with the control, the next release."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import numpy as np
from starlette.responses import JSONResponse, Response

from discreet.design.outcome import Outcome
from discreet.releases.lift import Lift
from discreet.releases.quality import Quality, quality
from discreet.service.dashboard.charts import Chart, Line
from discreet.service.dashboard.example_people import example_shares
from discreet.service.dashboard.experiment_summary import summary
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service
from discreet.service.storage.document_table import HOUR
from discreet.types import JsonObject, NumpyArray

HOURS = 7 * 24
"""The most hours that the chart of decisions covers."""
TWO_SIDED = 1.96
"""Standard errors on either side of a mean that hold 95 % of a normal law."""
Titled = tuple[str, Chart, str]
"""A heading, a chart, and a sentence on how to read it."""


async def overview(page: PageRequest, service: Service) -> Response:
    plan = service.settings.plan
    found, ledger = await summary(service), await service.state.ledger()
    drawn: JsonObject = {}
    if not page.partial:
        chain, times = service.state.serving.chain, found.released
        charts = [outcomes(quality(chain.deciding), times)]
        if found.lift:
            charts = [lift_so_far(found.lift, times), means_so_far(found.lift, times)]
        marks = tuple((at, number) for number, at in times.items())
        charts.append(traffic(found.hours, found.status["now"], marks))
        shares = await asyncio.to_thread(example_shares, plan, chain, service.state.deciding())
        drawn = {"charts": [each for each in charts if each is not None], "shares": shares}
    return page.render(
        "part_overview.html" if page.partial else "overview.html",
        found=found,
        status=found.status,
        spent=ledger.spent(),
        budget=ledger.budget,
        question=service.settings.question,
        guardrails=service.guardrails(),
        **drawn,
    )


async def newest(_page: PageRequest, service: Service) -> Response:
    """Return the number of the newest document, so that an open page can show that it is old."""
    return JSONResponse({"newest": service.state.serving.newest})


def outcomes(found: list[Quality], times: dict[int, float]) -> Titled | None:
    """Return the means of releases whose noise is within the range, with their intervals."""
    known = [each for each in found if each.standard_error <= 0.5 and each.number in times]
    if not known:
        return None
    outcome = known[0].outcome
    middle = np.array([each.mean for each in known])
    wide = TWO_SIDED * np.array([each.mean_error for each in known])
    line = _line(f"mean {outcome.word}", middle, wide, outcome.low, outcome.high)
    words = f"Mean {outcome.word} of each release, all decisions together"
    text = f"{_better(outcome)} With 95 % certainty the exact mean is in the band."
    return words, _by_release(words, [each.number for each in known], times, line), text


def lift_so_far(lift: Lift, times: dict[int, float]) -> Titled | None:
    """Return the lift after each release that tells it, with its interval for any time."""
    span, (numbers, columns) = lift.outcome.high - lift.outcome.low, _known(lift, times)
    if not numbers:
        return None
    middle, wide = columns["lift_so_far"], columns["half_width_any_time"]
    line = _line("policy less control", middle, wide, -span, span)
    words = f"Mean {lift.outcome.word} of the policy less that of the control, so far"
    chart = replace(_by_release(words, numbers, times, line), zero=True)
    side = "Below" if lift.outcome.best == "low" else "Above"
    text = f"{side} zero the policy helps. The band is a 95 % interval that is valid at every look."
    return words, chart, text


def means_so_far(lift: Lift, times: dict[int, float]) -> Titled | None:
    """Return the means of policy and control so far, each within its interval for any time."""
    outcome, (numbers, columns) = lift.outcome, _known(lift, times)
    if not numbers:
        return None
    lines = []
    for part in ("policy", "control"):
        middle, wide = columns[f"{part}_so_far"], columns[f"{part}_half_width_any_time"]
        lines.append(_line(part, middle, wide, outcome.low, outcome.high))
    words = f"Mean {outcome.word} of policy and control, so far"
    text = f"{_better(outcome)} Bands are 95 % intervals of each mean, valid at every look."
    return words, _by_release(words, numbers, times, *lines), text


def _better(outcome: Outcome) -> str:
    return f"{'Smaller' if outcome.best == 'low' else 'Larger'} is better."


def _known(lift: Lift, times: dict[int, float]) -> tuple[list[int], dict[str, NumpyArray]]:
    """Return the releases whose lift is known, and the columns of the lift for them."""
    table = lift.table
    pairs = zip(table["number"].tolist(), table["half_width_any_time"].tolist(), strict=True)
    known = [math.isfinite(wide) and number in times for number, wide in pairs]
    columns = {name: values[known] for name, values in table.items()}
    return columns["number"].tolist(), columns


def _line(label: str, middle: NumpyArray, wide: NumpyArray, low: float, high: float) -> Line:
    ends = ((middle + sign * wide).clip(low, high).tolist() for sign in (-1.0, 1.0))
    return Line(label, middle.tolist(), *ends)


def _by_release(words: str, numbers: list[int], times: dict[int, float], *lines: Line) -> Chart:
    x = [times[number] for number in numbers]
    marks = tuple(zip(x, numbers, strict=True))
    return Chart(words, "date, UTC", x, lines, time=True, releases=marks)


def traffic(
    hours: dict[int, int], now: float, releases: tuple[tuple[float, int], ...] = ()
) -> Titled | None:
    """Decisions in each hour up to now; hours without any are zero."""
    if not hours:
        return None
    last = int(now // HOUR) * HOUR
    first = max(min(min(hours), last - 11 * HOUR), last - (HOURS - 1) * HOUR)
    x = list(range(first, last + 1, HOUR))
    lines = (Line("decisions", [hours.get(hour, 0) for hour in x]),)
    words = "Decisions per hour"
    bars = Chart(words, "date, UTC", x, lines, time=True, bars=True, zero=True, releases=releases)
    return words, bars, "All decisions, of policy and control together."
