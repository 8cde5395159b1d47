"""Structured logs with a fixed list of fields; no field can hold data of people."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from typing import Any

FIELDS = ("kind", "route", "status", "key", "batch", "release", "epoch", "worker", "seconds",
          "keys")  # fmt: skip
"""The fields that a line may have besides time and event; ``keys`` are names of settings."""


def event(name: str, **fields: Any) -> None:
    """One line of JSON on standard error."""
    unknown = set(fields) - set(FIELDS)
    if unknown:
        raise TypeError(f"a log line has no field {sorted(unknown)}")
    line = {"time": round(time.time(), 3), "event": name, **fields}
    with suppress(OSError):  # a full disk must not make a request fail
        print(json.dumps(line), file=sys.stderr, flush=True)
