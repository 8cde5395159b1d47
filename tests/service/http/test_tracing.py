"""Spans tell what is public: method, route, status. Who answered has none."""

import pytest

from discreet.service.http.endpoint import COLLECTOR, Traces, traces_of
from discreet.service.logs import UNCOUNTED

CALLER = {b"traceparent": b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


@pytest.fixture
def spans():
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    return Traces(provider), kept.get_finished_spans


def test_a_request_is_a_span_of_its_callers_trace(spans):
    traces, found = spans
    traces.note("POST", "/v1/decide", 200, 0.25, CALLER)
    traces.note("GET", "/v1/status", 503, 0.1, {b"traceparent": b"nonsense"})
    first, other = found()
    assert first.name == "POST /v1/decide"
    assert f"{first.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{first.parent.span_id:016x}" == "b7ad6b7169203331"
    assert first.end_time - first.start_time == 250_000_000
    assert set(first.attributes) == {
        "http.request.method",
        "http.route",
        "http.response.status_code",
    }
    assert (other.parent, other.attributes["http.response.status_code"]) == (None, 503)


@pytest.mark.parametrize("route", UNCOUNTED)
def test_answers_have_no_span(spans, route):
    traces, found = spans
    traces.note("POST", route, 200, 0.1, CALLER)
    assert found() == ()


def test_without_a_collector_there_is_nothing(monkeypatch):
    for name in COLLECTOR:
        monkeypatch.delenv(name, raising=False)
    assert traces_of("test") is None
