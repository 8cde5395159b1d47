"""Experiments in a folder, served by real processes that can be killed at any moment."""

import http.client
import json
import os
import shutil
import signal
import socket
from contextlib import closing, contextmanager, suppress

from discreet.service.runtime import lifecycle
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.locations import open_database
from ports import free_port
from service.attack.processes import alive, family
from service.conftest import time_passes
from waiting import PATIENCE, until

PLAN = """
[plan]
n_actions = 3
{batches}
[plan.oracle]
kind = "PooledRidge"
geometry = "{geometry}"
[plan.budget]
epsilon = 1.0
delta = 1e-6
[plan.features]
kind = "Schema"
[[plan.features.fields]]
kind = "Number"
name = "n"
low = 0
high = 1000000
[[plan.features.fields]]
kind = "Category"
name = "device"
values = ["phone", "desk"]
other = true
"""


def context(number):
    """A context that no other request sends."""
    return {"n": number, "device": ("phone", "desk", "watch")[number % 3]}


def write_settings(
    folder,
    database="discreet.db",
    *,
    first_batch=4,
    longest=None,
    every=None,
    missing=None,
    geometry="learned",
    control=None,
    **words,
):
    """An ``experiment.toml``; windows last until ``Place.windows_end``, and nothing is limited."""
    stated = {"experiment": "attack", "database": database, "window": 3600.0, "settle": 0.0}
    stated |= {"rate_limit": 0, "waiting": "gap"} | words
    batches = {"first_batch": first_batch, "longest_batch": longest, "close_every": every}
    batches = {name: value for name, value in batches.items() if value is not None}
    if missing is not None:
        batches["missing_loss"] = missing
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "experiment.toml"
    plan = PLAN.format(batches=_lines(batches), geometry=geometry)
    if control is not None:
        plan += "[plan.control]\n" + _lines(control)
        plan += '\n[[plan.guardrails]]\nname = "complaints"\n'
    path.write_text(_lines(stated) + plan)
    return Settings.read(path)


def _lines(stated):
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in stated.items())


class Place:
    """One experiment: its folder, its keys, and the process that serves it, if any."""

    def __init__(self, folder, launcher, database="discreet.db", **words):
        self.folder, self._launcher = folder, launcher
        self.settings = write_settings(folder, database, **words)
        self.admin = lifecycle.begin(self.settings)
        self.port, self.log = free_port(), folder.parent / f"{folder.name}.log"
        self.tree = set()

    def start(self, *, step="", sabotage="", workers=1):
        """Serve; with ``step`` a process of the service dies where that step is passed."""
        words = ["--port", str(self.port), "--workers", str(workers)]
        # A child of a service that was killed holds the port until it notices.
        until(self._port_is_free, "the port of the service before is still taken")
        pid = self._discreet("serve", *words, step=step, sabotage=sabotage, wait=False)
        self.pid, self.tree = pid, {pid}
        until(lambda: self._is_ready(workers), f"service did not start: see {self.log}")
        return self

    def _port_is_free(self):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", self.port))
                tried.listen()
            except OSError:
                return False
        return True

    def run(self, command, step=""):
        """The exit status of a command on this experiment."""
        return self._discreet(command, step=step, sabotage="", wait=True)

    def _discreet(self, command, *words, step, **requested):
        return self._launcher.fork(
            arguments=[command, "--config", str(self.folder / "experiment.toml"), *words],
            environment={"DISCREET_STEP": step},
            log=str(self.log),
            **requested,
        )

    def _is_ready(self, workers):
        self.tree |= family(self.pid)
        if not alive(self.pid):  # it may die before anybody could ask it
            return True
        try:
            enough = workers == 1 or len(self.tree) > workers  # they have a supervisor
            return enough and self.get("/readyz", key=None)[0] == 200
        except OSError:
            return False

    @property
    def wounded(self):
        """Whether a process of the service has died, also one that it started meanwhile."""
        self.tree |= family(self.pid)
        return any(not alive(pid) for pid in self.tree)

    def kill(self):
        """As a power cut: everything at once, nothing is told."""
        self.tree |= family(self.pid)
        for pid in self.tree:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not any(alive(pid) for pid in self.tree))

    def stop(self):
        """As an operator does."""
        self.tree |= family(self.pid)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        until(lambda: not any(alive(pid) for pid in self.tree))

    def windows_end(self):
        """As if the windows of all full batches were over."""
        time_passes(self.settings, self.settings.window + self.settings.settle)

    def looks_twice(self):
        """Wait until the service has looked at its database twice more, by what it tells of it."""
        for mode in ("frozen", "online"):
            with closing(open_database(self.settings).connect()) as connection:
                connection.execute("UPDATE experiment SET mode = ?", (mode,))
            until(lambda: self.get("/v1/status")[1]["mode"] == mode)  # noqa: B023

    @contextmanager
    def served(self, **options):
        """Started before and stopped after."""
        self.start(**options)
        try:
            yield self
        finally:
            self.stop()

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def get(self, path, *, key="admin", raw=False):
        return self.call("GET", path, key=key, raw=raw)

    def post(self, path, body, *, key="admin", **headers):
        return self.call("POST", path, json.dumps(body), headers, key=key)

    def call(self, method, path, body=None, headers=None, *, key="admin", raw=False):
        """Status and answer, over a connection of its own."""
        key = self.admin if key == "admin" else key
        with closing(self.connection()) as connection:
            return call(connection, method, path, body, headers or {}, key, raw=raw)

    @contextmanager
    def opened(self):
        """The database as a crash left it: of a file a copy, since reading would mend it.

        Not of files that are served: copied one after the other they would not fit together.
        """
        if self.settings.postgres or any(alive(pid) for pid in self.tree):
            with closing(open_database(self.settings).connect()) as connection:
                yield connection
            return
        copy = self.folder.parent / f"{self.folder.name}-copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for path in self.folder.glob("discreet.db*"):
            shutil.copy(path, copy)
        settings = write_settings(copy, database="discreet.db")
        with closing(open_database(settings).connect()) as connection:
            yield connection

    @property
    def vault(self):
        return Vault(self.settings.place(self.settings.vault))


def call(connection, method, path, body, headers, key, *, raw=False):
    """Status and decoded answer over a kept connection."""
    stated = {"Content-Type": "application/json"} | headers
    if key is not None:
        stated["Authorization"] = f"Bearer {key}"
    connection.request(method, path, body, stated)
    answer = connection.getresponse()
    content = answer.read()
    if not raw and answer.getheader("Content-Type", "") == "application/json":
        return answer.status, json.loads(content)
    return answer.status, content


def without_keys(settings):
    """Take from the table the keys that make a second release of a batch impossible."""
    with closing(open_database(settings).connect()) as connection:
        connection.execute("CREATE TABLE plain AS SELECT * FROM documents")
        connection.execute("DROP TABLE documents")
        connection.execute("ALTER TABLE plain RENAME TO documents")
