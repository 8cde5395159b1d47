"""The clock of an embedded database: it never jumps and never runs backwards."""

from __future__ import annotations

import time


class Clock:
    """Seconds since 1970, monotonic inside a process and never before ``seen``.

    Setting the system clock while the service runs does not move a release. After a restart the
    clock continues from the latest moment in the database, or later.
    """

    def __init__(self, seen: float = 0.0) -> None:
        self._offset = max(time.time(), seen) - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset
