"""The dashboard in a real browser: keyboard, sliders, colours, phone, and no request elsewhere.

With DISCREET_SCREENSHOTS=1 in the environment the pictures in docs/images are taken again.
"""

import os
import re
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from billboard.browser import chromium, needs_chromium
from discreet.billboard.client import Billboard, Client
from discreet.service.runtime import lifecycle
from discreet.service.settings import Settings
from discreet.traffic.contexts import contexts
from discreet.traffic.open_loop import Habits, play
from service.served import Server

IMAGES = Path(__file__).parents[3] / "docs" / "images"
pytestmark = needs_chromium
SETTINGS = """
experiment = "welcome"
window = 1
settle = 0
[plan]
n_actions = 3
first_batch = 32
[plan.budget]
epsilon = 2.0
delta = 1e-6
[plan.features]
kind = "Schema"
[[plan.features.fields]]
kind = "Number"
name = "hour"
low = 0
high = 24
[[plan.features.fields]]
kind = "Number"
name = "visits"
low = 0
high = 20
[[plan.features.fields]]
kind = "Category"
name = "device"
values = ["phone", "tablet", "desk"]
other = true
"""
RELEASES = 4


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
            data = load("linear", rows=2000)
            rows, labels = contexts(data, client.schema()), data.labels.tolist()
            start, deadline = 0, time.monotonic() + 90
            while (status := client.status())["releases"] < RELEASES:
                assert time.monotonic() < deadline, status["text"]
                if any(batch["state"] == "sealed" for batch in status["batches"]):
                    time.sleep(0.1)
                    continue
                part = slice(start, start + 64)
                play(client, rows[part], labels[part], rate=400, habits=Habits())
                start = part.stop
            play(client, rows[-200:], labels[-200:], rate=400, habits=Habits())
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


def shares(page):
    return page.eval_on_selector_all("#answer progress", "all => all.map((one) => one.value)")


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
            if shown[0] == "Explorer":
                page.keyboard.press("Enter")
                break
        assert {"Status", "Batches", "Releases", "Ledger", "Explorer"} <= set(reached)
        page.wait_for_selector("#answer progress")
        before = shares(page)
        page.focus("#x0")
        with page.expect_response(re.compile("/ui/explorer")):
            for _ in range(30):
                page.keyboard.press("ArrowRight")
        page.wait_for_timeout(300)
        assert shares(page) != before
        page.focus("header button")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ui/login")
        page.goto(f"{site[0]}/ui/ledger")
        assert page.url.endswith("/ui/login")


def test_sliders_show_what_the_policy_does(browser, site):
    url, key = site
    with Client(url, key) as client:
        board = Billboard(url, client.releases()["key"], key=key)
    with visit(browser, site) as made:
        page = made.page
        page.goto(f"{url}/ui/explorer")
        page.select_option("#release", str(RELEASES))
        seen = []
        for hour, visits, device in ((0, 0, "phone"), (24, 3, "desk"), (12, 20, "tablet")):
            with page.expect_response(re.compile("/ui/explorer")):
                page.fill("#x0", str(hour))
                page.fill("#x1", str(visits))
                page.select_option("#x2", device)
            context = {"hour": hour, "visits": visits, "device": device}
            expected = board.probabilities(context, release=RELEASES).tolist()
            deadline = time.monotonic() + 10
            while shares(page) != pytest.approx(expected, abs=1e-12):
                assert time.monotonic() < deadline, context
                page.wait_for_timeout(50)
            assert page.inner_text("output[for=x0]") == str(hour)
            seen.append(tuple(expected))
        assert len(set(seen)) == 3
        assert page.locator("#answer canvas").count() == 2
        assert made.elsewhere() == []
        assert made.complaints == []


def test_nothing_leaves_and_nothing_is_complained_about(browser, site):
    with visit(browser, site) as made:
        for path in ("", "/batches", "/releases", "/releases/1", "/ledger", "/keys", "/settings"):
            made.page.goto(f"{site[0]}/ui{path}")
            made.page.wait_for_load_state("networkidle")
        assert made.elsewhere() == []
        assert made.complaints == []


def test_a_page_that_calls_elsewhere_is_caught_and_stopped(browser, site):
    """The check above can fail, and the browser obeys our policy."""
    with visit(browser, site) as made:
        made.page.evaluate("fetch('https://example.org/').catch(() => null)")
        made.page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'),"
            " {textContent: 'document.title = 1'}))"
        )
        made.page.wait_for_timeout(200)
        assert any("example.org" in text for text in made.complaints)
        assert any("inline script" in text for text in made.complaints)
        assert made.page.title() != "1"


def test_the_status_renews_itself(browser, site):
    with visit(browser, site) as made:
        made.page.evaluate("document.querySelector('.lead').textContent = 'old'")
        made.page.locator(".lead", has_text="Batch").wait_for(timeout=10_000)


def test_a_key_is_made_and_revoked(browser, site):
    with visit(browser, site) as made:
        page = made.page
        page.goto(f"{site[0]}/ui/keys")
        page.check("input[value=audit]")
        page.fill("#label", "browser")
        page.click("form[action='/ui/keys'] button")
        text = page.inner_text(".secret")
        assert Client(site[0], text).status()
        page.on("dialog", lambda dialog: dialog.accept())
        page.click(f"[aria-label='Revoke key {text[3:15]}']")
        page.wait_for_selector(".state.revoked")
        assert page.locator(".secret").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "name"), [(1180, "desktop"), (375, "phone")])
def test_every_page_fits_and_can_be_read(browser, site, scheme, width, name):
    with visit(browser, site, width=width, scheme=scheme, height=760) as made:
        page = made.page
        for path in ("", "/batches", "/releases", "/ledger", "/explorer", "/keys", "/settings"):
            page.goto(f"{site[0]}/ui{path}")
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.evaluate(CONTRAST) >= 4.5, path
            for field in page.locator("input:not([type=hidden]), select").all():
                assert field.evaluate("one => one.labels.length"), path
            if "DISCREET_SCREENSHOTS" in os.environ and path in SHOTS[name]:
                word = path.strip("/") or "status"
                file = IMAGES / f"dashboard-{word}-{name}-{scheme}.png"
                page.screenshot(path=file, full_page=True)


SHOTS = {"desktop": ("", "/batches", "/ledger", "/explorer"), "phone": ("", "/explorer")}
# The lowest contrast of a text with what is behind it, by the formula of WCAG 2.
CONTRAST = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    const colour = getComputedStyle(one).backgroundColor;
    return colour !== "rgba(0, 0, 0, 0)" || !one.parentElement ? colour : behind(one.parentElement);
  };
  let lowest = 21;
  for (const one of document.querySelectorAll("main *, header *, footer")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !one.getClientRects().length || one.tagName === "OPTION") continue;
    const pair = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => x - y);
    lowest = Math.min(lowest, (pair[1] + 0.05) / (pair[0] + 0.05));
  }
  return lowest;
}"""
