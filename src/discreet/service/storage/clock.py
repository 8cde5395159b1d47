"""The clock of an embedded database: it never jumps and never runs backwards."""

from __future__ import annotations

import time


class Clock:
    """Seconds since 1970, monotonic inside a process and never before ``seen``.

    A system clock that is set forwards or backwards while the service runs moves no release;
    after a restart time goes on from the latest moment that the database has seen.
    """

    def __init__(self, seen: float = 0.0) -> None:
        self._offset = max(time.time(), seen) - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset
