"""The example page in a real browser: personalised here, and nothing is sent.

With DISCREET_SCREENSHOTS=1 in the environment the picture in docs/images is taken again.
"""

import functools
import json
import os
import re
import runpy
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from client.browser import chromium, needs_chromium
from discreet.client import Billboard
from tolerances import EXACT

ROOT = Path(__file__).parents[2]
FILES = {"/", "/page.js", "/discreet.js", "/key.js", "/releases.jsonl"}
pytestmark = needs_chromium


@contextmanager
def served(folder):
    """The address of a folder, and the list of requests for it."""
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append((self.command, self.path, self.headers.get("Content-Length")))

    handler = functools.partial(Handler, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    script = runpy.run_path(str(ROOT / "examples" / "billboard" / "publish.py"))
    script["build"](folder, people=2048)
    return folder


@pytest.fixture
def site(published, tmp_path):
    """A copy that a test may spoil."""
    for file in published.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def read_here(site):
    key = re.search('"(.*)"', (site / "key.js").read_text())[1]
    return Billboard((site / "releases.jsonl").read_bytes().splitlines(), key)


def opened(browser, url):
    """The page when it is done, with every request and every complaint of the browser."""
    page = browser.new_page(viewport={"width": 900, "height": 600})
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(url)
    page.wait_for_selector("#status b")
    return page, requests, complaints


def move(page, hour, visits, interest):
    page.fill("#hour", str(hour))
    page.fill("#visits", str(visits))
    page.select_option("#interest", interest)
    return {"hour": hour, "visits": visits, "interest": interest}


def test_the_page_personalises_itself_and_sends_nothing(browser, site):
    board = read_here(site)
    with served(site) as (url, asked):
        page, requests, complaints = opened(browser, url)
        u = json.loads(page.evaluate("document.body.dataset.u"))
        loaded = len(requests)
        shown = []
        for visitor in ((3, 17, "fiction"), (12, 9, "cooking"), (21, 4, "science")):
            context = move(page, *visitor)
            action = int(page.get_attribute("#title", "data-action"))
            assert action == board.sample(context, u)
            chances = page.eval_on_selector_all("progress", "all => all.map((one) => one.value)")
            assert chances == pytest.approx(board.probabilities(context).tolist(), abs=EXACT)
            shown.append(page.inner_text("#title"))
        count, readers = len(board.released.items), board.released.rounds
        told = f"Verified. {count} releases from {readers:,} readers"
        assert page.inner_text("#status").startswith(told)
        assert len(requests) == loaded, "moving a slider must send nothing"
        assert {request.url.removeprefix(url.rstrip("/")) for request in requests} == FILES
        assert {(request.method, request.post_data) for request in requests} == {("GET", None)}
        assert {path for _, path, _ in asked} == FILES
        assert complaints == []
        if "DISCREET_SCREENSHOTS" in os.environ:
            page.evaluate("document.activeElement.blur()")
            page.screenshot(path=ROOT / "docs" / "images" / "billboard.png", full_page=True)
        page.close()


@pytest.mark.parametrize("spoil", ["altered", "cut", "another key"])
def test_releases_that_do_not_verify_are_not_used(browser, site, spoil):
    lines = (site / "releases.jsonl").read_bytes().splitlines()
    if spoil == "altered":
        lines[-1], spoiled = re.subn(rb'"records":(\d+)', rb'"records":1\1', lines[-1], count=1)
        assert spoiled
    elif spoil == "cut":
        del lines[3]
    else:
        (site / "key.js").write_text(f'export const PUBLIC_KEY = "{"0f" * 32}";\n')
    (site / "releases.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with served(site) as (url, _):
        page, _, _ = opened(browser, url)
        page.set_viewport_size({"width": 360, "height": 740})  # a phone
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.inner_text("#status").startswith("Not personalised.")
        assert page.inner_text("#title") == "Books we love"
        assert page.get_attribute("#title", "data-action") is None
        page.close()
