"""The decision service under load: an open loop from a second process, on loopback.

    python bench/serve.py [--seconds 67] [--journal decide] [--rate 5000] [--json]
    python bench/serve.py --rate 1500 --beside 4     while four other programs want a processor
    python bench/serve.py --releases 1000      memory over many releases

Requests are due at fixed times, independent of the service, so a pause delays every request that
waits in it: latency counts from the time a request was due. Batches and window are such that
every decision is stored and at least one release is made inside the run. Afterwards the same
endpoint is measured without storage (mode frozen). No losses are sent: people wait only for decide.

A fifth of a second that somebody else has the processor is seen in the 99th percentile of a minute.
So ``stolen_cores`` (time that the host of a virtual machine gave to others) and ``idle_cores`` come
with each result; two cores of which none is idle were not measured alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import deque
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path

import numpy as np

TARGETS = {"decide": (5000, 0.050), "observe": (8000, 0.050)}
"""Decisions per second, and the 99th percentile of their latency in seconds."""
PAUSE = 0.250
"""No decision may wait longer, even while a release is made."""
SETTINGS = """
experiment = "bench"
database = "{database}"
window = {window}
settle = 0.2
waiting = "pipeline"
journal = "{journal}"
rate_limit = 0
[plan]
n_actions = 4
first_batch = {first_batch}
[plan.budget]
epsilon = 1.0
delta = 1e-6
[plan.features]
kind = "UnitBall"
dimension = 8
"""
EQUAL = """
from discreet.design.schedule import Schedule
Schedule.nominal = lambda self, batch: self.first
"""
"""With doubling, a thousand releases would never end: with this, all batches are equally long."""


class Service:
    """An experiment in a folder of its own, and the process that serves it."""

    def __init__(self, folder: Path, **words: object) -> None:
        self.config = folder / "experiment.toml"
        self.config.write_text(SETTINGS.format(**{"database": "discreet.db"} | words))
        anchor = str(folder / "anchor.jsonl")  # deleted with the folder at the end
        begun = self._discreet("--init", "--json", "--anchor", anchor, stdout=subprocess.PIPE)
        self.key = json.loads(begun.communicate()[0])["admin_key"]
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]

    def _discreet(self, *words: str, **options: object) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-c",
            "from discreet.cli.main import main; raise SystemExit(main())",
        ]
        config = ["--config", str(self.config)]
        return subprocess.Popen([*command, "serve", *config, *words], text=True, **options)

    @contextmanager
    def running(self, *more: str):
        words = ("--port", str(self.port), *more)
        self.process = self._discreet(*words, stdout=subprocess.DEVNULL)
        try:
            while True:
                try:
                    self.ask("/readyz")
                    break
                except OSError:
                    time.sleep(0.05)
            time.sleep(2.0)  # the process that fits has started
            yield self
        finally:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    def ask(self, path: str, body: object = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def processor(self) -> float:
        """Seconds of processor that the serving process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident memory of the serving process, MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Caller(asyncio.Protocol):
    """One kept connection, one request at a time."""

    def __init__(self, done) -> None:
        self._done = done
        self._answer = b""

    def connection_made(self, transport) -> None:
        self.transport = transport

    def send(self, request: bytes, due: float) -> None:
        self._due = due
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        # Nearly always the whole answer arrives at once: then it ends with its one closing brace.
        if not self._answer and data.endswith(b"}") and b"\r\n\r\n" in data:
            self._done(self, self._due, data[9:12] == b"200", b'"stored":true' in data)
            return
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        if len(body) >= length:
            self._answer = b""
            self._done(self, self._due, head[9:12] == b"200", b'"stored":true' in body)

    def connection_lost(self, error) -> None:  # noqa: ARG002
        self._done(None, 0.0, False, False)


def requests(key: str) -> list[bytes]:
    """Requests for decisions on random contexts."""
    context = np.random.default_rng(0).normal(size=(512, 8))
    context *= 0.5 / np.linalg.norm(context, axis=1, keepdims=True)
    made = []
    for row in context.round(6).tolist():
        body = json.dumps({"context": row})
        head = (
            f"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        made.append(head.encode())
    return made


class Load:
    """Requests at a fixed rate; waiting for a free connection counts as latency."""

    def __init__(self, port: int, key: str, rate: float, connections: int) -> None:
        self._port, self._rate, self._connections = port, rate, connections
        self.latencies: list[float] = []
        self.moments: list[float] = []
        self.errors = self.stored = 0
        self._requests = requests(key)
        self._free: deque[Caller] = deque()
        self._queue: deque[float] = deque()

    def _done(self, caller, due: float, good: bool, stored: bool) -> None:
        if caller is None:
            self.errors += not self._over
            return
        now = time.perf_counter()
        self.latencies.append(now - due)
        self.moments.append(due)
        self.errors += not good
        self.stored += stored
        if self._queue:
            self._send(caller, self._queue.popleft())
        else:
            self._free.append(caller)

    def _send(self, caller: Caller, due: float) -> None:
        self._sent += 1
        caller.send(self._requests[self._sent % len(self._requests)], due)

    async def run(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._sent, self._over = 0, False
        for _ in range(self._connections):
            _, caller = await loop.create_connection(
                lambda: Caller(self._done), "127.0.0.1", self._port
            )
            self._free.append(caller)
        callers = list(self._free)
        begin, count = time.perf_counter(), 0
        while (now := time.perf_counter()) - begin < seconds:
            while begin + count / self._rate <= now:
                due = begin + count / self._rate
                count += 1
                if self._free:
                    self._send(self._free.popleft(), due)
                else:
                    self._queue.append(due)
            await asyncio.sleep(0.001)
        end = time.perf_counter() + 10
        while len(self.latencies) < count and time.perf_counter() < end:
            await asyncio.sleep(0.01)
        self.errors += count - len(self.latencies)
        self._over = True
        for caller in callers:
            caller.transport.close()


def generate(arguments: argparse.Namespace) -> None:
    """The second process: load, then one JSON line of results."""
    import uvloop

    load = Load(arguments.port, arguments.key, arguments.rate, arguments.connections)
    uvloop.run(load.run(arguments.seconds))
    took = np.sort(load.latencies)
    print(
        json.dumps(
            {
                "requests": len(took),
                "errors": load.errors,
                "stored": load.stored,
                "rate": len(took) / arguments.seconds,
                "p50_ms": 1e3 * float(np.quantile(took, 0.5)),
                "p99_ms": 1e3 * float(np.quantile(took, 0.99)),
                "worst_ms": 1e3 * float(took[-1]),
                "generator_us": 1e6 * time.process_time() / len(took),
            }
        )
    )


def machine() -> tuple[float, float]:
    """Seconds for which cores were idle, and for which the host took them away."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    tick = os.sysconf("SC_CLK_TCK")
    return (int(fields[4]) + int(fields[5])) / tick, int(fields[8]) / tick


@contextmanager
def beside(count: int):
    """Other programs that never rest, each in a session of its own."""
    loop = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(loop, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


def measure(service: Service, rate: float, seconds: float, connections: int) -> dict:
    command = [sys.executable, __file__, "--generate", "--port", str(service.port)]
    command += ["--key", service.key, "--rate", str(rate), "--seconds", str(seconds)]
    command += ["--connections", str(connections)]
    before, (idle, stolen) = service.processor(), machine()
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict = json.loads(made.stdout)
    result["idle_cores"] = (machine()[0] - idle) / seconds
    result["stolen_cores"] = (machine()[1] - stolen) / seconds
    result["server_us"] = 1e6 * (service.processor() - before) / result["requests"]
    result["requests per processor/s"] = 1e6 / max(result["server_us"], 1e-9)
    return result


def load_run(arguments: argparse.Namespace) -> dict:
    """Durable decisions with releases among them, then decisions without storage."""
    rate = arguments.rate or TARGETS[arguments.journal][0]
    seconds = arguments.seconds
    # The first batch is full after 0.3 of the run and released soon after; the second lasts.
    first = max(16, int(0.3 * rate * seconds))
    with tempfile.TemporaryDirectory() as folder:
        words = {"journal": arguments.journal, "first_batch": first, "window": seconds / 20}
        with Service(Path(folder), **words).running() as service:
            measure(service, rate / 4, min(2.0, seconds), arguments.connections)  # warm
            with beside(arguments.beside):
                result = measure(service, rate, seconds, arguments.connections)
            result["releases"] = service.ask("/v1/status")["releases"]
            service.ask("/v1/admin/mode", {"mode": "frozen"})
            bare = measure(service, rate, seconds / 4, arguments.connections)
            result["memory_mib"] = service.memory()
    wanted, slowest = TARGETS[arguments.journal]
    result["meets"] = {
        "rate": result["stored"] / seconds >= 0.99 * min(rate, wanted),
        "p99": result["p99_ms"] < 1e3 * slowest,
        "errors": result["errors"] == 0,
        "release": result["releases"] > 0,
        "pause": result["worst_ms"] <= 1e3 * PAUSE,
    }
    result["without_storage"] = bare
    result["ratio_p50"] = result["p50_ms"] / bare["p50_ms"]
    return result


def memory_run(releases: int) -> dict:
    """Resident memory while many releases are made, of batches that stay short."""
    from discreet.errors import DecisionClosed
    from discreet.service.runtime import fit_process
    from discreet.service.runtime.lifecycle import begin
    from discreet.service.runtime.service import Service as InProcess
    from discreet.service.settings import Settings

    exec(EQUAL)
    fit_process.CHILD = EQUAL + fit_process.CHILD

    async def run(settings: Settings, config: Path) -> list[tuple[int, float]]:
        service, seen = InProcess(settings, config=config), []
        await service.start(upkeep=False)
        context = [0.1] * 8
        for number in range(1, releases + 1):
            while (made := await service.decisions.decide("bench", context)).stored:
                with suppress(DecisionClosed):  # the window is very short
                    await service.decisions.observe(made.decision, 0.5)
            while not await service.upkeep.once():
                await asyncio.sleep(0.002)
            if number % max(1, releases // 10) == 0:
                seen.append((number, own_memory()))
        await service.stop()
        return seen

    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "experiment.toml"
        words = {"journal": "decide", "first_batch": 16, "window": 0.02}
        text = SETTINGS.format(database="discreet.db", **words).replace(
            "settle = 0.2", "settle = 0.0"
        )
        config.write_text(text.replace('"pipeline"', '"gap"'))  # one batch at a time
        settings = Settings.read(config)
        begin(settings)
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
            seen = asyncio.run(run(settings, config))
    first, last = seen[0], seen[-1]
    grown = 1024 * (last[1] - first[1]) / max(1, last[0] - first[0])
    return {"memory_mib": dict(seen), "grown_kib_a_release": grown}


def own_memory() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=67.0)
    parser.add_argument("--journal", choices=TARGETS, default="decide")
    parser.add_argument("--rate", type=float, help="requests per second (default: the target)")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--beside", type=int, default=0, help="other programs that never rest")
    parser.add_argument("--releases", type=int, help="measure memory over this many releases")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    parser.add_argument("--generate", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.generate:
        generate(arguments)
        return
    if arguments.quick:
        arguments.seconds = 4.0
    result = memory_run(arguments.releases) if arguments.releases else load_run(arguments)
    print(json.dumps(result, indent=None if arguments.json else 1))


if __name__ == "__main__":
    main()
