"""What the short way past ASGI saves: processor time per decision, without storage.

    python bench/direct.py [--turns 40] [--connections 16]

Two services in one process, one with ``direct = false``, are asked in turns by callers in the same
process that wait for each answer. So a busy machine slows both equally, and the least of many
turns is stable; both numbers include the callers' own time. [docs/decisions/0008]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import uvicorn
import uvloop

from discreet.service.http.app import make_app
from discreet.service.http.protocol import Protocol
from discreet.service.runtime.lifecycle import begin
from discreet.service.runtime.service import Service
from discreet.service.settings import Settings

REQUESTS = 2000
"""Requests in one turn."""
SETTINGS = {
    "experiment": "bench",
    "mode": "frozen",
    "rate_limit": 0,
    "plan": {
        "n_actions": 4,
        "features": {"kind": "UnitBall", "dimension": 8},
        "budget": {"epsilon": 1.0, "delta": 1e-6},
    },
}


class Caller(asyncio.Protocol):
    """One kept connection, one request at a time."""

    def __init__(self, request: bytes) -> None:
        self._request, self._left, self._answer = request, 0, b""

    def connection_made(self, transport) -> None:
        self._transport = transport

    async def ask(self, times: int) -> None:
        self._left, self._done = times, asyncio.get_running_loop().create_future()
        self._transport.write(self._request)
        await self._done

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not self._answer.endswith(b"}"):
            return
        assert self._answer.startswith(b"HTTP/1.1 200"), self._answer
        self._answer, self._left = b"", self._left - 1
        if self._left:
            self._transport.write(self._request)
        else:
            self._done.set_result(None)


@asynccontextmanager
async def callers_of(folder: Path, direct: bool, connections: int) -> AsyncIterator[list[Caller]]:
    """Connections to a service that answers."""
    folder.mkdir()
    settings = Settings.from_config({**SETTINGS, "direct": direct}, folder)
    key = begin(settings)
    app = make_app(Service(settings))
    config = uvicorn.Config(app, port=0, http=Protocol, log_level="warning", timeout_keep_alive=600)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    body = json.dumps({"context": [0.1] * 8})
    request = (
        f"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
    connect = asyncio.get_running_loop().create_connection
    made = [await connect(lambda: Caller(request), "127.0.0.1", port) for _ in range(connections)]
    yield [caller for _, caller in made]
    server.should_exit = True
    await running


async def run(turns: int, connections: int, folder: Path) -> dict:
    spent: dict[str, list[float]] = {"direct": [], "asgi": []}
    async with (
        callers_of(folder / "direct", True, connections) as direct,
        callers_of(folder / "asgi", False, connections) as asgi,
    ):
        for _ in range(turns):
            for times, callers in zip(spent.values(), (direct, asgi), strict=True):
                before = time.process_time()
                await asyncio.gather(*(caller.ask(REQUESTS // connections) for caller in callers))
                times.append(1e6 * (time.process_time() - before) / REQUESTS)
    ratios = np.divide(spent["asgi"], spent["direct"])
    return {
        "connections": connections,
        "least_us": {name: round(min(times), 1) for name, times in spent.items()},
        "median_us": {name: round(float(np.median(times)), 1) for name, times in spent.items()},
        "median_ratio": round(float(np.median(ratios)), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    arguments = parser.parse_args()
    for connections in arguments.connections:
        with tempfile.TemporaryDirectory() as folder:
            turns = 3 if arguments.quick else arguments.turns
            print(json.dumps(uvloop.run(run(turns, connections, Path(folder)))))


if __name__ == "__main__":
    main()
