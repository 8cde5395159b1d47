"""A column of dates and times, as places in the year, the month, the week and the day."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.column_values import Field
from discreet.types import NumpyArray, added_later

CYCLES = {"month": 12, "day": 31, "weekday": 7, "hour": 24}
"""The parts of a date, and how many places each has."""

TEXT = re.compile(
    r"([1-9]\d{3})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
"""2026-03-29, or 2026-03-29T14:05:59.25+02:00 with seconds, decimals and zone as one likes."""

_CIRCLES = {
    part: [(math.cos(2 * math.pi * k / n), math.sin(2 * math.pi * k / n)) for k in range(n)]
    for part, n in CYCLES.items()
}
_TABLES = {part: np.array(circle) for part, circle in _CIRCLES.items()}


@dataclass(frozen=True)
class Date(Field):
    """Parts of a date, each as (cos, sin) of its place in its cycle, so that 23 h is near 0 h.

    Parts are "month", "day" (of the month, a cycle of 31), "weekday" (from Monday) and "hour".
    A value is ISO 8601 text, a date, a datetime or a datetime64. It is read as written: the zone
    is not converted, so 14:05+02:00 is the hour 14. Each part has length 1.

    ``name`` is the key or the column. A missing value is refused, unless ``stand_in`` replaces it
    or ``indicator`` adds a feature for it.

    >>> out = np.zeros(2)
    >>> Date("at", parts=["hour"]).write("2026-03-29T06:30", out, 0)
    >>> out.round(6)
    array([0., 1.])
    """

    name: str
    parts: tuple[str, ...] = ("weekday", "hour")
    stand_in: str | None = added_later(None)
    indicator: bool = added_later(False)

    def __post_init__(self) -> None:
        several = isinstance(self.parts, Sequence) and not isinstance(self.parts, str)
        parts = tuple(self.parts) if several else ()
        if not parts or not set(parts) <= CYCLES.keys() or len(set(parts)) != len(parts):
            raise InvalidInput(
                f"parts of {self.name!r} must be a list of {', '.join(CYCLES)}, each at most once; "
                f"got {self.parts!r}. Choose the parts that may matter."
            )
        object.__setattr__(self, "parts", parts)
        if isinstance(self.stand_in, datetime.date):  # a datetime is one too
            object.__setattr__(self, "stand_in", self.stand_in.isoformat())
        self.check_declaration()

    @property
    def width(self) -> int:  # type: ignore[override]
        return 2 * len(self.parts)

    @property
    def units(self) -> int:  # type: ignore[override]
        return len(self.parts)

    def write(self, value: object, out: NumpyArray, at: int) -> None:
        for part, place in zip(self.parts, self._places(value), strict=True):
            out[at], out[at + 1] = _CIRCLES[part][place]
            at += 2

    def write_column(self, values: NumpyArray, out: NumpyArray) -> None:
        if values.dtype.kind != "M":
            super().write_column(values, out)
            return
        columns = zip(self.parts, self._places_of_array(values), strict=True)
        for number, (part, column) in enumerate(columns):
            out[:, 2 * number : 2 * number + 2] = _TABLES[part][column]

    @property
    def rule(self) -> str:
        if "hour" in self.parts:
            return "a date with a time such as '2026-03-29T14:05'"
        return "a date such as '2026-03-29'"

    def _places(self, value: object) -> list[int]:
        """The place of each part, from 0."""
        if isinstance(value, np.datetime64):
            return [int(column[0]) for column in self._places_of_array(np.array([value]))]
        hour: int | None = None
        day: datetime.date | None = None
        if isinstance(value, str):
            day, hour = _read(value)
        elif isinstance(value, datetime.date):
            day, hour = value, getattr(value, "hour", None)
        if day is None or (hour is None and "hour" in self.parts):
            raise self.refusal(value, "Send ISO 8601 text with each part, or leave out the part.")
        found = {"month": day.month - 1, "day": day.day - 1, "weekday": day.weekday(), "hour": hour}
        return [found[part] for part in self.parts]  # type: ignore[misc]

    def _places_of_array(self, values: NumpyArray) -> list[NumpyArray]:
        unit, _ = np.datetime_data(values.dtype)
        if unit in ("Y", "M", "W") or (unit == "D" and "hour" in self.parts):
            step = "Use a datetime64 with days, and with hours where hour is a part."
            raise self.refusal(values[0] if len(values) else values.dtype, step)
        months, days = values.astype("datetime64[M]"), values.astype("datetime64[D]")
        found = {
            "month": months.astype(np.int64) % 12,
            "day": (days - months.astype("datetime64[D]")).astype(np.int64),
            "weekday": (days.astype(np.int64) + 3) % 7,  # 1970 began on a Thursday
            "hour": (values - days).astype("timedelta64[h]").astype(np.int64),
        }
        return [found[part] for part in self.parts]


def _read(text: str) -> tuple[datetime.date | None, int | None]:
    """The day and the hour of ISO 8601 text; None for a part that it lacks."""
    match = TEXT.fullmatch(text)
    if match is None:
        return None, None
    year, month, day, hour, minute, second = (int(each or 0) for each in match.groups())
    try:
        found = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None, None
    return found, None if match[4] is None else hour
