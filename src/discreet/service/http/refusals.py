"""Callers without a valid key: counted in the log, and answered seldom if they go on."""

from __future__ import annotations

import os
from collections.abc import Mapping

from discreet.errors import ServiceError
from discreet.service.http.rate_limit import OTHER, RateLimit
from discreet.service.logs import Log

PER_SECOND = 50
"""Refused requests per second of one address that hear why; whoever has a valid key is not
concerned, also behind the same address."""


class Refusals:
    """Counts refused authentication, by address in memory and without it in the log."""

    def __init__(self, log: Log) -> None:
        self._log, self._rate = log, RateLimit(PER_SECOND)
        self._proxies = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1").split(",")

    def count(self, error: ServiceError, headers: Mapping[bytes, bytes], peer: str) -> ServiceError:
        """The error to answer with: the given one, or 429 if this address was refused too often."""
        self._log.failure("authentication refused")
        try:
            self._rate.take(OTHER, self._address(headers, peer))
        except ServiceError:
            return ServiceError(
                f"refused keys must stay below {PER_SECOND} per second and address; this address "
                "sends more. Wait, and use a valid key.",
                status=429,
                code="too_many_requests",
            )
        return error

    def _address(self, headers: Mapping[bytes, bytes], peer: str) -> str:
        """The address that a proxy of ours names, or that of the connection."""
        if peer in self._proxies or "*" in self._proxies:
            named = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")[-1].strip()
            return named[:64] or peer
        return peer
