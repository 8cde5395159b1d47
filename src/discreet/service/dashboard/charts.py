"""Charts over time as SVG that the server draws: they need no script, and print in every colour
scheme.

Heights are pixels and widths per cents, so that letters keep their size on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from discreet.client.pages import minute

TOP, BOTTOM = 18.0, 192.0
"""Pixels from the upper edge to the upper and lower end of the scale."""
LEFT, RIGHT = 9.0, 98.0
"""Per cents of the width where the scale begins and ends."""
TABLE = 40
"""A chart of more points has no table."""
APART = 4.0
"""Per cents between two numbers of releases, at least."""
DAY = 86_400
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

    def place(self, x: float) -> float:
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
            (self.place(x), wide, self.height(y), f"{self.name(x)}: {short(y)}") for x, y in values
        ]

    def points(self, values: Values) -> str:
        """Return the points of a line, ten units per per cent of the width."""
        pairs = zip(self.x, values, strict=True)
        return " ".join(f"{10 * self.place(x):g},{self.height(y):g}" for x, y in pairs)

    def band(self, line: Line) -> str:
        """Return the outline of the interval."""
        back = self.points(line.high).split()[::-1] if line.low else []
        return " ".join([self.points(line.low), *back]) if line.low else ""

    def dots(self, line: Line) -> list[tuple[float, float, str]]:
        """Return place, height and words of the points; none if there are many."""
        if len(self.x) > TABLE:
            return []
        low, high = self.scale
        return [
            (self.place(x), self.height(y), f"{line.label}, {self.name(x)}: {text}")
            for x, y, text in zip(self.x, line.values, line.texts, strict=True)
            if low <= y <= high
        ]

    def arrows(self, line: Line) -> list[tuple[float, bool]]:
        """Return the places where the line or its interval leaves the scale, and if upwards."""
        low, high = self.scale
        above = zip(self.x, line.high or line.values, strict=True)
        below = zip(self.x, line.low or line.values, strict=True)
        return [
            *((self.place(x), True) for x, y in above if y > high),
            *((self.place(x), False) for x, y in below if y < low),
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
            found.append((self.place(count * step), word))
            before = day
        alone = datetime.fromtimestamp(first, UTC).strftime("%-d %b")
        return found or [(self.place(first), alone)]

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
                at = self.place(x)
                found.append((at, str(number) if free - at >= APART else ""))
                free = at if found[-1][1] else free
        return found


def short(value: float) -> str:
    """Return three digits; whole thousands."""
    rounded = float(f"{value:.3g}")
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{rounded:.6f}".rstrip("0").rstrip(".")
    return text.replace("-", "−") if text != "-0" else "0"
