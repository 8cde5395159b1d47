"""Spans of OpenTelemetry, where its library is installed and a collector is named."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from discreet.service.logs import UNCOUNTED

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

COLLECTOR = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OpenTelemetry's own variables: without one of them nothing is sent."""


class Traces:
    """One span per answered request: method, route and status, and the caller's trace.

    Privacy: requests to ``UNCOUNTED`` routes have no span: their number and their times tell who
    answered. [docs/privacy/service.md, "What is stored, and for how long"]
    """

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer, self._kind = provider.get_tracer("discreet"), SpanKind.SERVER
        self._caller = TraceContextTextMapPropagator()

    def note(
        self, method: str, route: str, status: int, seconds: float, headers: Mapping[bytes, bytes]
    ) -> None:
        """Record a request that took so many seconds until now."""
        if route in UNCOUNTED:
            return
        named = headers.get(b"traceparent", b"").decode("latin-1")
        end = time.time_ns()
        span = self._tracer.start_span(
            f"{method} {route}",
            context=self._caller.extract({"traceparent": named}) if named else None,
            kind=self._kind,
            start_time=end - round(seconds * 1e9),
            attributes={
                "http.request.method": method,
                "http.route": route,
                "http.response.status_code": status,
            },
        )
        span.end(end)


def traces_of(experiment: str) -> Traces | None:
    """Spans of this process, sent in the background; None if no collector is configured."""
    if not any(os.environ.get(name) for name in COLLECTOR):
        return None
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = {"service.name": "discreet", "discreet.experiment": experiment}
    provider = TracerProvider(resource=Resource.create(about))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Traces(provider)
