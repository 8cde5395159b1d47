"""How many requests a key may make: a bucket that fills at a fixed rate, whatever they contain."""

from __future__ import annotations

import time

from discreet.errors import ServiceError


class RateLimit:
    """At most ``rate`` requests a second and key on average, and as many at once; 0 is no limit."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> None:
        """One request, or 429."""
        if not self._rate:
            return
        now = time.monotonic()
        left, before = self._left.get(key, (float(self._rate), now))
        left = min(float(self._rate), left + (now - before) * self._rate)
        if left < 1.0:
            raise ServiceError(
                f"requests must stay below {self._rate} a second; there are more. Send fewer.",
                status=429,
                code="too_many_requests",
            )
        self._left[key] = (left - 1.0, now)
