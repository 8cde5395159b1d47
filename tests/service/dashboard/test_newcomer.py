"""The path of docs/many-experiments.md, command by command: a folder, a server, a first experiment,
a second one with a control share, simulated people, and their lift."""

import io
import re
import shutil
import subprocess
from contextlib import chdir, redirect_stdout, suppress
from pathlib import Path

from discreet.cli.main import main
from discreet.client import Client
from discreet.errors import ServiceError
from service.served import Server
from waiting import PATIENCE, until

GUIDE = (Path(__file__).parents[3] / "docs" / "many-experiments.md").read_text()
PATH = GUIDE[GUIDE.index("## Begin") : GUIDE.index("## In the folder")]
ROWS = {"--rate 200 --rows 12000": "--rate 250 --rows 300"}
"""A person waits a minute for an answer; a test sees the first release."""


def typed(folder, line, keys, port):
    """Run one command; the keys that it prints are added to ``keys``."""
    for long, short in {**ROWS, ":8000": f":{port}", "$KEY": keys[-1] if keys else ""}.items():
        line = line.replace(long, short)
    if line.startswith("discreet "):
        stated = io.StringIO()
        with chdir(folder), redirect_stdout(stated):
            assert main(line.split()[1:]) == 0, stated.getvalue()
        keys += re.findall(r"dk_\S+", stated.getvalue())
    elif not line.startswith("curl "):
        assert re.match(r"pip install '\.\[serve\]'$|export KEY=|$", line), line
    elif shutil.which("curl"):  # the other commands do not depend on it
        command = ["bash", "-c", line]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        assert "ready" in done.stdout or '"stored":true' in done.stdout, done.stdout


def test_the_second_experiment_has_a_lift(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # where anchors lie
    keys, server = [], None
    try:
        for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", PATH, re.M | re.S):
            if language == "toml":
                (tmp_path / "banner.toml").write_text(text)
                continue
            for line in text.splitlines():
                if line == "discreet serve --folder experiments &":
                    server = Server(tmp_path, "--folder", "experiments").wait()
                else:
                    typed(tmp_path, line, keys, server.port if server else 0)
        assert len(keys) == 3

        def compared():
            with suppress(ServiceError):
                return client.lift()

        with Client(f"http://127.0.0.1:{server.port}/v1/experiments/banner", keys[2]) as client:
            until(compared)
    finally:
        if server is not None:
            server.stop()
