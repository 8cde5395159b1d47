"""Files of the package through which ``POST /v1/decide`` passes, from the request to its answer.

    python bench/walk.py [--verbose]

An experiment with SQLite is served in this process, and a client sends decisions over a socket.
Every function of the package that runs between a request and its answer counts with its file, in
all threads.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import uvicorn

import discreet
from discreet.service.http.app import make_app
from discreet.service.http.request_limits import LimitedHttp
from discreet.service.runtime import lifecycle
from discreet.service.runtime.service import Service
from discreet.service.settings import Settings

PACKAGE = Path(discreet.__file__).parent
SETTINGS = {
    "experiment": "walk",
    "plan": {
        "n_actions": 3,
        "first_batch": 64,
        "features": {"kind": "UnitBall", "dimension": 2},
        "budget": {"epsilon": 1.0, "delta": 1e-6},
    },
}


def calls_of_a_decision(folder: Path) -> Counter[tuple[str, str]]:
    """Return the calls by file and function of the package, for one decision of a warm service."""
    settings = Settings.from_config(SETTINGS, folder)
    return asyncio.run(_walk(settings, lifecycle.begin(settings)))


async def _walk(settings: Settings, key: str) -> Counter[tuple[str, str]]:
    calls, counting = Counter[tuple[str, str]](), threading.Event()

    def note(frame, event, _argument) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and counting.is_set() and path.is_relative_to(PACKAGE):
            calls[path.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname] += 1

    threading.setprofile(note)  # before the threads of the service begin
    service = Service(settings)
    service.upkeep.start = lambda: None  # its tasks are not part of a request
    config = uvicorn.Config(
        make_app(service), port=0, http=LimitedHttp, log_level="error", lifespan="on"
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    address = server.servers[0].sockets[0].getsockname()
    try:
        for _ in range(3):  # the last one finds everything in memory
            calls.clear()
            counting.set()
            sys.setprofile(note)
            answer = await _decide(address, key)
            sys.setprofile(None)
            counting.clear()
            assert answer.startswith(b"HTTP/1.1 200"), answer
        return calls
    finally:
        threading.setprofile(None)
        server.should_exit = True
        await serving


async def _decide(address: tuple[str, int], key: str) -> bytes:
    reader, writer = await asyncio.open_connection(*address[:2])
    body = b'{"context": [0.3, -0.2]}'
    head = (
        "POST /v1/decide HTTP/1.1\r\nHost: walk\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--verbose", action="store_true", help="with the functions of each file")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calls = calls_of_a_decision(Path(folder))
    files = sorted({file for file, _ in calls})
    for file in files:
        print(file)
        for (place, function), count in sorted(calls.items()) if wanted.verbose else ():
            if place == file:
                print(f"    {count:3} {function}")
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
