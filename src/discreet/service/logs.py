"""Log of one JSON line per event. Events and fields are a fixed list without personal data."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from contextlib import suppress

EVENTS: dict[str, tuple[str, ...]] = {
    "started": ("epoch", "release", "mode"),
    "start failed": ("kind",),
    "stopped": (),
    "ready": (),
    "not ready": ("reasons", "kind"),
    "plan refused": ("keys",),
    "logged in": ("by",),
    "authentication refused": ("count",),
    "key created": ("key", "scopes", "by"),
    "key revoked": ("key", "by"),
    "mode changed": ("mode", "by"),
    "experiment ended": ("by",),
    "experiment created": ("by",),
    "experiment archived": ("by",),
    "served document changed": ("release", "by"),
    "batch burned": ("batch", "epoch", "by"),
    "user erased": ("by",),
    "actions changed": ("added", "removed", "by"),
    "release begun": ("batch", "epoch"),
    "released": ("batch", "epoch", "release", "seconds"),
    "release refused": ("kind",),
    "experiment file differs": ("keys",),
    "experiment file unreadable": (),
    "experiment file as served": (),
    "request failed": ("route", "status", "kind", "request", "count"),
    "upkeep failed": ("kind", "count"),
    "server trouble": ("kind", "count"),
}
"""Every event and the fields that it may have, as docs/logs.md explains them. ``by`` is the
id of an API key or a member, ``key`` that of a key, ``kind`` is the safe name of an error, ``keys``
are names of settings."""
PERIOD = 60.0
"""Seconds in which equal failures are counted and not repeated."""
UNCOUNTED = ("/v1/observe", "/v1/observe:batch", "/v1/activate")
"""Routes whose number of requests reveals how many people answered: their failures are logged, but
not counted."""


class Log:
    """The log of one experiment in this process."""

    def __init__(self, experiment: str) -> None:
        self._experiment = experiment
        self._counting = threading.Lock()
        self._counted: dict[tuple[str, tuple[tuple[str, object], ...]], tuple[float, int]] = {}
        """Beginning of the period and count of equal failures, by their name and fields."""

    def event(self, name: str, **fields: object) -> None:
        unknown = set(fields) - set(EVENTS[name])
        if unknown:
            raise TypeError(f"a log line of {name!r} has no field {sorted(unknown)}")
        if "by" in fields:  # the history has the name of a member, the log only the id
            fields["by"] = str(fields["by"]).partition(" ")[0]
        line = {
            "time": round(time.time(), 3),
            "event": name,
            "experiment": self._experiment,
            "worker": os.getpid(),
            **fields,
        }
        with suppress(OSError):  # a full disk must not make a request fail
            print(json.dumps(line), file=sys.stderr, flush=True)

    def failure(self, name: str, request: str | None = None, **fields: object) -> None:
        """Log the first failure of a kind at once, and equal ones within a period as a count."""
        same, now = (name, tuple(sorted(fields.items()))), time.monotonic()
        with self._counting:
            begun, count = self._counted.get(same, (-PERIOD, 0))
            repeated = now - begun < PERIOD
            self._counted[same] = (begun, count + 1) if repeated else (now, 0)
        if repeated:
            return
        self._write_count(name, count, fields)
        self.event(name, **fields, **({} if request is None else {"request": request}))

    def write_counts(self, *, all: bool = False) -> None:
        """Log the counts of periods that are over; with ``all`` also of those that are not."""
        now = time.monotonic()
        with self._counting:
            over = [same for same, (at, _) in self._counted.items() if all or now - at >= PERIOD]
            counts = [self._counted.pop(same)[1] for same in over]
        for (name, fields), count in zip(over, counts, strict=True):
            self._write_count(name, count, dict(fields))

    def _write_count(self, name: str, count: int, fields: dict[str, object]) -> None:
        counted = {} if fields.get("route") in UNCOUNTED else {"count": count}
        if count:
            self.event(name, **fields, **counted)


class ServerMessages(logging.Handler):
    """Logs the origin of messages of the HTTP server; their text may quote a request."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        kind = f"{record.module}.{record.funcName}"
        if record.exc_info and record.exc_info[0]:
            kind = record.exc_info[0].__name__
        self._log.failure("server trouble", kind=kind)

    def install(self) -> None:
        """Replace the handlers of uvicorn."""
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [], False
            logger.addHandler(self)
