"""``discreet serve`` in a process of its own, and the few calls that tests make.

Tests of guides and commands start the program itself.
"""

import http.client
import json
import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from discreet.cli.main import main
from discreet.service.settings import Settings
from discreet.service.storage.database import kill_at
from ports import free_port
from service.conftest import time_passes
from service.forks import FORKS, started
from waiting import PATIENCE, until


def serve(folder, environment, logs, words):
    """Become the command, with its folder, its environment and its output."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    kill_at(os.environ.get("DISCREET_STEP", ""))
    for name, number in (("out", 1), ("err", 2)):
        file = os.open(logs / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = os.fdopen(0, closefd=False)  # workers are handed its number
    sys.exit(main(["serve", *words]))


class Server:
    """A service that was started; ``wait`` until it answers, ``stop`` to end it."""

    def __init__(self, folder, *arguments, environment=None):
        self.port, self.folder = free_port(), folder
        self._logs = tempfile.TemporaryDirectory()
        words = ["--port", str(self.port), *arguments]
        given = {**os.environ, **(environment or {})}
        command = FORKS.Process(target=serve, args=(folder, given, self.logs, words))
        self.process = started(command)

    @property
    def logs(self):
        return Path(self._logs.name)

    def wait(self):
        """Until it answers; its complaint if it ends instead."""

        def answers():
            assert self.process.exitcode is None, (self.logs / "err").read_text()
            with suppress(OSError):
                return self.call("GET", "/readyz")[0] == 200

        until(answers, "the service did not start")
        return self

    def windows_end(self):
        """As if the windows of all full batches of its experiment were over."""
        settings = Settings.read(self.folder / "experiment.toml")
        time_passes(settings, settings.window + settings.settle)

    def call(self, method, path, body=None, key=None, headers=()):
        """Status, parsed answer (or bytes), headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        given = dict(headers)
        if key:
            given["Authorization"] = f"Bearer {key}"
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if content is not None:
            given.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, content, given)
            answer = connection.getresponse()
            raw = answer.read()
            reported = {name.lower(): value for name, value in answer.getheaders()}
            parsed = json.loads(raw) if reported.get("content-type") == "application/json" else raw
            return answer.status, parsed, reported
        finally:
            connection.close()

    def ended(self):
        """Its exit code, as soon as it has one."""
        self.process.join(timeout=PATIENCE)
        return self.process.exitcode

    def stop(self, number=signal.SIGTERM):
        """End it and return its exit code, output and complaints."""
        if self.process.exitcode is None:
            os.kill(self.process.pid, number)
        return self.ended(), *((self.logs / name).read_text() for name in ("out", "err"))
