"""uvicorn's HTTP protocol with a short way for small requests: no ASGI, and one write an answer.

A request that is large, chunked, pipelined, or for any other path takes uvicorn's own way. On the
short way its connection holds an ``Exchange`` where uvicorn would hold a cycle of its own, with
what uvicorn asks of one when the connection is lost or the server stops.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from discreet.service.endpoint import HEADERS, Answer, Endpoint, Headers

SHORT = 65_536
"""Bytes of a body up to which uvicorn reads on without being asked."""


class Protocol(HttpToolsProtocol):
    """``direct`` of the application's state: endpoints by method and path."""

    def on_headers_complete(self) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        endpoint = self._endpoint() if idle and not self.expect_100_continue else None
        if endpoint is None:
            super().on_headers_complete()
        else:
            self.cycle = cast(RequestResponseCycle, Exchange(self, *endpoint))

    def _endpoint(self) -> tuple[Endpoint, dict[bytes, bytes]] | None:
        direct: dict[tuple[bytes, bytes], Endpoint] = self.app_state.get("direct", {})
        endpoint = direct.get((self.parser.get_method(), self.url))
        if endpoint is None or self.parser.should_upgrade():
            return None
        headers = dict(self.headers)
        length = int(headers.get(b"content-length", SHORT + 1))
        return (endpoint, headers) if length <= min(SHORT, endpoint.limit) else None

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if isinstance(self.cycle, Exchange) and not self.cycle.begun:
            self.cycle.begin()


class _Unheard:
    """The event by which uvicorn tells of more body: here the whole body is awaited."""

    def set(self) -> None:
        """Nobody waits."""


class Exchange:
    """One request and its answer."""

    message_event = _Unheard()

    def __init__(self, protocol: Protocol, endpoint: Endpoint, headers: dict[bytes, bytes]) -> None:
        self._protocol, self._endpoint, self._headers = protocol, endpoint, headers
        self.keep_alive = bool(protocol.parser.should_keep_alive())
        self.body, self.more_body = bytearray(), True
        self.response_complete = self.disconnected = self.begun = False

    def begin(self) -> None:
        """Answer, now that the request is whole."""
        self.begun = True
        self._task: asyncio.Task[Any] = self._protocol.loop.create_task(self._run())
        self._protocol.tasks.add(self._task)

    async def _read(self) -> bytes:
        return bytes(self.body)

    async def _run(self) -> None:
        protocol = self._protocol
        try:
            answer = await self._endpoint.answer(self._headers, self._read)
            if protocol.flow.write_paused:
                await protocol.flow.drain()
            self.response_complete = True
            if not self.disconnected:
                dated = tuple(protocol.server_state.default_headers)
                closing = () if self.keep_alive else ((b"connection", b"close"),)
                protocol.transport.write(_bytes_of(answer, dated + closing))
        except BaseException:
            protocol.transport.close()
            raise
        finally:
            protocol.tasks.discard(self._task)
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()


def _bytes_of(answer: Answer, more: Headers) -> bytes:
    head = _head(answer.status, answer.kind, answer.extra + more)
    return b"%b%d\r\n\r\n%b" % (head, len(answer.content), answer.content)


@lru_cache(maxsize=64)
def _head(status: int, kind: bytes, headers: Headers) -> bytes:
    """Everything before the length; answers of one second have it in common."""
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    lines = [b"%b: %b\r\n" % pair for pair in ((b"content-type", kind), *HEADERS, *headers)]
    return b"".join([line, *lines, b"content-length: "])
