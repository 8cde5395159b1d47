"""Checks of where a server listens, its path prefix, and which origins may call it."""

from __future__ import annotations

import re
from typing import Any

from discreet.errors import InvalidInput
from discreet.validate import whole

_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_ORIGIN = re.compile(r"https?://[^/\s]+")


def port_number(port: Any) -> int:
    """A port that a server can listen on; 0 stands for any that is free."""
    if whole("port", port, 0) > 65_535:
        raise InvalidInput(f"port must be at most 65535; got {port}. Choose one above 1023.")
    return int(port)


def check_origins(origins: Any) -> None:
    """Refuse what is not a list of origins."""
    known = isinstance(origins, tuple) and all(isinstance(each, str) for each in origins)
    if not known or not all(each == "*" or _ORIGIN.fullmatch(each) for each in origins):
        raise InvalidInput(
            f"cors_origins must be a list of origins; got {origins!r}. "
            "Write cors_origins = ['https://shop.example'], without a path."
        )


def check_prefix(prefix: Any) -> None:
    """Refuse what cannot come before a path."""
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise InvalidInput(
            f"prefix must be empty or a path such as '/bandit'; got {prefix!r}. Begin it "
            "with a slash, and leave out the one at the end."
        )


def check_connections(count: Any) -> None:
    """Refuse a number of connections that nobody could use."""
    whole("connections", count, 1, "Connections that a worker keeps open at once.")
