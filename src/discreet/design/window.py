"""Public clocks of a batch: when it closes to slots, and how long its losses are awaited.

Times are written as "90s" or "7d". Nothing here asks who answered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.validate import whole

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

    Privacy: slots taken are counted whether or not anybody answers.
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
