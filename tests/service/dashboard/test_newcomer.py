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

from client.browser import chromium, needs_chromium
from discreet.cli.main import main
from service.dashboard.accessibility import violations
from service.dashboard.test_browser import save
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


@needs_chromium
def test_the_pages_of_the_server_fit_and_can_be_read(walk):
    with chromium() as browser:
        for width, scheme in ((1280, "light"), (390, "dark")):
            page = browser.new_page(viewport={"width": width, "height": 760}, color_scheme=scheme)
            page.goto(f"{walk.url}/ui")
            assert violations(page) == []
            page.fill("#key", walk.keys[0])
            page.click("button")
            page.wait_for_selector(".listed")
            page.click("details summary >> nth=0")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert violations(page) == []
            page.fill("#typed-banner", "another")
            page.click("button[value=end] >> nth=0")
            page.wait_for_selector("[role=alert]")
            assert violations(page) == []
            page.close()


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_an_experiment_is_set_up_by_form(walk, width, scheme):
    """The form of the tutorial; with DISCREET_SCREENSHOTS=1 its picture is taken again."""
    name = "theatre" if width > 1000 else "theatre-phone"
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 760}, color_scheme=scheme)

        def good():
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert violations(page) == []

        page.goto(f"{walk.url}/ui")
        page.fill("#key", walk.keys[0])
        page.click("button")
        page.wait_for_selector(".listed")
        page.click("text=New experiment >> nth=0")
        page.wait_for_selector("#question")
        good()
        page.fill("#question", "Which greeting makes more visitors book?")
        page.fill("#name", "Theatre!")
        page.fill("#action-0", "nothing")
        page.fill("#action-1", "discount")
        page.click("[value=add-action]")
        page.fill("#action-2", "newsletter")
        rows = [f"{16 + i * i % 71},{i % 9},v{i}@example.org" for i in range(30)]
        page.fill("#sample", "\n".join(["age,visits,email", *rows]))
        page.click("[value=sample]")
        page.wait_for_selector("text=It identifies people")
        good()
        before = page.inner_text("#forecast")
        page.fill("#epsilon", "4")
        page.keyboard.press("Tab")  # no button: the forecast follows what was typed
        until(lambda: page.inner_text("#forecast") != before)
        assert not page.is_visible("#low"), "a click has no range"
        page.check("[name=outcome][value=reward]")
        assert page.is_visible("#low")
        page.check("[name=outcome][value=click]")
        page.click("[value=create]")
        page.wait_for_selector("#wrong-name")
        good()
        page.fill("#name", name)
        page.keyboard.press("Enter")  # checks, and begins nothing
        page.wait_for_selector("#wrong-name", state="detached")
        if "DISCREET_SCREENSHOTS" in os.environ and scheme == "light":
            page.set_viewport_size({"width": width, "height": 1160})
            save(page.screenshot(), "dashboard-setup")
        page.click("[value=file]")
        page.wait_for_selector("#toml")
        good()
        page.click("[value=form]")
        page.wait_for_selector("#question")
        page.click("[value=create]")
        page.wait_for_selector(".secret")
        assert f"{name} has begun" in page.inner_text("main")
        good()
