"""Pictures of every page of a server of experiments, on a desk and a phone, light and dark.

    python docs/site/screenshots.py --out FOLDER [--seconds 20]

Serves a folder of experiments with simulated traffic, opens every page in Chromium, and writes
``PAGE-desktop-light.png`` and so on. For people to look at: tests check what can be checked.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from discreet.client import Client
from discreet.data import load
from discreet.design.outcome import declared
from discreet.lab.traffic import Habits, contexts, labels, play
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.storage.api_keys import begin_server

COMMAND = [sys.executable, "-c", "from discreet.cli.main import main; raise SystemExit(main())"]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
SCHEMES = ("light", "dark")
RATE = 200
FIELDS = """
[plan.budget]
epsilon = 2.0
delta = 1e-6
[plan.features]
kind = "Schema"
fields = [
  { kind = "Number", name = "hour", low = 0, high = 24 },
  { kind = "Number", name = "visits", low = 0, high = 20 },
  { kind = "Category", name = "device", values = ["phone", "tablet", "desk"], other = true },
]
"""
BANNER = f"""
experiment = "banner"
question = "Which message brings people back?"
window = 1
settle = 0
internal_metrics = true
[plan]
actions = ["none", "mail", "call"]
outcome = {{ kind = "Reward", low = 0, high = 50 }}
first_batch = 64
control = {{ share = 0.3, action = "none" }}
guardrails = [{{ name = "complaints", limit = 0.02 }}]
{FIELDS}"""
WELCOME = f"""
experiment = "welcome"
window = "1h"
[plan]
actions = ["plain", "friendly", "brief"]
first_batch = 4096
{FIELDS}"""
PAGES = {
    "overview": "",
    "who-gets-what": "/explorer",
    "history": "/history",
    "batches": "/batches",
    "releases": "/releases",
    "release": "/releases/1",
    "release-start": "/releases/0",
    "ledger": "/ledger",
    "label": "/label",
    "keys": "/keys",
    "settings": "/settings",
    "exact": "/exact",
    "error": "/releases/999",
}


@dataclass(frozen=True)
class Site:
    """Address of the server, its key, and a key of its experiment ``banner``."""

    url: str
    server_key: str
    key: str

    @property
    def experiment(self) -> str:
        return f"{self.url}/v1/experiments/banner"


@contextmanager
def site(seconds: float) -> Iterator[Site]:
    """A server with experiments that run, are ended, and cannot start."""
    with tempfile.TemporaryDirectory() as place, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        root = Path(place)
        (root / "server.toml").write_text(f'port = {port}\nanchors = "{root / "anchors"}"\n')
        server_key, folder = begin_server(root), ExperimentFolder(root)
        keys = {
            name: folder.new(name, text).admin_key
            for name, text in {"banner": BANNER, "welcome": WELCOME, "last-year": WELCOME}.items()
        }
        folder.end("last-year")
        folder.new("two-years-ago", WELCOME)
        folder.archive("two-years-ago")
        folder.new("spoilt", WELCOME)
        folder.file("spoilt").write_text("window = ")
        served = subprocess.Popen(
            [*COMMAND, "serve", "--folder", place], stderr=subprocess.DEVNULL, cwd=place
        )
        try:
            made = Site(f"http://127.0.0.1:{port}", server_key, keys["banner"])
            _wait(f"{made.url}/readyz")
            _ask(f"{made.url}/v1/experiments/welcome", keys["welcome"], 2.0)
            _ask(made.experiment, made.key, seconds)
            yield made
        finally:
            os.kill(served.pid, signal.SIGTERM)
            served.wait(30)


def _wait(address: str) -> None:
    for _ in range(300):
        with suppress(OSError), urllib.request.urlopen(address, timeout=2):
            return
        time.sleep(0.1)
    raise SystemExit("the server must answer within 30 seconds; it does not. Run it by hand.")


def _ask(url: str, key: str, seconds: float) -> None:
    """Send decisions and losses of made-up people at a steady rate."""
    with Client(url, key) as client:
        schema, data = client.schema(), load("linear", rows=int(RATE * seconds))
        rows, best = contexts(data, schema), labels(data, schema)
        play(client, rows, best, rate=RATE, habits=Habits(), outcome=declared(schema))


def take(browser: Browser, at: Site, out: Path, size: str, scheme: Any) -> list[str]:
    """All pages in one size and colour; the names of those that are wider than the screen."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, locale="en"
    )
    page, wide = context.new_page(), []

    def shot(name: str) -> None:
        page.wait_for_timeout(150)  # charts are drawn after the page
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(f"{name}-{size}")
        page.screenshot(path=out / f"{name}-{size}-{scheme}.png", full_page=True)

    def by_key(key: str) -> None:
        if not page.is_visible("#key"):  # there are members
            page.click("main summary")
        page.fill("#key", key)
        page.click("text=Sign in with the key")

    def log_in(url: str, key: str) -> None:
        by_key(key)
        page.wait_for_url(f"{url}/ui")

    page.goto(f"{at.url}/ui")
    shot("server-log-in")
    by_key("dk_wrong")
    page.wait_for_selector(".alert")
    shot("server-log-in-refused")
    log_in(at.url, at.server_key)
    shot("server-list")
    page.click("details summary >> nth=0")
    shot("server-list-open")
    page.goto(f"{at.url}/ui/new?from=welcome")
    shot("new-experiment")
    page.fill("#epsilon", "-1")
    page.click("[value=create]")
    shot("new-experiment-refused")
    page.fill("#epsilon", "1")
    page.click("[value=file]")
    shot("new-experiment-file")
    page.goto(f"{at.url}/ui")
    page.click("details summary >> nth=0")
    page.fill("#typed-banner", "another")
    page.click("button[value=end] >> nth=0")
    shot("server-error")
    page.goto(f"{at.experiment}/ui")
    shot("log-in")
    log_in(at.experiment, at.key)
    for name, path in PAGES.items():
        page.goto(f"{at.experiment}/ui{path}")
        shot(name)
    page.goto(f"{at.url}/ui/members")
    page.select_option("#invited-role", "owner")
    page.click("text=Make a link")
    shot("server-members")
    page.goto(page.inner_text(".secret"))
    shot("join")
    page.fill("#name", f"Ada on a {size}, {scheme}")
    for field in ("#passphrase", "#again"):
        page.fill(field, "four plain words here")
    page.click("main button")
    page.wait_for_url(f"{at.url}/ui")
    page.goto(f"{at.url}/ui/account")
    shot("account")
    page.goto(f"{at.url}/ui/history")
    shot("server-history")
    page.goto(f"{at.experiment}/ui/members")
    shot("members")
    context.close()
    return wide


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=20.0, help="of traffic before (20)")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with site(asked.seconds) as at, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        wide = [
            each
            for size in SIZES
            for scheme in SCHEMES
            for each in take(browser, at, asked.out, size, scheme)
        ]
        browser.close()
    print(f"{len([*asked.out.glob('*.png')])} pictures in {asked.out}")
    if wide:
        print(f"wider than the screen: {', '.join(wide)}")
    return 1 if wide else 0


if __name__ == "__main__":
    raise SystemExit(main())
