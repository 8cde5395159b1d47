"""The files through which ``POST /v1/decide`` passes, from the request to its answer.

    python bench/walk.py [--verbose]

A decision is made in this process, without a socket, by an experiment with SQLite. Every function
of the package that runs between the request and the answer counts with its file, in all threads.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import discreet
from discreet.service.http.app import make_app
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


def files_of_a_decision(folder: Path) -> Counter[tuple[str, str]]:
    """Calls by file and function of the package, for one decision of a service that is warm."""
    settings = Settings.from_config(SETTINGS, folder)
    return asyncio.run(_walk(settings, lifecycle.begin(settings)))


async def _walk(settings: Settings, key: str) -> Counter[tuple[str, str]]:
    service, calls = Service(settings), Counter[tuple[str, str]]()

    def note(frame, event, _argument) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            calls[path.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname] += 1

    threading.setprofile(note)  # before its threads begin
    await service.start(upkeep=False)
    app = make_app(service)
    try:
        for _ in range(3):  # the last one finds everything in memory
            calls.clear()
            sys.setprofile(note)
            answer = await _decide(app, key)
            sys.setprofile(None)
            assert answer["status"] == 200, answer
        return calls
    finally:
        threading.setprofile(None)
        await service.stop()


async def _decide(app, key: str) -> dict:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/decide",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {key}".encode()),
            (b"content-type", b"application/json"),
        ],
        "client": ("127.0.0.1", 1),
    }
    sent: list[dict] = []

    async def receive() -> dict:
        return {"type": "http.request", "body": b'{"context": [0.3, -0.2]}'}

    async def send(message: dict) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--verbose", action="store_true", help="with the functions of each file")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calls = files_of_a_decision(Path(folder))
    files = sorted({file for file, _ in calls})
    for file in files:
        print(file)
        for (place, function), count in sorted(calls.items()) if wanted.verbose else ():
            if place == file:
                print(f"    {count:3} {function}")
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
