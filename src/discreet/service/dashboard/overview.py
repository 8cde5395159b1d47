"""First page of an experiment: its state, the comparison with the control, the next release."""

from __future__ import annotations

import asyncio

import numpy as np
from starlette.responses import JSONResponse, Response

from discreet.design.outcome import Outcome
from discreet.releases.lift import Lift
from discreet.releases.quality import Quality, quality
from discreet.service.dashboard.charts import Chart, Line
from discreet.service.dashboard.experiment_summary import summary
from discreet.service.dashboard.explorer import example_shares
from discreet.service.dashboard.page_frame import ExperimentPage
from discreet.service.storage.document_table import HOUR
from discreet.types import JsonObject, NumpyArray

HOURS = 7 * 24
"""The most hours that the chart of decisions covers."""
TWO_SIDED = 1.96
"""Standard errors on either side of a mean that hold 95 % of a normal law."""


async def overview(page: ExperimentPage) -> Response:
    service = page.site
    found, ledger = await summary(service), await service.state.ledger()
    drawn: JsonObject = {}
    if not page.partial:
        chain, times = service.state.serving.chain, found.released
        charts = [outcomes(quality(chain.deciding), times)]
        if found.lift:
            charts = [lift_so_far(found.lift, times), means_so_far(found.lift, times)]
        charts.append(traffic(found.hours, found.status["now"], times))
        deciding = service.state.deciding()
        shares = await asyncio.to_thread(example_shares, found.plan, chain, deciding)
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


async def newest(page: ExperimentPage) -> Response:
    """Return the number of the newest document, so that an open page can show that it is old."""
    return JSONResponse({"newest": page.site.state.serving.newest})


def outcomes(found: list[Quality], times: dict[int, float]) -> Chart | None:
    """Return the means of releases whose noise is within the range, with their intervals."""
    known = [each for each in found if each.standard_error <= 0.5 and each.number in times]
    if not known:
        return None
    outcome = known[0].outcome
    middle = np.array([each.mean for each in known])
    wide = TWO_SIDED * np.array([each.mean_error for each in known])
    line = _line(f"mean {outcome.word}", middle, wide, (outcome.low, outcome.high))
    return _by_release(
        f"Mean {outcome.word} of each release, all decisions together",
        f"{_better(outcome)} With 95 % certainty the exact mean is in the band.",
        {each.number: times[each.number] for each in known},
        line,
    )


def lift_so_far(lift: Lift, times: dict[int, float]) -> Chart | None:
    """Return the lift after each release that tells it, with its interval for any time."""
    columns = _known(lift, times)
    if not columns["number"].size:
        return None
    span = lift.outcome.high - lift.outcome.low
    middle, wide = columns["lift_so_far"], columns["half_width_any_time"]
    side = "Below" if lift.outcome.best == "low" else "Above"
    return _by_release(
        f"Mean {lift.outcome.word} of the policy less that of the control, so far",
        f"{side} zero the policy helps. The band is a 95 % interval that is valid at every look.",
        {number: times[number] for number in columns["number"].tolist()},
        _line("policy less control", middle, wide, (-span, span)),
        zero=True,
    )


def means_so_far(lift: Lift, times: dict[int, float]) -> Chart | None:
    """Return the means of policy and control so far, each within its interval for any time."""
    outcome, columns = lift.outcome, _known(lift, times)
    if not columns["number"].size:
        return None
    lines = []
    for part in ("policy", "control"):
        middle, wide = columns[f"{part}_so_far"], columns[f"{part}_half_width_any_time"]
        lines.append(_line(part, middle, wide, (outcome.low, outcome.high)))
    return _by_release(
        f"Mean {outcome.word} of policy and control, so far",
        f"{_better(outcome)} Bands are 95 % intervals of each mean, valid at every look.",
        {number: times[number] for number in columns["number"].tolist()},
        *lines,
    )


def traffic(hours: dict[int, int], now: float, times: dict[int, float]) -> Chart | None:
    """Return the decisions in each hour up to now; hours without any are zero."""
    if not hours:
        return None
    last = int(now // HOUR) * HOUR
    first = max(min(min(hours), last - 11 * HOUR), last - (HOURS - 1) * HOUR)
    x = list(range(first, last + 1, HOUR))
    lines = (Line("decisions", [hours.get(hour, 0) for hour in x]),)
    marks = tuple((at, number) for number, at in times.items())
    note = "All decisions, of policy and control together."
    return Chart("Decisions per hour", note, x, lines, bars=True, zero=True, releases=marks)


def _better(outcome: Outcome) -> str:
    return f"{'Smaller' if outcome.best == 'low' else 'Larger'} is better."


def _known(lift: Lift, times: dict[int, float]) -> dict[str, NumpyArray]:
    """Return the columns of the lift for the releases whose lift is known."""
    table = lift.table
    dated = np.array([number in times for number in table["number"].tolist()], dtype=bool)
    known = np.isfinite(table["half_width_any_time"]) & dated
    return {name: values[known] for name, values in table.items()}


def _line(label: str, middle: NumpyArray, wide: NumpyArray, span: tuple[float, float]) -> Line:
    low, high = ((middle + sign * wide).clip(*span).tolist() for sign in (-1.0, 1.0))
    return Line(label, middle.tolist(), low, high)


def _by_release(
    title: str, note: str, times: dict[int, float], *lines: Line, zero: bool = False
) -> Chart:
    marks = tuple((at, number) for number, at in times.items())
    return Chart(title, note, [*times.values()], lines, zero=zero, releases=marks)
