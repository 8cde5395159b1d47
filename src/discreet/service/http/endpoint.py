"""Routes as applications: authentication, limits, parsing, errors and traces of each handler."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from discreet.errors import ServiceError
from discreet.service.access import ANSWER, UNLIMITED, Access, problem_of
from discreet.service.http.bodies import Failure
from discreet.service.http.handlers import Call, Raw
from discreet.service.http.routes import PUBLIC, Route
from discreet.service.logs import UNCOUNTED
from discreet.service.metrics import Metrics
from discreet.service.runtime.requests import InvalidField
from discreet.service.storage import api_keys
from discreet.service.storage.database import safe_name

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

Headers = tuple[tuple[bytes, bytes], ...]
ENCODER = msgspec.json.Encoder()
HEADERS: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
REQUEST, JSON = b"x-request-id", b"application/json"
_ID = re.compile(rb"[0-9A-Fa-f-]{16,64}")
MOST_CALLERS = 1000
"""Accepted headers that are remembered at once."""
_EXTRA: dict[int, Headers] = {
    401: ((b"www-authenticate", b"Bearer"),),
    429: ((b"retry-after", b"1"),),
    503: ((b"retry-after", b"1"),),
}


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
        named, end = headers.get(b"traceparent", b"").decode("latin-1"), time.time_ns()
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


class HttpAnswer(NamedTuple):
    """A whole answer before it is sent; ``HEADERS`` are added to each."""

    status: int
    content: bytes
    kind: bytes = JSON
    extra: Headers = ()
    request: bytes = b""
    """The id of the request, if it has one; it is sent back and logged with failures."""


class Endpoint:
    """One route; ``answer`` does everything except reading from and writing to a connection."""

    def __init__(
        self, route: Route, access: Access, metrics: Metrics, traces: Traces | None = None
    ) -> None:
        self._route, self._access, self._metrics, self._traces = route, access, metrics, traces
        self._rate = access.rate
        self._decoder = None if route.body is None else msgspec.json.Decoder(route.body)
        self._open = route.scopes == PUBLIC or (route.releases and access.public_releases)
        self.takes_body = route.body is not None
        self.limit = access.body_limit
        self._keys: dict[str, api_keys.Key] = {}
        self._callers: dict[bytes, api_keys.Key] = {}
        self._counters: dict[int, list[Callable[[float], object]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope["client"]
        status, content, kind, extra, request = await self.answer(
            dict(scope["headers"]),
            receive,
            client[0] if client else "",
            scope.get("path_params"),
            scope["query_string"],
        )
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(content)), *HEADERS]
        headers += extra
        if request:
            headers.append((REQUEST, request))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def answer(
        self,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        client: str = "",
        path: Mapping[str, str] | None = None,
        query: bytes = b"",
    ) -> HttpAnswer:
        """Return the response to a request, also if anything fails."""
        began = time.perf_counter()
        await self._access.wake()
        try:
            call = Call(self._admitted(headers), None, path or {}, headers, client, query)
            if self._decoder is not None:
                _check_kind(headers)
                call.body = parse(self._decoder, await _content(receive, self.limit))
            made = await self._route.handler(call)
            if isinstance(made, Raw):
                answer = HttpAnswer(200, made.content, made.kind.encode(), made.headers)
            else:
                answer = HttpAnswer(200, ENCODER.encode(made))
        except Exception as error:
            answer = self._failure(error, headers, client)
        if REQUEST in headers and not answer.request:
            answer = answer._replace(request=_request_id(headers))
        seconds = time.perf_counter() - began
        counters = self._counters.get(answer.status)
        if counters is None:
            counters = self._metrics.counters(self._route.path, answer.status)
            self._counters[answer.status] = counters
        for count in counters:
            count(seconds)
        if self._traces is not None:
            route = self._route
            self._traces.note(route.method, route.path, answer.status, seconds, headers)
        return answer

    def _admitted(self, headers: Mapping[bytes, bytes]) -> str:
        """Return the id of the caller; raise ``ServiceError`` if the key is refused."""
        caller, own = "public", None
        if not self._open:
            key = self._key(headers.get(b"authorization", b""))
            caller, own = key.id, key.rate
            if self._route.bucket != ANSWER:
                self._access.note_use(caller)
        self._rate.take(self._route.bucket, caller, own)
        return caller

    def _key(self, given: bytes) -> api_keys.Key:
        """Return the key of an Authorization header; accepted headers are cached until the keys
        are read again, twice a second."""
        keys = self._access.keys
        if keys is not self._keys or len(self._callers) > MOST_CALLERS:
            self._keys, self._callers = keys, {}
        key = self._callers.get(given)
        if key is None:
            key = api_keys.bearer(keys, given.decode("latin-1"))
            api_keys.permit(key, self._route.scopes)
            self._callers[given] = key
        return key

    def _failure(self, error: Exception, headers: Mapping[bytes, bytes], client: str) -> HttpAnswer:
        access, request = self._access, b""
        if isinstance(error, ServiceError) and error.status == 401:
            error = access.refusals.count(error, headers, client)
        status, problem = problem_of(error, access.storage_errors)
        if status >= 500 and self._route.bucket != UNLIMITED:
            request = _request_id(headers) or secrets.token_hex(16).encode()
            access.log.failure(
                "request failed",
                request=request.decode(),
                kind=safe_name(error),
                route=self._route.path,
                status=status,
            )
        if problem.code == "internal" and request:
            name = request.decode()
            problem.message = (
                f"Internal error. The operator finds details in the log under request id {name}."
            )
        content, extra = ENCODER.encode(Failure(problem)), _EXTRA.get(status, ())
        return HttpAnswer(status, content, extra=extra, request=request)


def _request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the id that the caller or a proxy sent, if it has the form of an id: it is logged."""
    given = headers.get(REQUEST, b"")
    return given if _ID.fullmatch(given) else b""


def _check_kind(headers: Mapping[bytes, bytes]) -> None:
    given = headers.get(b"content-type", JSON)
    if given != JSON and given.split(b";")[0].strip().lower() != JSON:
        text = "Content-Type must be application/json; this request has another. Send JSON."
        raise ServiceError(text, status=415, code="not_json")


async def _content(receive: Receive, limit: int) -> bytes:
    """Return the body; raise ``ServiceError`` if it exceeds the limit or is incomplete."""
    content = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ServiceError("request must be complete; it was cut off. Repeat it.", status=400)
        content += message.get("body", b"")
        if len(content) > limit:
            text = f"body must be at most {limit} bytes; this body is larger. Send less at once."
            raise ServiceError(text, status=413, code="too_large")
        if not message.get("more_body"):
            return bytes(content)


class ExperimentApp:
    """ASGI application of one experiment, or of the server itself.

    Paths without a parameter whose endpoint reads a body go straight to that endpoint, which
    handles its own errors; all others go through Starlette.
    """

    def __init__(
        self, app: Starlette, endpoints: dict[tuple[str, str], Endpoint], prefix: str = ""
    ) -> None:
        self.app, self.routes, self._prefix = app, app.routes, prefix
        self._direct = {place: each for place, each in endpoints.items() if each.takes_body}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self._prefix and scope["path"].startswith(f"{self._prefix}/"):
            scope = {**scope, "path": scope["path"].removeprefix(self._prefix)}
        found = self._direct.get((scope["method"], scope["path"]))
        if found is None:  # pages also ask for the sender itself, whom a forwarded header replaces
            scope = {**scope, "peer": scope["client"]}
        await (found or self.app)(scope, receive, send)


def parse(decoder: msgspec.json.Decoder[Any], content: bytes) -> Any:
    """Return the parsed body; raise ``InvalidField`` with the part that is wrong."""
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        named = re.search("field `(.+)`$", problem)  # missing, or unknown
        parts = [place.strip(".`"), named[1] if named else ""]
        raise InvalidField(
            f"body must be as the OpenAPI document says: {problem}. "
            f"{_advice(decoder.type, problem, parts[-1] or parts[0])}",
            ".".join(filter(None, parts)) or None,
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = "body must be JSON in UTF-8; it cannot be parsed. Check it."
    except RecursionError:
        text = "body must be nearly flat; it is nested deeply. Flatten it."
    raise InvalidField(text, None)


def _advice(shape: Any, problem: str, field: str) -> str:
    """Return the next step after a mistake that a client of another plan makes."""
    other, name = {"loss": "reward", "reward": "loss"}, shape.__name__
    unknown = problem.startswith("Object contains unknown field")
    if field == "user" and name in ("Decide", "Ticket"):
        if unknown:
            return "The unit of privacy is a decision: leave user out, and no ids are kept."
        return "Add the id of the person, always the same text for the same person."
    if unknown and name in ("Observe", "ObserveBatch"):
        if field == "user":
            return "Name the user when you ask for the decision or the ticket."
        if field in other:
            return f"This experiment expects a {other[field]}: send {other[field]!r} instead."
    return "Correct it."
