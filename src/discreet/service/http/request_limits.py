"""Limits on connections, request heads and the time that a request takes to arrive.

uvicorn has no limit on the size of a request head and none on the time in which a request must
arrive. ``LimitedHttp`` extends its HTTP protocol by these. A connection that exceeds a limit is
answered with an error and closed, before its bytes are kept in memory. The size of a body is
limited by the endpoint that reads it.
"""

from __future__ import annotations

import asyncio
import math
from http import HTTPStatus

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from discreet.service.access import ErrorDetail
from discreet.service.http.bodies import Failure
from discreet.service.http.endpoint import ENCODER, HEADERS, JSON

URL, HEAD, LINES = 8_192, 32_768, 100
"""Maximum bytes of the URL, and maximum bytes and lines of headers and trailers of a request."""
WAITING = 64
"""Maximum number of pipelined requests that wait for the response to an earlier one."""
HEALTH, SPARE, SPARE_SECONDS = (b"healthz", b"readyz"), 16, 2.0
"""Last parts of the paths of health checks, and the number and seconds of connections that are
accepted beyond the limit for one health check each, so that a busy service is not restarted."""
HEAD_SECONDS, BODY_SECONDS = 10.0, 30.0
"""Seconds from the first byte of a request to the end of its headers, and from there to the end of
its body."""
Refusal = tuple[int, str, str]
TOO_MANY: Refusal = (
    *(503, "too_many_connections"),
    "connections must stay below the limit of the service; all of them are in use. Retry, and "
    "close connections that are not used.",
)
LONG_URL: Refusal = (
    *(414, "url_too_long"),
    f"URL must be at most {URL} bytes; this URL is longer. Shorten it.",
)
LARGE_HEAD: Refusal = (
    *(431, "headers_too_large"),
    f"headers must have at most {HEAD} bytes and {LINES} lines; these have more. Send fewer.",
)
LATE_HEAD: Refusal = (
    *(408, "too_slow"),
    f"headers must arrive in {HEAD_SECONDS:g} seconds; they take longer. Retry.",
)
LATE_BODY: Refusal = (
    *(408, "too_slow"),
    f"body must arrive in {BODY_SECONDS:g} seconds; it takes longer. Retry with a smaller body.",
)
NO_HTTP: Refusal = (
    *(400, "not_http"),
    "request must be HTTP; it cannot be parsed. Correct it.",
)
"""Status, code and message of refused connections."""


class LimitedHttp(HttpToolsProtocol):
    """HTTP/1.1 on one connection; ``connections`` of the lifespan state is their maximum number."""

    _refusal: Refusal | None = None
    _timer: asyncio.TimerHandle | None = None
    """The limit on the time of the head or of the body that is being received."""
    _in_head = _in_body = _spare = False
    """``_spare``: the connection exceeds the limit and may send one health check."""
    _unparsed = 0
    """Bytes since the parser last completed a head, a part of a body or a message."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        beyond = len(self.connections) - self.app_state.get("connections", math.inf)
        if beyond > SPARE:
            self._refuse(TOO_MANY)
        elif beyond > 0:
            self._spare = True
            self._timer = self.loop.call_later(SPARE_SECONDS, self._refuse, TOO_MANY)
        else:  # a client that sends nothing is closed like one that sends no second request
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._stop_timer()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # refused: ignore what still arrives
            return
        self._unparsed += len(data)
        super().data_received(data)
        if not (self._in_head or self._in_body or self._unparsed) or self.transport.is_closing():
            return
        if self._in_head and len(self.url) > URL:
            self._refuse(LONG_URL)
        elif self._unparsed > HEAD:
            self._refuse(LARGE_HEAD)
        elif self._timer is None and self._in_head:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)
        elif self._timer is None and self._in_body:
            self._timer = self.loop.call_later(BODY_SECONDS, self._body_is_late)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        if len(self.url) > URL:
            self._abort(LONG_URL)
        self._check_lines()
        if len(self.pipeline) >= WAITING:
            raise HttpParserError
        if self._spare and self.url.partition(b"?")[0].rpartition(b"/")[2] not in HEALTH:
            self._abort(TOO_MANY)
        super().on_headers_complete()
        if self._spare:
            self.cycle.keep_alive = False
        self._unparsed = 0
        self._in_head, self._in_body = False, True
        if self._timer is not None:
            self._stop_timer()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._check_lines()  # trailers are appended to the headers
        self._unparsed = 0
        self._in_body = False
        if self._timer is not None:
            self._stop_timer()
        super().on_message_complete()

    def _check_lines(self) -> None:
        size = 0
        for name, value in self.headers:
            size += len(name) + len(value) + 4  # the colon, a space and the end of the line
        if size > HEAD or len(self.headers) > LINES:
            self._abort(LARGE_HEAD)

    def _head_is_late(self) -> None:
        self._timer = None
        if self._busy():  # reading may be paused: the client waits for this service
            self._timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)
            return
        self._refuse(LATE_HEAD)

    def _body_is_late(self) -> None:
        self._timer = None
        if self.flow.read_paused:  # the client waits for this service
            self._timer = self.loop.call_later(BODY_SECONDS, self._body_is_late)
            return
        self._refuse(LATE_BODY)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _abort(self, refusal: Refusal) -> None:
        """Stop the parser, which is calling; uvicorn then calls ``send_400_response``."""
        self._refusal = refusal
        raise HttpParserError

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        self._refuse(self._refusal or NO_HTTP)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer unless the response to an earlier request is pending; close the connection."""
        if self._may_answer():
            self.transport.write(self._response(refusal))
        if self.cycle is not None:
            self.cycle.disconnected = True
        self._stop_timer()
        self.transport.close()

    def _may_answer(self) -> bool:
        """Return whether the request that is being read is the next to be answered."""
        if self._in_head or self.cycle is None:
            return not self._busy()
        begun = self.cycle.response_complete or self.cycle.response_started
        return not self.pipeline and not begun

    def _response(self, refusal: Refusal) -> bytes:
        status, code, text = refusal
        content = ENCODER.encode(Failure(ErrorDetail(code, text)))
        headers = [
            *self.server_state.default_headers,
            (b"content-type", JSON),
            (b"content-length", str(len(content)).encode()),
            *HEADERS,
            (b"connection", b"close"),
        ]
        head = b"".join(b"%b: %b\r\n" % pair for pair in headers)
        line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
        return b"%b%b\r\n%b" % (line, head, content)
