"""Two classes of figures: public ones, and exact ones for administrators only."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from discreet.errors import ServiceError
from discreet.service.logs import UNCOUNTED as SILENT
from discreet.service.runtime.status import ServiceStatus

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
INTERNAL = "discreet_internal_"
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder through which workers share their figures. [server.py]"""
GAUGES = {
    "slots_issued": "Slots assigned of the batches under way",
    "batch": "The newest batch under way",
    "release": "The newest published document",
    "release_due_timestamp_seconds": "When the next release is due, 0 if none waits",
    "epsilon_spent": "Epsilon of everything published, for one unit",
    "epsilon_budget": "Epsilon that one unit may spend",
    "ready": "Whether this worker can decide: 1 or 0",
    "ended": "Whether the plan has no further batch: 1 or 0",
    "guardrail_alerts": "Guardrails whose alert rule holds, by the published releases",
}


class Families:
    """The counters of all workers on this machine; ``named``: each has the label experiment."""

    def __init__(self, *, named: bool = False) -> None:
        self.registry, self.named = CollectorRegistry(), named
        name, route, status = (["experiment"] if named else []), "route", "status"
        self.latency = Histogram(
            "discreet_request_seconds",
            "Time to answer, of routes whose number of requests is public",
            [*name, route],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.errors = Counter(
            "discreet_errors", "Errors by route", [*name, route, status], registry=self.registry
        )
        self.all = Histogram(
            f"{INTERNAL}request_seconds",
            "Time to answer, of all routes",
            [*name, route, status],
            buckets=BUCKETS,
            registry=self.registry,
        )

    def counted(self, *, internal: bool) -> list[Metric]:
        """Return the figures of one class, of this process or of all that share a folder."""
        shared = SHARED in os.environ
        found = MultiProcessCollector(None).collect() if shared else self.registry.collect()  # type: ignore[no-untyped-call]
        return [each for each in found if each.name.startswith(INTERNAL) == internal]


class Metrics:
    """The counters of one experiment; those of ``SILENT`` routes are not public."""

    def __init__(
        self, *, internal: bool, families: Families | None = None, experiment: str = ""
    ) -> None:
        self._families, self._internal = families or Families(), internal
        self._name: tuple[str, ...] = (experiment,) if self._families.named else ()

    def count(self, route: str, status: int, seconds: float) -> None:
        for note in self.counters(route, status):
            note(seconds)

    @cache  # noqa: B019
    def counters(self, route: str, status: int) -> list[Callable[[float], object]]:
        """Return the counters of a route and status; a search takes longer than a count."""
        notes: list[Callable[[float], object]] = []
        families, name = self._families, self._name
        if self._internal:
            notes.append(families.all.labels(*name, route, status).observe)
        if route in SILENT:
            return notes
        notes.append(families.latency.labels(*name, route).observe)
        if status >= 400:
            errors = families.errors.labels(*name, route, status)
            notes.append(lambda _: errors.inc())
        return notes

    def public(self, status: ServiceStatus, spent: float, budget: float) -> bytes:
        return text_of([*self._own(internal=False), *_gauges({"": values(status, spent, budget)})])

    def internal(self, client: str) -> bytes:
        """Return the text of ``/internal/metrics``, if enabled and asked from this machine."""
        if not self._internal or not on_this_machine(client):
            raise ServiceError(
                "internal metrics must be enabled and read from the machine that serves. Set "
                "internal_metrics = true, and send the request from there.",
                status=404,
                code="not_found",
            )
        return text_of(self._own(internal=True))

    def _own(self, *, internal: bool) -> list[Metric]:
        found = self._families.counted(internal=internal)
        for each in found if self._name else ():  # the families are those of all experiments
            each.samples = [s for s in each.samples if s.labels.get("experiment") == self._name[0]]
        return found


def on_this_machine(client: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(client).is_loopback
    return False


def values(status: ServiceStatus, spent: float, budget: float) -> list[float]:
    """Return the values of ``GAUGES``, in their order; ``spent`` and ``budget`` are epsilons."""
    batches = status["batches"]
    due = [each["due"] for each in batches if each["due"]]
    return [
        sum(each["taken"] for each in batches),
        max((each["batch"] for each in batches), default=0),
        status["newest"],
        min(due, default=0.0),
        spent,
        budget,
        float(status["ready"]),
        float(status["ended"]),
        len(status["alerts"]),
    ]


def of_all(families: Families, rows: dict[str, list[float]]) -> bytes:
    """Return the text of ``/metrics`` of a server: the gauges of every experiment, by name."""
    return text_of([*families.counted(internal=False), *_gauges(rows)])


def _gauges(rows: dict[str, list[float]]) -> list[Metric]:
    """Return the gauges of experiments by name; that of a single one has none."""
    labels = [] if "" in rows else ["experiment"]
    gauges: list[Metric] = []
    for place, (name, text) in enumerate(GAUGES.items()):
        gauge = GaugeMetricFamily(f"discreet_{name}", text, labels=labels)
        for experiment, row in rows.items():
            gauge.add_metric([experiment] if labels else [], row[place])
        gauges.append(gauge)
    return gauges


def text_of(families: Iterable[Metric]) -> bytes:
    class Known(Collector):
        def collect(self) -> Iterable[Metric]:
            return families

    return bytes(generate_latest(Known()))
