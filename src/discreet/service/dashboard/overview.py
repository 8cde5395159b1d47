"""First page of an experiment: its state, the comparison with the control, the next release.

The server draws charts as SVG: they need no script, and print in every colour scheme. Heights are
pixels and widths per cents, so that letters keep their size on a phone.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
from starlette.responses import JSONResponse, Response

from discreet.client.pages import minute
from discreet.design.outcome import Outcome
from discreet.releases.lift import Lift
from discreet.releases.quality import Quality, quality
from discreet.service.dashboard.experiment_summary import DAY, summary
from discreet.service.dashboard.explorer import example_shares
from discreet.service.dashboard.page_frame import ExperimentPage
from discreet.service.storage.document_table import HOUR
from discreet.types import JsonObject, NumpyArray

HOURS = 7 * 24
"""The most hours that the chart of decisions covers."""
TWO_SIDED = 1.96
"""Standard errors on either side of a mean that hold 95 % of a normal law."""
TOP, BOTTOM = 18.0, 192.0
"""Pixels from the upper edge to the upper and lower end of the scale."""
LEFT, RIGHT = 9.0, 98.0
"""Per cents of the width where the scale begins and ends."""
TABLE = 40
"""A chart of more points has no table."""
APART = 4.0
"""Per cents between two numbers of releases, at least."""
STEPS = (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
DAYS = (1, 2, 7, 14, 30, 61, 91, 182, 365)
Values = Sequence[float]
Tick = tuple[float, str]
"""A per cent of the width or a pixel of the height, and the word there."""


@dataclass(frozen=True)
class Line:
    """Values at each time, within ``low`` and ``high`` if there is an interval."""

    label: str
    values: Values
    low: Values = ()
    high: Values = ()

    @property
    def texts(self) -> list[str]:
        if not self.low:
            return [*map(short, self.values)]
        ends = zip(self.values, self.low, self.high, strict=True)
        return [f"{short(x)} ({short(low)} to {short(high)})" for x, low, high in ends]


@dataclass(frozen=True)
class Chart:
    """Lines, or bars of a single line, at times ``x``; ``note`` explains how to read it.

    The scale holds the values and intervals of the later half of the points, so that early wide
    intervals do not flatten the rest: arrows mark what is outside. ``releases`` are pairs of a time
    and a number.
    """

    title: str
    note: str
    x: Values
    lines: tuple[Line, ...]
    bars: bool = False
    zero: bool = False
    releases: tuple[tuple[float, int], ...] = ()

    @property
    def scale(self) -> tuple[float, float]:
        parts = [part for line in self.lines for part in (line.values, line.low, line.high)]
        held = [value for part in parts for value in part[len(self.x) // 2 :]] or [0.0, 1.0]
        low, high = min(held), max(held)
        if self.zero:
            low, high = min(low, 0.0), max(high, 0.0)
        room = 0.08 * (high - low) or 0.5
        return (low if self.bars else low - room), high + room

    @property
    def _step(self) -> float:
        return min((b - a for a, b in pairwise(self.x)), default=1.0)

    @property
    def _width(self) -> float:
        """Length of the horizontal axis; a bar extends to the right of its time."""
        return max(self.x) - min(self.x) + (self._step if self.bars else 0.0)

    def position(self, x: float) -> float:
        if not self._width:
            return (LEFT + RIGHT) / 2
        return round(LEFT + (RIGHT - LEFT) * (x - min(self.x)) / self._width, 2)

    def height(self, value: float) -> float:
        low, high = self.scale
        share = (min(max(value, low), high) - low) / (high - low)
        return round(BOTTOM - (BOTTOM - TOP) * share, 1)

    @property
    def columns(self) -> list[tuple[float, float, float, str]]:
        """Left end, width, height and words of each bar."""
        wide = round(0.85 * (RIGHT - LEFT) * self._step / self._width, 2)
        values = zip(self.x, self.lines[0].values, strict=True)
        return [
            (self.position(x), wide, self.height(y), f"{self.name(x)}: {short(y)}")
            for x, y in values
        ]

    def points(self, values: Values) -> str:
        """Return the points of a line, ten units per per cent of the width."""
        pairs = zip(self.x, values, strict=True)
        return " ".join(f"{10 * self.position(x):g},{self.height(y):g}" for x, y in pairs)

    def band(self, line: Line) -> str:
        """Return the outline of the interval."""
        back = self.points(line.high).split()[::-1] if line.low else []
        return " ".join([self.points(line.low), *back]) if line.low else ""

    def dots(self, line: Line) -> list[tuple[float, float, str]]:
        """Return position, height and words of the points; none if there are many."""
        if len(self.x) > TABLE:
            return []
        low, high = self.scale
        return [
            (self.position(x), self.height(y), f"{line.label}, {self.name(x)}: {text}")
            for x, y, text in zip(self.x, line.values, line.texts, strict=True)
            if low <= y <= high
        ]

    def arrows(self, line: Line) -> list[tuple[float, bool]]:
        """Return the positions where the line or its interval leaves the scale, and if upwards."""
        low, high = self.scale
        above = zip(self.x, line.high or line.values, strict=True)
        below = zip(self.x, line.low or line.values, strict=True)
        return [
            *((self.position(x), True) for x, y in above if y > high),
            *((self.position(x), False) for x, y in below if y < low),
        ]

    def name(self, x: float) -> str:
        """Return a time in words, with its release."""
        number = dict(self.releases).get(x)
        return minute(x) if number is None else f"release {number}, {minute(x)}"

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The chart as a table; empty if it is long."""
        if len(self.x) > TABLE:
            return []
        cells = zip(*(line.texts for line in self.lines), strict=True)
        return [(self.name(x), list(row)) for x, row in zip(self.x, cells, strict=True)]

    @property
    def across(self) -> list[Tick]:
        """Round moments and their names: days, or times of a day."""
        first, last = min(self.x), max(self.x)
        steps = (*STEPS, *(DAY * days for days in DAYS))
        step = next((each for each in steps if (last - first) / each <= 5), steps[-1])
        found: list[Tick] = []
        before = ""
        for count in range(math.ceil(first / step), math.floor(last / step) + 1):
            moment = datetime.fromtimestamp(count * step, UTC)
            day = moment.strftime("%-d %b")
            clock = moment.strftime("%H:%M" if step >= 60 else "%H:%M:%S")
            word = day if step >= DAY or day != before else clock
            found.append((self.position(count * step), word))
            before = day
        alone = datetime.fromtimestamp(first, UTC).strftime("%-d %b")
        return found or [(self.position(first), alone)]

    @property
    def upward(self) -> list[Tick]:
        """A few round numbers of the scale."""
        low, high = self.scale
        least = (high - low) / 4
        unit = 10.0 ** math.floor(math.log10(least))
        step = next(each * unit for each in (1, 2, 5, 10) if each * unit >= least)
        counts = range(math.ceil(low / step), math.floor(high / step) + 1)
        return [(self.height(step * each), short(step * each)) for each in counts]

    @property
    def marks(self) -> list[Tick]:
        """Lines at releases; those too close to the next one have no number."""
        found: list[Tick] = []
        free = math.inf
        for x, number in reversed(self.releases):
            if 0 <= x - min(self.x) <= self._width:
                at = self.position(x)
                found.append((at, str(number) if free - at >= APART else ""))
                free = at if found[-1][1] else free
        return found


def short(value: float) -> str:
    """Return three digits; whole thousands."""
    rounded = float(f"{value:.3g}")
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{rounded:.6f}".rstrip("0").rstrip(".")
    return text.replace("-", "−") if text != "-0" else "0"


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
    """Return the lift after each release for which it is known, with its interval for any time."""
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
