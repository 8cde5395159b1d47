"""Batches that grow, and their public clocks: when one closes, how long its losses are awaited.

Times are written as "90s" or "7d". No rule depends on who answered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.types import JsonMapping
from discreet.validate import in_range, whole

LONGEST = 2**22
"""No batch of decisions is longer: int64 holds its sums (docs/privacy/arithmetic.md)."""
LARGEST_LOG = 2**40
"""Rows of an imported log, whose sums are Python's integers: floats keep their noise to 2⁻¹⁴."""

LOG_GROWTH = 4
"""Every batch of an imported log makes its rows so far this many times as many."""


@dataclass(frozen=True)
class Schedule:
    """Batch 1 has ``first`` slots, each next one ⌈``growth`` × as many⌉, at most ``longest``.

    Without ``longest`` they grow to 2²² slots. The horizon cuts the last batch short. With a known
    horizon T the last batch is never fitted, so there are exactly M − 1 fits; without one every
    batch is. The paper's batches double from one slot. [paper, Algorithm 2]

    With ``every``, a time such as "7d", a batch closes at the latest so long after it opened, with
    the slots that were taken by then. The next one begins where it would have begun anyway: the
    free slots keep their numbers, and have no record.

    With ``half_life`` a release counts half as much after so many more (releases/statistics.py).

    >>> Schedule(horizon=10).lengths()
    [1, 2, 4, 3]
    >>> Schedule(first=16, growth=1.5).length(4), Schedule(first=16, growth=1.5).start(4)
    (54, 76)
    >>> [Schedule(first=16, growth=1.5, longest=40).length(m) for m in (1, 2, 3, 4, 5)]
    [16, 24, 36, 40, 40]

    A log of ``imported`` rows has separate batches: the last has three quarters of the rows, the
    one before it three quarters of the others, and so on. Early ones teach the geometry, and few
    batches have less noise in sum. Only ``longest`` divides them. The batches of decisions follow.

    >>> [Schedule(first=16, growth=1.5, imported=800).length(m) for m in (1, 2, 3, 4, 5)]
    [50, 150, 600, 16, 24]
    """

    first: int = 1
    horizon: int | None = None
    growth: float = 2.0
    longest: int | None = None
    every: str | None = None
    half_life: int | None = None
    imported: int | None = None

    def __post_init__(self) -> None:
        whole("first_batch", self.first, 1)
        in_range("first_batch", self.first, 1, LONGEST)
        in_range("growth", self.growth, 1.1, 16.0)
        limits = {
            "longest_batch": (self.longest, self.first, LONGEST),
            "imported": (self.imported, 1, LARGEST_LOG),
            "half_life": (self.half_life, 1, math.inf),
            "horizon": (self.horizon, 1, math.inf),
        }
        for name, (number, least, most) in limits.items():
            if number is not None:
                step = f"Give a whole number of at least {least}, or None."
                in_range(name, whole(name, number, 1, step), least, most, step)
        _ = self.seconds  # checks it

    @classmethod
    def of_plan(cls, config: JsonMapping) -> Schedule:
        """The schedule of a plan's document."""
        later = ("longest_batch", "close_every", "half_life", "imported")
        first, growth = int(config["first_batch"]), float(config["growth"])
        return cls(first, config["horizon"], growth, *map(config.get, later))

    @property
    def imported_batches(self) -> int:
        """The number of batches of the imported log."""
        return 0 if self.imported is None else len(_cut(self.imported, self.first, self.longest))

    @property
    def end(self) -> int | None:
        """All slots, imported rows included; the horizon counts decisions."""
        return None if self.horizon is None else self.horizon + (self.imported or 0)

    @property
    def seconds(self) -> float | None:
        """``every`` as a number; None for batches that close by count alone."""
        return None if self.every is None else seconds_of("close_every", self.every)

    def allows(self, release: int, records: int, burned: int = 0) -> bool:
        """Return whether a release may have so many records: its slots, or fewer by a clock.

        Where batches were ``burned``, as many later ones may have come in their place.

        >>> Schedule(first=4).allows(2, 8), Schedule(first=4).allows(2, 7)
        (True, False)
        >>> Schedule(first=4, every="7d").allows(2, 7), Schedule(first=4, every="7d").allows(2, 0)
        (True, False)
        """
        if self.every is not None:
            return 1 <= records <= self.nominal(release + burned)
        return any(records == self.nominal(release + skipped) for skipped in range(burned + 1))

    def nominal(self, batch: int) -> int:
        """B_m, before the horizon cuts it: the length that enters learning rates."""
        lengths, _ = self._growing
        return lengths[min(batch, len(lengths)) - 1]

    def start(self, batch: int) -> int:
        """Rounds that are over when batch m begins: Σ_{j<m} B_j."""
        lengths, starts = self._growing
        grown = min(batch, len(lengths))
        return starts[grown - 1] + (batch - grown) * lengths[-1]

    def length(self, batch: int) -> int:
        """Slots of batch m: B_m, or what the horizon leaves of it (0 after the end)."""
        nominal = self.nominal(batch)
        return nominal if self.end is None else max(0, min(nominal, self.end - self.start(batch)))

    def fitted(self, batch: int) -> bool:
        """Return whether batch m is ever fitted: all but the last one before a known horizon."""
        return self.end is None or self.start(batch + 1) < self.end

    def lengths(self) -> list[int]:
        """All batch lengths up to a known horizon."""
        if self.horizon is None:
            return []
        lengths: list[int] = []
        while self.length(len(lengths) + 1) > 0:
            lengths.append(self.length(len(lengths) + 1))
        return lengths

    @property
    def _growing(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return _growing(self.first, self.growth, self.longest, self.imported)


@lru_cache(maxsize=256)
def _growing(
    first: int, growth: float, longest: int | None, imported: int | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths up to the first that is ``longest``, and where these batches start.

    One rounded product per batch, the same in every language.
    """
    lengths, starts, most = [first], [0], longest or LONGEST
    while lengths[-1] < most:
        starts.append(starts[-1] + lengths[-1])
        lengths.append(min(most, max(lengths[-1] + 1, math.ceil(growth * lengths[-1]))))
    if imported is not None:
        log = _cut(imported, first, longest)
        begins = [*accumulate(log, initial=0)][:-1]
        lengths, starts = [*log, *lengths], [*begins, *(imported + start for start in starts)]
    return tuple(lengths), tuple(starts)


def _cut(rows: int, first: int, longest: int | None) -> list[int]:
    """Return the lengths of a log's batches; the first has at least ``first`` rows, if there are.

    A batch above ``longest`` is divided into the fewest parts, which differ by one row at most.
    """
    ends = [rows]
    while ends[0] // LOG_GROWTH >= first:
        ends.insert(0, ends[0] // LOG_GROWTH)
    lengths = [end - start for start, end in pairwise([0, *ends])]
    parts = [(length, -(-length // (longest or LARGEST_LOG))) for length in lengths]
    return [length // n + (k < length % n) for length, n in parts for k in range(n)]


WAITING = ("pipeline", "gap")
"""What happens while a sealed batch waits: the next one opens, or nothing is stored."""
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_TEXT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([smhd])\s*")


def may_open(waiting: str, under_way: int) -> bool:
    """Return whether a batch may open while so many others wait for losses.

    Privacy: this is decided by public counts, so no answer moves a slot to another batch.
    [docs/privacy/transcript.md, "Several batches at once"]
    """
    return waiting == "pipeline" or under_way == 0


def seconds_of(name: str, text: str) -> float:
    """Seconds of a time in words.

    >>> [seconds_of("window", text) for text in ("90s", "15m", "6h", "7d")]
    [90.0, 900.0, 21600.0, 604800.0]
    """
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if seconds <= 0.0:
        raise InvalidInput(
            f"{name} must be a number above zero with a unit, s, m, h or d; got {text!r}. "
            "Write '90s', '15m', '6h' or '7d'."
        )
    return seconds


def seconds_now(clock: Callable[[], float]) -> float:
    """Return the time of a clock; refuse one that no later moment could be compared with."""
    seconds = float(clock())
    if not math.isfinite(seconds):
        raise InvalidInput(
            f"clock must return a finite number of seconds; got {seconds!r}. "
            "Pass one like time.time. Nothing was stored."
        )
    return seconds


def tick(every: float, opened: float, taken: int, now: float) -> tuple[float, bool]:
    """The moment from which the clock of an open batch runs, and whether that closed the batch.

    A batch closes when ``every`` seconds went by since it ``opened``. One without a slot taken has
    nothing to release: it stays open until the next tick, so its clock runs from the newest one.
    Call it before each slot is taken.

    Privacy: slots taken are counted with or without an answer.
    [docs/privacy/transcript.md, "A clock that closes batches"]

    >>> tick(7.0, opened=0.0, taken=3, now=6.0), tick(7.0, opened=0.0, taken=3, now=30.0)
    ((0.0, False), (7.0, True))
    >>> tick(7.0, opened=0.0, taken=0, now=30.0)
    (28.0, False)
    """
    ticks = math.floor((now - opened) / every)
    if ticks < 1:  # also where a clock was set back
        return opened, False
    return (opened + every, True) if taken else (opened + ticks * every, False)


@dataclass(frozen=True)
class Window:
    """The public rule that ends the waiting for losses of a sealed batch.

    ``setting`` is a number of decisions, a time in words, or None for a window without an end.

    >>> Window(1_000).over(1_000, 0.0), Window(1_000).over(1_001, 0.0)
    (False, True)
    >>> Window("15m").over(10**6, 899.0), Window("15m").over(0, 900.0)
    (False, True)
    """

    setting: int | str | None
    decisions: int | None = field(init=False, default=None)
    seconds: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        setting: Any = self.setting
        if isinstance(setting, str):
            object.__setattr__(self, "seconds", seconds_of("window", setting))
        elif isinstance(setting, (int, np.integer)):
            step = "Give a number of decisions, or a time such as '6h'."
            object.__setattr__(self, "decisions", whole("window", setting, 0, step))
            object.__setattr__(self, "setting", self.decisions)
        elif setting is not None:
            raise InvalidInput(
                "window must be a whole number of decisions, a time in words, or None; "
                f"got {setting!r}. Write 1_000, '6h', or None to close batches yourself."
            )

    def over(self, decisions: int, seconds: float) -> bool:
        """Return whether it is over after so many decisions and so many seconds
        since the batch was sealed. Who answered does not count."""
        if self.decisions is not None:
            return decisions > self.decisions
        return self.seconds is not None and seconds >= self.seconds
