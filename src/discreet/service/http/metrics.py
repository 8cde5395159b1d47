"""Two classes of figures: public ones, and exact ones for administrators only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from discreet.service.logs import UNCOUNTED as SILENT

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
INTERNAL = "discreet_internal_"
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder through which workers share their figures. [server.py]"""
GAUGES = {
    "slots_issued": "Slots handed out of the batches under way",
    "batch": "The newest batch under way",
    "release": "The newest published document",
    "release_due_timestamp_seconds": "When the next release is due, 0 if none waits",
    "epsilon_spent": "Epsilon of everything published, for one unit",
    "epsilon_budget": "Epsilon that one unit may spend",
    "ready": "Whether this worker can decide: 1 or 0",
    "ended": "Whether the plan has no further batch: 1 or 0",
}


class Metrics:
    """Counters of all workers on this machine; gauges are read from the status at each scrape.

    Requests to ``SILENT`` routes reveal how many people answered: neither requests nor errors of
    these are counted in public.
    """

    def __init__(self, *, internal: bool) -> None:
        self._own = CollectorRegistry()
        route, status = "route", "status"
        self._latency = Histogram(
            "discreet_request_seconds",
            "Time to answer, of routes whose number of requests is public",
            [route],
            buckets=BUCKETS,
            registry=self._own,
        )
        self._errors = Counter(
            "discreet_errors", "Errors by route", [route, status], registry=self._own
        )
        self._all = internal and Histogram(
            f"{INTERNAL}request_seconds",
            "Time to answer, of all routes",
            [route, status],
            buckets=BUCKETS,
            registry=self._own,
        )

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        for note in self._notes(route, status):
            note(seconds)

    @cache  # noqa: B019
    def _notes(self, route: str, status: int) -> list[Callable[[float], Any]]:
        """The counters for such a request; cached, since finding them costs more than counting."""
        notes: list[Callable[[float], Any]] = []
        if self._all:
            notes.append(self._all.labels(route, status).observe)
        if route in SILENT:
            return notes
        notes.append(self._latency.labels(route).observe)
        if status >= 400:
            errors = self._errors.labels(route, status)
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
            "ready": float(status["ready"]),
            "ended": float(status["ended"]),
        }
        gauges = [
            GaugeMetricFamily(f"discreet_{name}", text, values[name])
            for name, text in GAUGES.items()
        ]
        return bytes(generate_latest(_Families([*self._counted(internal=False), *gauges])))

    def internal(self) -> bytes:
        """The text of ``/internal/metrics``."""
        return bytes(generate_latest(_Families(self._counted(internal=True))))

    def _counted(self, *, internal: bool) -> list[Metric]:
        """The figures of one class, of this process or of all that share a folder."""
        shared = SHARED in os.environ
        found = MultiProcessCollector(None).collect() if shared else self._own.collect()  # type: ignore[no-untyped-call]
        return [each for each in found if each.name.startswith(INTERNAL) == internal]


class _Families(Collector):
    """Families that are known already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
