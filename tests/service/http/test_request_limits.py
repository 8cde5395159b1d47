"""Limits on heads, bodies, connections and time; order and end of responses on a connection."""

import asyncio
import json
import re
import socket
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn

from discreet.service.http import request_limits as bounds
from discreet.service.http.app import make_app
from discreet.service.http.request_limits import LimitedHttp
from discreet.service.runtime.service import Service
from waiting import PATIENCE

HERE = json.dumps({"context": [0.3, -0.2]}).encode()


def passes(seconds):
    """So much later for every timer of this loop: with timers of a minute no pause decides."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds


class Wire:
    """One connection on which bytes are sent as a test likes."""

    def __init__(self, reader, writer, key):
        self._reader, self._writer, self._key = reader, writer, key

    def request(self, path="/v1/decide", body=HERE, *, version="1.1", length=True, more=()):
        lines = [f"POST {path} HTTP/{version}", "Host: here", f"Authorization: Bearer {self._key}"]
        lines += [f"Content-Length: {len(body)}"] if length else []
        return "\r\n".join([*lines, *more, "", ""]).encode() + body

    def send(self, content):
        self._writer.write(content)

    async def answer(self):
        """Status, headers and body of the next answer."""
        async with asyncio.timeout(PATIENCE):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return int(first.split()[1]), headers, body

    async def ask(self, content):
        self.send(content)
        return await self.answer()

    async def ended(self):
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read() == b""

    async def hang_up(self):
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


class Served:
    """A server in this event loop."""

    def __init__(self, service, server, key):
        self.service, self.server, self._key = service, server, key

    async def wire(self):
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return Wire(*await asyncio.open_connection("127.0.0.1", port), self._key)


@pytest.fixture
def database():
    return "discreet.db"


@pytest.fixture
def serve(settings):
    """``serve()``: a server in this event loop."""

    @asynccontextmanager
    async def run(**words):
        made = settings(window=60, plan={"first_batch": 64}, **words)
        service = Service(made)
        config = uvicorn.Config(make_app(service), port=0, http=LimitedHttp, log_level="warning")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield Served(service, server, settings.key())
        finally:
            server.should_exit = True
            await asyncio.wait_for(running, PATIENCE)

    return run


def chunked(wire, body=HERE, more=(), trailers=()):
    head = wire.request(body=b"", length=False, more=["Transfer-Encoding: chunked", *more])
    end = "\r\n".join([*trailers, "", ""]).encode()
    return head + b"%x\r\n%b\r\n0\r\n%b" % (len(body), body, end if trailers else b"\r\n")


def held(here):
    """What lets decisions go on, and what tells that one is under way."""
    gate, begun, decide = asyncio.Event(), asyncio.Event(), here.service.decisions.decide

    async def waiting(*given, **options):
        begun.set()
        await gate.wait()
        return await decide(*given, **options)

    here.service.decisions.decide = waiting
    return gate, begun


async def test_nonsense_is_refused_and_the_server_lives(serve):
    async with serve() as here:
        wire = await here.wire()
        assert (await wire.ask(b"NONSENSE\r\n\r\n"))[0] == 400
        wire = await here.wire()
        two = wire.request(more=[f"Content-Length: {len(HERE) + 1}"])
        assert (await wire.ask(two))[0] == 400
        wire = await here.wire()
        assert (await wire.ask(wire.request()))[0] == 200


# Heads are bounded: whoever sends without end is refused before anything is kept


async def refused(wire, content, status, code):
    given, headers, body = await wire.ask(content)
    assert (given, headers["connection"]) == (status, "close")
    assert json.loads(body)["error"]["code"] == code
    assert await wire.ended()


WAYS = {
    "length": lambda wire, more: wire.request(more=more),
    "chunked": lambda wire, more: chunked(wire, more=more),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_head_may_be_as_long_as_the_limit_and_no_longer(serve, way):
    def padded(wire, content):
        """The request with one more header, which brings its headers to exactly that length."""
        plain = WAYS[way](wire, ["X: "]).split(b"\r\n\r\n")[0]
        lines = plain.split(b"\r\n")[1:]
        room = content - sum(len(line) + 2 for line in lines)
        return WAYS[way](wire, ["X: " + "x" * room])

    async with serve() as here:
        wire = await here.wire()
        assert (await wire.ask(padded(wire, bounds.HEAD)))[0] == 200
        assert (await wire.ask(wire.request()))[0] == 200  # and the connection goes on
        await refused(wire, padded(wire, bounds.HEAD + 1), 431, "headers_too_large")
        wire = await here.wire()
        many = ["X: x"] * (bounds.LINES - 3)
        assert (await wire.ask(WAYS[way](wire, many)))[0] == 200
        await refused(wire, WAYS[way](wire, [*many, "X: x"]), 431, "headers_too_large")


async def test_a_url_may_be_as_long_as_the_limit_and_no_longer(serve):
    async with serve() as here:
        wire = await here.wire()
        path = "/" + "x" * (bounds.URL - 1)
        assert (await wire.ask(wire.request(path)))[0] == 404
        await refused(wire, wire.request(path + "x"), 414, "url_too_long")


async def test_trailers_count_with_the_headers(serve):
    async with serve() as here:
        wire = await here.wire()
        assert (await wire.ask(chunked(wire, trailers=["X: x"] * 50)))[0] == 200
        assert (await wire.ask(wire.request()))[0] == 200
        await refused(wire, chunked(wire, trailers=["X: x"] * 100), 431, "headers_too_large")


async def test_an_endless_pipelined_head_gets_no_answer_of_another_request(serve):
    """The first request is under way: what is said now would be taken for its answer."""
    async with serve() as here:
        wire = await here.wire()
        gate = asyncio.Event()

        async def waiting(*_given, **_options):
            await gate.wait()

        here.service.decisions.decide = waiting
        wire.send(wire.request() + wire.request(more=["X: " + "x" * bounds.HEAD]))
        assert await wire.ended()
        gate.set()


async def test_a_few_requests_may_wait_for_an_answer_and_no_more(serve):
    async with serve() as here:
        wire = await here.wire()
        gate, _ = held(here)
        wire.send(wire.request() * (1 + bounds.WAITING))
        other = await here.wire()
        other.send(other.request() * (2 + bounds.WAITING))
        assert await other.ended()
        gate.set()
        assert {(await wire.answer())[0] for _ in range(1 + bounds.WAITING)} == {200}


async def test_a_head_that_comes_too_slowly_is_not_awaited(serve, monkeypatch):
    monkeypatch.setattr(bounds, "HEAD_SECONDS", 60.0)
    async with serve() as here:
        here.server.config.timeout_keep_alive = 600.0
        wire = await here.wire()
        assert (await wire.ask(wire.request()))[0] == 200
        passes(61.0)  # between two requests there is more time
        for byte in wire.request()[:50]:  # every byte is in time, and the head is not
            wire.send(bytes([byte]))
            await asyncio.sleep(0.001)
            passes(1.0)
        passes(11.0)
        await refused(wire, b"", 408, "too_slow")


async def test_a_head_that_waits_for_us_is_not_too_slow(serve, monkeypatch):
    monkeypatch.setattr(bounds, "HEAD_SECONDS", 60.0)
    async with serve() as here:
        wire = await here.wire()
        slow = here.service.decisions.decide

        async def decide(*given, **options):
            passes(61.0)
            await asyncio.sleep(0.001)  # timers that are due go off
            return await slow(*given, **options)

        here.service.decisions.decide = decide
        second = wire.request()
        wire.send(wire.request() + second[:40])
        assert (await wire.answer())[0] == 200
        assert (await wire.ask(second[40:]))[0] == 200


@pytest.mark.parametrize("length", [200, 100_000])
async def test_a_body_that_comes_too_slowly_is_not_awaited(serve, monkeypatch, length):
    monkeypatch.setattr(bounds, "BODY_SECONDS", 60.0)
    began, complete = asyncio.Event(), LimitedHttp.on_headers_complete

    def spying(self):
        complete(self)
        began.set()

    monkeypatch.setattr(LimitedHttp, "on_headers_complete", spying)
    async with serve() as here:
        wire = await here.wire()
        head = wire.request(body=b"{" * length).split(b"\r\n\r\n")[0] + b"\r\n\r\n"
        wire.send(head + b"{")
        await began.wait()
        await asyncio.sleep(0.001)
        passes(61.0)
        await refused(wire, b"", 408, "too_slow")
        assert (await (await here.wire()).ask(wire.request()))[0] == 200


async def test_connections_are_limited(serve, monkeypatch):
    monkeypatch.setattr(bounds, "SPARE_SECONDS", 60.0)  # it is refused for what it asks
    async with serve(connections=3) as here:
        kept = [await here.wire() for _ in range(3)]
        for wire in kept:
            assert (await wire.ask(wire.request()))[0] == 200
        await refused(await here.wire(), kept[0].request(), 503, "too_many_connections")
        await kept[0].hang_up()
        while len(here.server.server_state.connections) > 2:
            await asyncio.sleep(0.001)
        assert (await (await here.wire()).ask(kept[1].request()))[0] == 200
        assert (await kept[1].ask(kept[1].request()))[0] == 200


async def test_health_checks_are_answered_beyond_the_limit_of_connections(serve, monkeypatch):
    monkeypatch.setattr(bounds, "SPARE", 2)
    monkeypatch.setattr(bounds, "SPARE_SECONDS", 60.0)
    async with serve(connections=3) as here:
        kept = [await here.wire() for _ in range(3)]
        for wire in kept:
            assert (await wire.ask(wire.request()))[0] == 200
        for path in ("/healthz", "/readyz", "/healthz?x=1"):
            watching = await here.wire()
            status, headers, _ = await watching.ask(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            assert (status, headers["connection"]) == (200, "close"), path
            assert await watching.ended()
        silent = [await here.wire() for _ in range(2)]
        await refused(await here.wire(), b"", 503, "too_many_connections")
        for wire in silent:
            await wire.hang_up()


GET = b"GET /healthz HTTP/1.1\r\n"
CHUNKED = b"POST /v1/decide HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "a header": (GET + b"X: ", b"x"),
    "the name of a header": (GET, b"x"),
    "headers": (GET, b"X: x\r\n"),
    "headers without content": (GET, b"X:\r\n"),
    "a header of many lines": (GET + b"X: x\r\n", b" x\r\n"),
    "a url": (b"GET /", b"x"),
    "a query": (b"GET /?", b"x"),
    "blank lines": (b"", b"\r\n"),
    "requests": (b"", GET + b"\r\n"),
    "a trailer": (CHUNKED + b"0\r\nX: ", b"x"),
    "trailers": (CHUNKED + b"0\r\n", b"X: x\r\n"),
    "an extension of a chunk": (CHUNKED + b"1;", b"x"),
}
FLOOD, KEPT_BY_SOCKETS, GROWTH = 200 << 20, 16 << 20, 16 << 20
"""Bytes that are sent, that the system takes for us before we close, that our memory may grow."""


def memory(process):
    with open(f"/proc/{process.pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) << 10


def flood(port, begin, more):
    """How many bytes were taken before the connection was closed."""
    piece, sent = more * (65_536 // len(more)), 0
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(begin)
        with suppress(ConnectionError):
            while sent < FLOOD:
                connection.sendall(piece)
                sent += len(piece)
    return sent


def test_nothing_endless_is_kept(written, server):
    folder, key = written(window=60)
    running = server(folder)
    for what, (begin, more) in ENDLESS.items():
        before = memory(running.process)
        assert flood(running.port, begin, more) < KEPT_BY_SOCKETS, what
        assert memory(running.process) - before < GROWTH, what
    assert running.call("POST", "/v1/decide", HERE, key)[0] == 200
