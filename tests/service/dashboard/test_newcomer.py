"""The newcomer's path of docs/many-experiments.md, command by command: a folder, a server, a first
experiment, a second one with a control share, simulated people, and pages that show the lift."""

import http.cookiejar
import io
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from contextlib import chdir, redirect_stdout
from html import unescape
from pathlib import Path

import pytest

from discreet.cli.main import main
from service.served import Server
from waiting import PATIENCE, until

GUIDE = (Path(__file__).parents[3] / "docs" / "many-experiments.md").read_text()
PATH = GUIDE[GUIDE.index("## Begin") : GUIDE.index("## In the folder")]
ROWS = {"--rate 200 --rows 12000": "--rate 250 --rows 300"}
"""A person waits a minute for an answer; a test sees the first release."""


class Walk:
    """What a newcomer types, and the keys that the commands print."""

    def __init__(self, folder):
        self.folder, self.keys, self.server = folder, [], None

    def type(self, line):
        if line == "discreet serve --folder experiments &":
            self.server = Server(self.folder, "--folder", "experiments").wait()
        elif line.startswith("discreet "):
            self._command(self._here(line).replace("$KEY", self.keys[-1] if self.keys else ""))
        elif line.startswith("curl "):
            self._curl(line)
        else:
            assert re.match(r"pip install '\.\[serve\]'$|export KEY=|$", line), line

    def _here(self, line):
        for long, short in ROWS.items():
            line = line.replace(long, short)
        return line.replace(":8000", f":{self.server.port}") if self.server else line

    def _command(self, line):
        stated = io.StringIO()
        with chdir(self.folder), redirect_stdout(stated):
            assert main(line.split()[1:]) == 0, stated.getvalue()
        self.keys += re.findall(r"dk_\S+", stated.getvalue())

    def _curl(self, line):
        if shutil.which("curl") is None:  # the other commands do not depend on it
            return
        command = [*("bash", "-c"), self._here(line)]
        reported = {**os.environ, "KEY": self.keys[-1]}
        done = subprocess.run(
            command, capture_output=True, text=True, env=reported, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr
        assert "ready" in done.stdout or '"stored":true' in done.stdout, done.stdout

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.port}"


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """Everything typed, up to the traffic."""
    folder = tmp_path_factory.mktemp("newcomer")
    made = Walk(folder)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_STATE_HOME", str(folder / "state"))  # where anchors lie
        try:
            for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", PATH, re.M | re.S):
                if language == "toml":
                    (folder / "banner.toml").write_text(text)
                    continue
                for line in text.splitlines():
                    made.type(line)
            assert len(made.keys) == 3
            yield made
        finally:
            if made.server is not None:
                made.server.stop()


def reader(url, key):
    """A browser's cookies after a log-in, without the browser: ``read()`` is the first page."""
    opener = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    )

    def read(form=None):
        with opener.open(f"{url}/ui{'/login' if form else ''}", form) as answer:
            return unescape(answer.read().decode())

    token = re.search('name="token" value="([^"]+)"', read())[1]
    read(urllib.parse.urlencode({"token": token, "key": key}).encode())
    return read


def test_the_second_experiment_shows_its_lift_and_so_does_the_list(walk):
    server_key, _, key = walk.keys
    page = reader(f"{walk.url}/v1/experiments/banner", key)
    until(lambda: "than that of the control group" in page())
    shown = page()
    assert "Control, “none”" in shown
    stated = re.search(r"The mean loss [^<]*of the control group: [^<]*", shown)[0]
    listed = reader(walk.url, server_key)()
    sections = r'<section class="card listed".*?</section>'
    banner, welcome = re.findall(sections, listed, re.S)
    assert stated in banner
    assert "one of “none”, “mail” or “call”" in banner
    assert re.search(r"<b>\d+</b> since \d+ \w+ \d{4}, \d\d:\d\d", banner)
    assert "Not compared." in welcome
