"""uvicorn's HTTP protocol with bounded request heads, and a shortcut for small requests.

A head (request line and headers) that is too long or too slow is refused and its connection
closed, before the head is kept in memory. The same happens if too many requests wait. Neither
uvicorn nor its parser has such limits.

The shortcut uses no ASGI and one write per answer. A request that is large, chunked, pipelined, or
for any other path goes through uvicorn. On the shortcut a connection holds an ``Exchange`` in place
of uvicorn's own cycle, with the attributes that uvicorn reads when it closes a connection.
"""

from __future__ import annotations

import asyncio
import math
from functools import lru_cache
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from discreet.errors import ServiceError
from discreet.service.http.bodies import Failure
from discreet.service.http.endpoint import ENCODER, HEADERS, Endpoint, Headers, HttpAnswer
from discreet.service.http.error_responses import problem_of
from discreet.service.http.repeated_head import RepeatedHead, learned

SHORT = 65_536
"""Bytes of a body up to which uvicorn reads on without being asked."""
URL, HEAD, LINES = 8_192, 32_768, 100
"""The longest URL, and the most bytes and lines of headers and trailers of one request."""
WAITING = 64
"""Requests that may wait on one connection for the answer to an earlier one."""
HEALTH, SPARE, SPARE_SECONDS = (b"healthz", b"readyz"), 16, 2.0
"""Beyond the limit of connections so many more may ask these, once and within so many seconds: a
service that is busy is alive, and who watches it must not restart it."""
HEAD_SECONDS, BODY_SECONDS = 10.0, 30.0
"""From the first byte of a request to the end of its headers, and from there to its last byte."""


class Protocol(HttpToolsProtocol):
    """``direct`` of the application's state: endpoints by method and path."""

    _refusal: ServiceError | None = None
    _head_timer: asyncio.TimerHandle | None = None
    _body_timer: asyncio.TimerHandle | None = None
    _in_head = _in_body = False
    _bytes = _lines = 0
    """Bytes and lines of the complete headers of this request."""
    _unheard = 0
    """Bytes since the parser last reported anything but a URL: the parser may be keeping them."""
    _repeated: RepeatedHead | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _answered_at = 0.0
    _spare = False
    """Whether this connection is beyond the limit."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        beyond = len(self.connections) - self.app_state.get("connections", math.inf)
        if beyond > SPARE:
            self._refuse(_too_many())
            return
        if beyond > 0:
            self._spare = True
            self._head_timer = self.loop.call_later(SPARE_SECONDS, self._refuse, _too_many())
            return
        # A client that connects and sends nothing gets no more time than between two requests.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._end_of_head()
        self._end_of_body()
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # refused: drop what still arrives
            return
        between = not (self._in_head or self._in_body or self._unheard or self._busy())
        if between and self._again(data):
            return
        self._unheard += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if between and isinstance(self.cycle, Exchange) and self.cycle.begun:
            self._repeated = self.cycle.repeated(data)
        if self._unheard > HEAD:
            self._refuse(_too_large())
        elif self._in_head and self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)
        elif self._in_body and self._body_timer is None:
            self._body_timer = self.loop.call_later(BODY_SECONDS, self._body_is_late)

    def _again(self, data: bytes) -> bool:
        """Answer a request whose head is that of the last one; False if it is not."""
        known = self._repeated
        body = None if known is None else known.body(data)
        if known is None or body is None:
            return False
        endpoint = self._direct(known.route, len(body))
        if endpoint is None:
            return False
        self._unset_keepalive_if_required()
        exchange = Exchange(self, endpoint, known.route, known.headers, True, known.old)
        exchange.body, exchange.more_body = body, False
        self.cycle = cast(RequestResponseCycle, exchange)
        exchange.begin()
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._bytes, self._lines = True, 0, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > URL:
            self._stop(
                ServiceError(
                    f"URL must be at most {URL} bytes; this URL is longer. Shorten it.",
                    status=414,
                    code="url_too_long",
                )
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        self._unheard = 0
        self._lines += 1
        self._bytes += len(name) + len(value) + 4  # the colon, a blank and the end of the line
        if self._bytes > HEAD or self._lines > LINES:
            self._stop(_too_large())
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._unheard = 0
        super().on_body(body)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self._busy():  # we may have stopped reading: the client waits for us
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)
            return
        self._refuse(
            ServiceError(
                f"headers must arrive in {HEAD_SECONDS:g} seconds; they take longer. Retry.",
                status=408,
                code="too_slow",
            )
        )

    def _body_is_late(self) -> None:
        self._body_timer = None
        if self.flow.read_paused:  # we have stopped reading: the client waits for us
            self._body_timer = self.loop.call_later(BODY_SECONDS, self._body_is_late)
            return
        self._refuse(
            ServiceError(
                f"body must arrive in {BODY_SECONDS:g} seconds; it takes longer. Retry, with less "
                "at once.",
                status=408,
                code="too_slow",
            )
        )

    def _end_of_body(self) -> None:
        self._in_body = False
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _end_of_head(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _busy(self) -> bool:
        """Whether an answer is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def _stop(self, refusal: ServiceError) -> None:
        """Called inside the parser: stop it, so that uvicorn calls ``send_400_response``."""
        self._refusal = refusal
        raise HttpParserError

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        invalid = ServiceError(
            "request must be HTTP; it cannot be parsed. Correct it.", status=400, code="not_http"
        )
        self._refuse(self._refusal or invalid)

    def _refuse(self, refusal: ServiceError) -> None:
        """Answer if no earlier request still waits for its answer, and close the connection."""
        if self._may_answer():
            status, problem = problem_of(refusal, ())
            dated = tuple(self.server_state.default_headers)
            answer = HttpAnswer(status, ENCODER.encode(Failure(problem)))
            self.transport.write(_bytes_of(answer, (*dated, (b"connection", b"close"))))
        if self.cycle is not None:
            self.cycle.disconnected = True
        self._end_of_head()
        self._end_of_body()
        self.transport.close()

    def _may_answer(self) -> bool:
        """Whether the request being read is next to be answered, and has no answer yet."""
        if self._in_head or self.cycle is None:
            return not self._busy()
        begun = self.cycle.response_complete or getattr(self.cycle, "response_started", False)
        return not self.pipeline and not begun

    def on_headers_complete(self) -> None:
        self._unheard = 0
        if len(self.pipeline) >= WAITING:  # uvicorn itself sets no limit
            raise HttpParserError
        if self._spare and self.url.partition(b"?")[0].rpartition(b"/")[2] not in HEALTH:
            self._stop(_too_many())
        idle = self.cycle is None or self.cycle.response_complete
        exchange = self._exchange() if idle and not self.expect_100_continue else None
        if exchange is None:
            super().on_headers_complete()
        else:
            self.cycle = cast(RequestResponseCycle, exchange)
        if self._spare:
            self.cycle.keep_alive = False
        self._end_of_head()
        self._in_body = True

    def _exchange(self) -> Exchange | None:
        parser, headers = self.parser, dict(self.headers)
        route = (parser.get_method(), self.url)
        endpoint = self._direct(route, int(headers.get(b"content-length", SHORT + 1)))
        if endpoint is None or parser.should_upgrade():
            return None
        old = parser.get_http_version() == "1.0"
        return Exchange(self, endpoint, route, headers, bool(parser.should_keep_alive()), old)

    def _direct(self, route: tuple[bytes, bytes], length: int) -> Endpoint | None:
        """The endpoint of a request that takes the shortcut."""
        direct: dict[tuple[bytes, bytes], Endpoint] = self.app_state.get("direct", {})
        endpoint = direct.get(route)
        short = endpoint is not None and length <= min(SHORT, endpoint.limit)
        return endpoint if short else None

    def answered(self) -> None:
        """uvicorn's ``on_response_complete`` for the shortcut, with one timer per connection
        instead of one per request."""
        if self.pipeline or self.flow.read_paused or self.transport.is_closing():
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        self._answered_at = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._is_idle)

    def _is_idle(self) -> None:
        self._idle_timer = None
        if self._busy() or self._in_head or self._in_body:  # the next answer sets it again
            return
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._is_idle)
        else:
            self.timeout_keep_alive_handler()

    def on_message_complete(self) -> None:
        self._unheard = 0
        self._end_of_body()
        super().on_message_complete()
        if isinstance(self.cycle, Exchange) and not self.cycle.begun:
            self.cycle.begin()


def _too_many() -> ServiceError:
    return ServiceError(
        "connections must stay below the limit of the service; there are as many as it keeps. "
        "Retry, and close those that you do not use.",
        status=503,
        code="too_many_connections",
    )


def _too_large() -> ServiceError:
    return ServiceError(
        f"headers must have at most {HEAD} bytes and {LINES} lines; these have more. Send fewer.",
        status=431,
        code="headers_too_large",
    )


class _Unheard:
    """Stands in for uvicorn's event "more body": here the whole body is awaited."""

    def set(self) -> None:
        """Nobody waits."""


class Exchange:
    """One request and its answer."""

    message_event = _Unheard()

    def __init__(
        self,
        protocol: Protocol,
        endpoint: Endpoint,
        route: tuple[bytes, bytes],
        headers: dict[bytes, bytes],
        keep_alive: bool,
        old: bool,
    ) -> None:
        self._protocol, self._endpoint, self._headers = protocol, endpoint, headers
        self._route, self.keep_alive, self._old = route, keep_alive, old
        self.body: bytes | bytearray = bytearray()
        self.more_body = True
        self.response_complete = self.disconnected = self.begun = False

    def repeated(self, data: bytes) -> RepeatedHead | None:
        """The head of this request, to compare the next with, if the data are this request."""
        if not self.keep_alive:
            return None
        return learned(data, len(self.body), self._route, self._headers, old=self._old)

    def begin(self) -> None:
        """Start the answer; the request is complete."""
        self.begun = True
        self._task: asyncio.Task[Any] = self._protocol.loop.create_task(self._run())
        self._protocol.tasks.add(self._task)

    async def _read(self) -> bytes:
        return bytes(self.body)

    def _persistence(self) -> Headers:
        """HTTP/1.1 stays connected unless told otherwise, HTTP/1.0 only if told so."""
        if not self.keep_alive:
            return ((b"connection", b"close"),)
        return ((b"connection", b"keep-alive"),) if self._old else ()

    async def _run(self) -> None:
        protocol = self._protocol
        try:
            peer = protocol.client[0] if protocol.client else ""
            answer = await self._endpoint.answer(self._headers, self._read, peer)
            if protocol.flow.write_paused:
                await protocol.flow.drain()
            self.response_complete = True
            if not self.disconnected:
                dated = tuple(protocol.server_state.default_headers)
                more = _cross_origin(protocol.app_state, self._headers) + self._persistence()
                protocol.transport.write(_bytes_of(answer, dated + more))
        except BaseException:
            protocol.transport.close()
            raise
        finally:
            protocol.tasks.discard(self._task)
        if not self.keep_alive:
            protocol.transport.close()
        protocol.answered()


def _cross_origin(state: dict[str, Any], headers: dict[bytes, bytes]) -> Headers:
    """What a browser must read before it shows the answer to a page of another origin; the same
    words as on the way through ASGI."""
    allowed, origin = state.get("origins"), headers.get(b"origin")
    if not allowed or origin is None:
        return ()
    if b"*" in allowed:
        return ((b"access-control-allow-origin", b"*"),)
    named = ((b"access-control-allow-origin", origin),) if origin in allowed else ()
    return (*named, (b"vary", b"Origin"))


def _bytes_of(answer: HttpAnswer, more: Headers) -> bytes:
    head = _head(answer.status, answer.kind, answer.extra + more)
    # Outside the head, since no two requests share it.
    request = b"x-request-id: %b\r\n" % answer.request if answer.request else b""
    return b"%b%d\r\n%b\r\n%b" % (head, len(answer.content), request, answer.content)


@lru_cache(maxsize=64)
def _head(status: int, kind: bytes, headers: Headers) -> bytes:
    """Everything before the length; answers within one second share it."""
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    lines = [b"%b: %b\r\n" % pair for pair in ((b"content-type", kind), *HEADERS, *headers)]
    return b"".join([line, *lines, b"content-length: "])
