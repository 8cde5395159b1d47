"""Many experiments on one server beside one: start, memory while idle, and decisions per second.

    python bench/many_experiments.py [--experiments 100] [--seconds 10] [--rate 300]

Requests come from a second process, as in serve.py, and are spread evenly over all experiments. The
largest rate is found by sending as fast as 64 connections get answers, also to one and to ten of
them; latency is that of an open loop at ``--rate``. Every decision is stored on disk before it is
answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from serve import SETTINGS, Caller, Load

CONNECTIONS = 64
COMMAND = [sys.executable, "-c", "from discreet.cli.main import main; raise SystemExit(main())"]


class Spread(Load):
    """Requests to all experiments in turn; a rate of 0 is as fast as connections are free."""

    def __init__(self, port: int, places: list[list[str]], rate: float) -> None:
        super().__init__(port, "", rate or 1e9, CONNECTIONS)
        self._fast = not rate
        plain = [request.decode() for request in self._requests]
        self._requests = [
            plain[number % len(plain)]
            .replace("/v1/decide", f"/v1/experiments/{name}/decide")
            .replace("Bearer ", f"Bearer {key}")
            .encode()
            for number, (name, key) in enumerate(places * max(1, 512 // len(places)))
        ]

    async def run(self, seconds: float) -> None:
        if not self._fast:
            await super().run(seconds)
            return
        loop, self._sent, self._over = asyncio.get_running_loop(), 0, False
        for _ in range(CONNECTIONS):
            made = await loop.create_connection(
                lambda: Caller(self._again), "127.0.0.1", self._port
            )
            self._send(made[1], time.perf_counter())
        await asyncio.sleep(seconds)
        self._over = True

    def _again(self, caller, due: float, good: bool, stored: bool) -> None:
        if caller is None or self._over:
            return
        self.latencies.append(time.perf_counter() - due)
        self.errors += not good
        self.stored += stored
        self._send(caller, time.perf_counter())


def generate(arguments: argparse.Namespace) -> None:
    """The second process: load, then one JSON line of results."""
    import uvloop

    load = Spread(arguments.port, json.loads(sys.stdin.read()), arguments.rate)
    uvloop.run(load.run(arguments.seconds))
    took = np.sort(load.latencies)
    told = {f"p{part:g}_ms": 1e3 * float(np.quantile(took, part / 100)) for part in (50, 99)}
    rate = len(took) / arguments.seconds
    print(json.dumps({"rate": rate, "errors": load.errors, "stored": load.stored, **told}))


class Server:
    """A folder with so many experiments, and the process that serves it."""

    def __init__(self, folder: Path, count: int) -> None:
        from discreet.service.runtime.experiment_folder import ExperimentFolder
        from discreet.service.storage.api_keys import begin_server

        folder.mkdir()
        (folder / "server.toml").write_text(f'anchors = "{folder}/anchors"\nport = 0\n')
        self.key, held = begin_server(folder), ExperimentFolder(folder)
        text = SETTINGS.format(
            database="discreet.db", window=60, journal="decide", first_batch=4_000_000
        )
        self.places = []
        for number in range(count):
            begun = held.new(f"e{number}", text)
            self.places.append([begun.name, begun.admin_key])
        self._folder = folder

    def __enter__(self):
        began = time.perf_counter()
        words = ["serve", "--folder", str(self._folder)]
        with (self._folder / "log").open("w") as log:
            self.process = subprocess.Popen([*COMMAND, *words], stderr=log)
        self.port = 0
        while True:
            first = (self._folder / "log").read_text().partition("\n")[0]
            self.port = int(first.partition("127.0.0.1:")[2].partition(",")[0] or 0)
            try:
                if self.port:
                    self._ask("/readyz")
                    break
            except OSError:
                pass
            time.sleep(0.02)
        self.start_s = time.perf_counter() - began
        return self

    def __exit__(self, *_) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def _ask(self, path: str) -> bytes:
        headers = {"Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def scrape(self) -> float:
        began = time.perf_counter()
        self._ask("/metrics")
        return time.perf_counter() - began

    def memory(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def processor(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self, rate: float, seconds: float, used: int | None = None) -> dict:
        command = [sys.executable, __file__, "--generate", "--port", str(self.port)]
        command += ["--rate", str(rate), "--seconds", str(seconds)]
        made = subprocess.run(
            command,
            input=json.dumps(self.places[:used]),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return json.loads(made.stdout)


def measured(count: int, arguments: argparse.Namespace) -> dict:
    with tempfile.TemporaryDirectory() as place, Server(Path(place) / "f", count) as server:
        time.sleep(15.0)  # until idle experiments are looked at seldom
        found = {"start_s": server.start_s, "idle_mib": server.memory()}
        before = server.processor()
        time.sleep(5.0)
        found["idle_processor"] = (server.processor() - before) / 5.0
        found["fastest"] = {}
        for used in sorted({1, min(10, count), count}):  # the few first, while the others sleep
            server.measure(arguments.rate / 4, 2.0, used)  # warm
            found["fastest"][f"{used} in use"] = server.measure(0.0, arguments.seconds, used)
        found["at_rate"] = server.measure(arguments.rate, arguments.seconds)
        found |= {"busy_mib": server.memory(), "scrape_s": server.scrape()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=300.0)
    for name, kind in (("--generate", None), ("--port", int)):
        options = {"action": "store_true"} if kind is None else {"type": kind}
        parser.add_argument(name, help=argparse.SUPPRESS, **options)
    arguments = parser.parse_args()
    if arguments.generate:
        generate(arguments)
        return
    one, many = (measured(count, arguments) for count in (1, arguments.experiments))
    each = (many["idle_mib"] - one["idle_mib"]) / (arguments.experiments - 1)
    told = {"one": one, "many": many, "idle_mib_each": each}
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
