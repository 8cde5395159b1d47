"""Two classes of figures: public ones, and exact ones for administrators only."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
SILENT = ("/v1/observe", "/v1/observe:batch", "/v1/activate")
"""Routes whose number of requests reveals how many people answered: neither requests nor errors
are counted in public."""


class Metrics:
    """Counters of this process; gauges are read from the status at each scrape."""

    def __init__(self, *, internal: bool) -> None:
        self._public, self._internal = CollectorRegistry(), CollectorRegistry()
        # Workers share a port and a scrape reaches one of them, so each has its own label.
        self._worker = str(os.getpid())
        worker, route, status = "worker", "route", "status"
        self._latency = Histogram(
            "discreet_request_seconds",
            "Time to answer, of routes whose number of requests is public",
            [worker, route],
            buckets=BUCKETS,
            registry=self._public,
        )
        self._errors = Counter(
            "discreet_errors", "Errors by route", [worker, route, status], registry=self._public
        )
        self._all = internal and Histogram(
            "discreet_internal_request_seconds",
            "Time to answer, of all routes",
            [worker, route, status],
            buckets=BUCKETS,
            registry=self._internal,
        )
        self._gauges = {
            name: Gauge(f"discreet_{name}", text, registry=self._public)
            for name, text in {
                "slots_issued": "Slots handed out of the batches under way",
                "batch": "The newest batch under way",
                "release": "The newest published document",
                "release_due_timestamp_seconds": "When the next release is due, 0 if none waits",
                "epsilon_spent": "Epsilon of everything published, for one unit",
                "epsilon_budget": "Epsilon that one unit may spend",
            }.items()
        }

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        for note in self._notes(route, status):
            note(seconds)

    @cache  # noqa: B019
    def _notes(self, route: str, status: int) -> list[Callable[[float], Any]]:
        """The counters for such a request; cached, since finding them costs more than counting."""
        notes: list[Callable[[float], Any]] = []
        if self._all:
            notes.append(self._all.labels(self._worker, route, status).observe)
        if route in SILENT:
            return notes
        notes.append(self._latency.labels(self._worker, route).observe)
        if status >= 400:
            errors = self._errors.labels(self._worker, route, status)
            notes.append(lambda _: errors.inc())
        return notes

    def public(self, status: dict[str, Any], ledger: dict[str, Any]) -> bytes:
        """The text of ``/metrics``."""
        batches = status["batches"]
        due = [each["due"] for each in batches if each["due"]]
        values = {
            "slots_issued": sum(each["taken"] for each in batches),
            "batch": max((each["batch"] for each in batches), default=0),
            "release": status["newest"],
            "release_due_timestamp_seconds": min(due, default=0.0),
            "epsilon_spent": float(ledger["spent"]["epsilon"]),
            "epsilon_budget": float(ledger["budget"]["epsilon"]),
        }
        for name, value in values.items():
            self._gauges[name].set(value)
        return bytes(generate_latest(self._public))

    def internal(self) -> bytes:
        """The text of ``/internal/metrics``."""
        return bytes(generate_latest(self._internal))
