"""The dashboard in a real browser: keyboard, a slider, colours, phone, axe-core, stale pages; no
request elsewhere.

With DISCREET_SCREENSHOTS=1 in the environment the pictures in docs/images are taken again.
"""

import io
import os
import re
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from client.browser import chromium, needs_chromium, violations
from discreet.client import Client
from discreet.design.outcome import declared
from discreet.lab.traffic import Habits, contexts, labels, play
from discreet.service.runtime import lifecycle
from discreet.service.settings import Settings
from service.served import Server
from waiting import PATIENCE

IMAGES = Path(__file__).parents[3] / "docs" / "images"
pytestmark = needs_chromium
SETTINGS = """
experiment = "welcome"
question = "Which message brings people back?"
window = 0.3
settle = 0
internal_metrics = true
[plan]
actions = ["none", "mail", "call"]
outcome = { kind = "Reward", low = 0, high = 50 }
first_batch = 32
control = { share = 0.2, action = "none" }
budget = { epsilon = 2.0, delta = 1e-6 }
[plan.features]
kind = "Schema"
fields = [
  { kind = "Number", name = "hour", low = 0, high = 24 },
  { kind = "Number", name = "visits", low = 0, high = 20 },
  { kind = "Category", name = "device", values = ["phone", "tablet", "desk"], other = true },
]
"""
RELEASES = 12 if "DISCREET_SCREENSHOTS" in os.environ else 4
PAGES = (
    *("", "/explorer", "/history", "/batches", "/releases", "/releases/0", "/releases/1"),
    *("/ledger", "/label", "/keys", "/settings"),
)
REFUSED = "/releases/999"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Address and admin key of a service with a few releases and a batch under way."""
    from discreet.data import load

    folder = tmp_path_factory.mktemp("site")
    (folder / "experiment.toml").write_text(SETTINGS)
    key = lifecycle.begin(Settings.read(folder / "experiment.toml"))
    server = Server(folder).wait()
    url = f"http://127.0.0.1:{server.port}"
    try:
        with Client(url, key) as client:
            data = load("linear", rows=16_000 if RELEASES > 4 else 2_000)
            schema = client.schema()
            rows, best = contexts(data, schema), labels(data, schema)
            received = {"rate": 400, "habits": Habits(), "outcome": declared(schema)}
            start = 0
            while (status := client.status())["releases"] < RELEASES:
                if any(batch["state"] == "sealed" for batch in status["batches"]):
                    time.sleep(0.1)
                    continue
                part = slice(start, start + 64)
                play(client, rows[part], best[part], **received)
                start = part.stop
            play(client, rows[-200:], best[-200:], **received)
        yield url, key
    finally:
        server.stop()


@pytest.fixture(scope="module")
def browser(site):  # noqa: ARG001  (played first: a browser keeps the event loop)
    with chromium() as opened:
        yield opened


class Visit:
    """A page with everything that the browser asked for and complained about."""

    def __init__(self, page, url):
        self.page, self.url = page, url
        self.requests, self.complaints = [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def elsewhere(self):
        return [url for url in self.requests if not url.startswith((self.url, "data:"))]


@contextmanager
def visit(browser, site, *, width=1180, height=760, scheme="light", log_in=True):
    url, key = site
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, locale="en"
    )
    context.set_default_timeout(1000 * PATIENCE)
    made = Visit(context.new_page(), url)
    try:
        made.page.goto(f"{url}/ui")
        if log_in:
            made.page.fill("#key", key)
            made.page.click("button")
            made.page.wait_for_url(f"{url}/ui")
        yield made
    finally:
        context.close()


def soon(page, found):
    """Wait for an event, while the browser goes on."""
    end = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def test_the_whole_way_by_keyboard(browser, site):
    with visit(browser, site, log_in=False) as made:
        page = made.page
        assert page.evaluate("document.activeElement.id") == "key"
        page.keyboard.type(site[1])
        page.keyboard.press("Enter")
        page.wait_for_selector("nav")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["x"] >= 0, "the link is seen when it is reached"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.reload()
        reached = []
        for _ in range(12):
            page.keyboard.press("Tab")
            shown = page.evaluate(
                "[document.activeElement.textContent.trim(),"
                " getComputedStyle(document.activeElement).outlineWidth]"
            )
            reached.append(shown[0])
            assert shown[1] == "3px" or shown[0] == "", shown
            if shown[0] == "Who gets what":
                page.keyboard.press("Enter")
                break
        assert "Overview" in reached
        page.wait_for_selector("#answer progress")
        shares = "all => all.map((one) => one.value)"
        before = page.eval_on_selector_all("#answer progress", shares)
        page.focus("#x0")
        with page.expect_response(re.compile("/ui/explorer")):
            for _ in range(30):
                page.keyboard.press("ArrowRight")
        soon(page, lambda: page.eval_on_selector_all("#answer progress", shares) != before)
        page.focus("header button")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ui/login")
        page.goto(f"{site[0]}/ui/ledger")
        assert page.url.endswith("/ui/login")


def test_a_page_that_calls_elsewhere_is_caught_and_stopped(browser, site):
    """The check above can fail, and the browser obeys our policy."""
    with visit(browser, site) as made:
        made.page.evaluate("fetch('https://example.org/').catch(() => null)")
        made.page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'),"
            " {textContent: 'document.title = 1'}))"
        )
        for word in ("example.org", "inline script"):
            soon(made.page, lambda: any(word in text for text in made.complaints))  # noqa: B023
        assert made.page.title() != "1"


def test_a_page_shows_that_it_is_out_of_date(browser, site):
    with visit(browser, site) as made:
        page = made.page
        page.clock.install()
        page.goto(f"{site[0]}/ui/releases")
        page.context.set_offline(True)
        page.clock.run_for(6_000)
        page.locator("#stale.lost", has_text="has not answered since").wait_for()
        page.context.set_offline(False)
        page.clock.run_for(6_000)
        page.locator("#stale:empty").wait_for(state="attached")
        page.evaluate("document.getElementById('stale').dataset.newest = 1")
        page.clock.run_for(6_000)
        page.locator("#stale", has_text="newer release").wait_for()
        page.click("#stale a")
        page.wait_for_function("document.getElementById('stale').dataset.newest > 1")
        page.goto(f"{site[0]}/ui")
        page.evaluate("document.getElementById('stale').dataset.newest = 1")
        with page.expect_navigation():  # the overview renews itself
            page.clock.run_for(6_000)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_fits_is_accessible_and_loads_nothing_else(browser, site, width, scheme):
    with visit(browser, site, width=width, scheme=scheme, log_in=False) as made:
        assert violations(made.page) == [], "the log-in"
    with visit(browser, site, width=width, scheme=scheme, height=760) as made:
        page = made.page
        for path in (*PAGES, REFUSED):
            page.goto(f"{site[0]}/ui{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert violations(page) == [], path
            if "DISCREET_SCREENSHOTS" in os.environ and path in SHOTS and scheme == "light":
                save(page.screenshot(full_page=True), f"dashboard-{path[1:] or 'overview'}")
        assert made.elsewhere() == []
        assert [text for text in made.complaints if "404 (Not Found)" not in text] == []
        assert len(made.complaints) == 1, "the browser notes the page that is refused"
        page.evaluate("document.querySelector('h1').outerHTML = '<img src=data:,>'")
        assert violations(page), "axe-core can find something"


def test_the_result_prints_without_scripts_and_in_light_colours(browser, site):
    """One sheet of paper wide, with charts and without what can only be clicked."""
    context = browser.new_context(
        viewport={"width": 688, "height": 900}, color_scheme="dark", java_script_enabled=False
    )
    context.set_default_timeout(1000 * PATIENCE)
    try:
        page = context.new_page()
        page.goto(f"{site[0]}/ui")
        page.fill("#key", site[1])
        page.click("button")
        page.wait_for_url(f"{site[0]}/ui")
        page.emulate_media(media="print", color_scheme="dark")
        for hidden in ("header", "#under-way", "[data-print]"):
            assert not page.locator(hidden).is_visible(), hidden
        for shown in (".answer .big", "figure svg[role=img] >> nth=0", "footer a[href$='/label']"):
            assert page.locator(shown).is_visible(), shown
        assert page.locator("figure details table").count() >= 1
        wide = page.evaluate("document.documentElement.scrollWidth")
        colour = page.evaluate("getComputedStyle(document.body).color")
        assert wide <= 688
        assert colour == "rgb(35, 33, 29)", "dark letters on white paper"
        assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    finally:
        context.close()


SHOTS = ("", "/explorer")


def save(picture, name):
    """A small file: few colours are enough for a page."""
    from PIL import Image

    reduced = Image.open(io.BytesIO(picture)).convert("RGB").quantize(128)
    reduced.save(IMAGES / f"{name}.png", optimize=True)
