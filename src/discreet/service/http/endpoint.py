"""Routes as applications: authentication, limits, parsing and errors around each handler."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from discreet.errors import ServiceError
from discreet.service.access import ANSWER, UNLIMITED, Access, problem_of
from discreet.service.http.bodies import Failure
from discreet.service.http.handlers import Call, Raw
from discreet.service.http.routes import PUBLIC, Route
from discreet.service.http.tracing import Traces
from discreet.service.metrics import Metrics
from discreet.service.runtime.requests import InvalidField
from discreet.service.storage import api_keys
from discreet.service.storage.database import safe_name

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
        self,
        route: Route,
        access: Access,
        metrics: Metrics,
        traces: Traces | None = None,
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
        raise ServiceError(
            "Content-Type must be application/json; this request has another. Send JSON.",
            status=415,
            code="not_json",
        )


async def _content(receive: Receive, limit: int) -> bytes:
    """Return the body; raise ``ServiceError`` if it exceeds the limit or is incomplete."""
    content = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ServiceError("request must be complete; it was cut off. Repeat it.", status=400)
        content += message.get("body", b"")
        if len(content) > limit:
            raise ServiceError(
                f"body must be at most {limit} bytes; this body is larger. Send less at once.",
                status=413,
                code="too_large",
            )
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
    """Return the parsed body; raise ``Invalid`` with the part that is wrong."""
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise InvalidField(
            f"body must be as the OpenAPI document says: {problem}. "
            f"{_advice(decoder.type, problem) or 'Correct it.'}",
            place.strip(".`") or None,
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidField(
            "body must be JSON in UTF-8; it cannot be parsed. Check it.", None
        ) from None
    except RecursionError:
        raise InvalidField(
            "body must be nearly flat; it is nested deeply. Flatten it.", None
        ) from None


def _advice(shape: Any, problem: str) -> str | None:
    """Return the next step after a loss was sent instead of a reward, or the reverse, or a user was
    sent with it."""
    words = {"loss": "reward", "reward": "loss"}
    sent = problem.removeprefix("Object contains unknown field").strip(" `")
    if shape.__name__ not in ("Observe", "ObserveBatch"):
        return None
    if sent == "user":
        return "Name the user when you ask for the decision or the ticket, and leave it out here."
    if sent not in words:
        return None
    return f"This experiment expects the {words[sent]} of a decision: send {words[sent]!r} instead."
