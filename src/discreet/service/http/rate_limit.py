"""Limits the requests of a key with buckets that refill at a fixed rate."""

from __future__ import annotations

import time

from discreet.errors import ServiceError

# Privacy: whether somebody answers is protected, and whether a decision gets a slot is public. So
# answers never empty a bucket of decisions. [docs/privacy/service.md, "Slots do not move"]
DECIDE, TICKET, ANSWER, OTHER, UNLIMITED = "decide", "ticket", "answer", "other", ""
"""The bucket that a route takes from; health checks have no limit."""

REMEMBERED = 100_000
"""Callers that are counted at once."""


class RateLimit:
    """At most ``rate`` requests per second, key and bucket on average, and as many at once.

    A rate of 0 is no limit.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._left: dict[tuple[str, str], tuple[float, float]] = {}

    def take(self, bucket: str, key: str, own: int | None = None) -> None:
        """Count one request, or refuse it with 429; ``own`` is the rate of this key."""
        rate = own or self._rate
        if not rate or bucket == UNLIMITED:
            return
        now = time.monotonic()
        left, before = self._left.get((bucket, key), (float(rate), now))
        left = min(float(rate), left + (now - before) * rate)
        if left < 1.0:
            raise ServiceError(
                f"requests must stay below {rate} per second; this key sends more. Wait.",
                status=429,
                code="too_many_requests",
            )
        if len(self._left) >= REMEMBERED:  # addresses, which anybody may invent
            self._left.clear()
        self._left[bucket, key] = (left - 1.0, now)
