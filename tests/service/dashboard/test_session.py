"""The whole way of two people in a real browser: an owner and a viewer, on a desk and on a phone.

The owner opens the link of ``discreet serve --init``, sets up an experiment by form and invites the
viewer, who sees the lift and has no form to change anything.
"""

import os
import random
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir

import pytest

from client.browser import chromium, needs_chromium, violations
from discreet.cli.main import main
from discreet.client import Client
from discreet.service.settings import Settings
from service.conftest import time_passes
from service.dashboard.test_browser import save
from service.served import Server
from waiting import PATIENCE, until

pytestmark = needs_chromium
PASSPHRASE = "four plain words here"
DAY = 86_400
PAGES = ("", "/explorer", "/history", "/batches", "/releases", "/releases/1", "/ledger", "/label")


class Person:
    """A browser of one person; every page that is opened fits and is accessible."""

    def __init__(self, browser, width, scheme):
        view = {"width": width, "height": 800}
        self.context = browser.new_context(viewport=view, color_scheme=scheme, locale="en")
        self.page, self.width = self.context.new_page(), width
        self.page.set_default_timeout(1000 * PATIENCE)

    def opens(self, url):
        reply = self.page.goto(url)
        self.looks()
        return reply.status

    def looks(self):
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        assert violations(self.page) == [], self.page.url

    def fills(self, button, **fields):
        for name, text in fields.items():
            self.page.fill(f"#{name}", text)
        with self.page.expect_navigation():
            self.page.click(button)
        self.looks()

    def joins(self, link, name):
        assert self.opens(link) == 200
        fields = {"name": name, "passphrase": PASSPHRASE, "again": PASSPHRASE}
        self.fills("main button", **fields)


@pytest.fixture
def served(tmp_path, monkeypatch, capsys):
    """A server that was begun as the guide says, and the link of its first owner."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with chdir(tmp_path):
        assert main(["serve", "--folder", "experiments", "--init"]) == 0
    link = re.search(r"http://\S+/ui/join\S+", capsys.readouterr().out)[0]
    server = Server(tmp_path, "--folder", "experiments")
    try:
        yield server.wait(), link.replace(":8000", f":{server.port}")
    finally:
        server.stop()


def set_up(owner):
    """Fill the form and begin; the admin key. With DISCREET_SCREENSHOTS=1 the picture of the form
    in docs/images is taken again.

    At this ε the control has 96 decisions by the second release, whose number has noise of 1.4.
    """
    page = owner.page
    owner.fills("nav >> text=New experiment")
    asked = {"question": "Which greeting makes more visitors <b>book</b>?", "name": "Greeting!"}
    owner.fills("[value=add-action]", **asked, **{"action-0": "nothing", "action-1": "discount"})
    page.fill("#action-2", "newsletter")
    for name, low, high in (("age", "16", "96"), ("visits", "0", "20")):
        owner.fills("[value=add-col]")
        place = page.locator("[name=col_name]").count() - 1
        for key, text in (("name", name), ("low", low), ("high", high)):
            page.fill(f"#col-{key}-{place}", text)
    rows = [f"{16 + i % 81},{i % 21},v{i}@example.org" for i in range(81)]
    page.click("text=Suggest columns from a sample")
    owner.fills("[value=sample]", sample="\n".join(["age,visits,email", *rows]))
    assert "It identifies people" in page.inner_text("main")
    owner.fills("[value=add-rail]")
    owner.fills("aside [value=check]", **{"rail-name-0": "two words"})
    assert "must be a letter" in page.inner_text("#wrong-rail-0")
    page.fill("#rail-name-0", "complaints")
    page.fill("#rail-limit-0", "0.02")
    page.select_option("#control_action", "nothing")
    if "DISCREET_SCREENSHOTS" in os.environ:
        shown = {"question": "Which greeting makes more visitors book?", "name": "theatre"}
        owner.fills("aside [value=check]", **shown, share="30", epsilon="4")
        rails = page.locator("#rails").bounding_box()
        height = round(rails["y"] + rails["height"]) + 16
        page.set_viewport_size({"width": owner.width, "height": height})
        save(page.screenshot(), "dashboard-setup")
        for name, text in asked.items():
            page.fill(f"#{name}", text)
    owner.fills("aside [value=check]", share="30", epsilon="20", first_batch="128")
    before = page.inner_text("#forecast")
    page.fill("#per_day", "64")
    page.keyboard.press("Tab")  # no button: the forecast follows what was typed
    until(lambda: page.inner_text("#forecast") != before)
    page.check("[name=outcome][value=reward]")
    assert page.is_visible("#low")
    page.check("[name=outcome][value=click]")
    assert not page.is_visible("#low"), "a click has no range"
    page.check("[name=actions_kind][value=items]")
    page.fill("#items", "x" * 300_000)
    page.click("[value=create]")
    assert page.is_visible("[data-too-large]"), "too large to be sent, and nothing is lost"
    page.fill("#items", "")
    page.check("[name=actions_kind][value=names]")
    owner.fills("[value=create]")
    assert "small letters" in page.inner_text("#wrong-name")
    owner.fills("[value=file]", name="greeting")
    assert 'name = "complaints"' in page.input_value("#toml")
    owner.fills("[value=form]")
    owner.fills("[value=create]")
    assert "greeting has begun" in page.inner_text("main")
    return page.inner_text(".secret")


def traffic(base, key, settings):
    """Seeded visitors until two releases are published; the days of a window pass at once."""
    draws = random.Random(1)
    with Client(base, key) as client:
        for releases in (1, 2):
            while not any(each["state"] == "sealed" for each in client.status()["batches"]):
                for _ in range(16):
                    visits(client, draws)
            time_passes(settings, 2 * DAY)
            until(lambda least=releases: client.status()["releases"] >= least)
        return client.lift()


def visits(client, draws):
    """One visitor, who likes the discount if young, and complains sometimes."""
    context = {"age": draws.randint(16, 96), "visits": draws.randint(0, 20)}
    decision = client.decide(context)
    likely = 0.8 if (decision.action == "discount") == (context["age"] < 50) else 0.2
    if decision.stored:
        complains = {"complaints": float(draws.random() < 0.1)}
        client.observe(decision, reward=float(draws.random() < likely), guardrails=complains)


def test_an_owner_sets_up_and_a_viewer_reads(served):
    server, link = served
    url = f"http://127.0.0.1:{server.port}"
    base = f"{url}/v1/experiments/greeting"
    with chromium() as browser:
        owner, viewer = Person(browser, 1280, "light"), Person(browser, 390, "dark")
        owner.joins(link, "Olga")
        owner.fills("text=Sign out")
        owner.fills("main button", name="olga", passphrase=PASSPHRASE)
        key = set_up(owner)
        owner.opens(f"{base}/ui/members")
        owner.fills("text=Make a link")
        invitation = owner.page.inner_text(".secret")

        settings = Settings.read(server.folder / "experiments/experiments/greeting/experiment.toml")
        compared = ThreadPoolExecutor(1).submit(traffic, base, key, settings).result()
        owner.opens(f"{url}/ui")
        owner.fills("#name-greeting a")
        assert len(compared["guardrails"]) == 1
        shown = owner.page.inner_text("main")
        assert "Which greeting makes more visitors <b>book</b>?" in shown
        assert "complaints" in shown
        for part in ("Policy", "Control, “nothing”", "Difference"):
            assert part in owner.page.inner_text(".answer .pair")

        viewer.joins(invitation, "Vera")
        assert "greeting" in viewer.page.inner_text("main")
        assert "New experiment" not in viewer.page.inner_text("body")
        for path in PAGES:
            assert viewer.opens(f"{base}/ui{path}") == 200, path
            assert forms(viewer.page) in ([], ["explorer"]), path
        for path in ("/settings", "/members", "/keys"):
            assert viewer.opens(f"{base}/ui{path}") == 403
            assert "your role here is viewer" in viewer.page.inner_text("main")
        viewer.page.goto("about:blank")  # an open page would notice the end by itself
        owner.opens(f"{url}/ui/members")
        owner.fills("[aria-label='Sign out Vera everywhere']")
        assert "The sessions were ended." in owner.page.inner_text("main")
        viewer.opens(f"{base}/ui")
        assert viewer.page.url == f"{base}/ui/login"
        owner.opens(f"{url}/ui/history")
        assert "Vera" in owner.page.inner_text("main")
        owner.opens(f"{base}/ui/history")
        assert "Olga" in owner.page.inner_text("main")


def forms(page):
    """Last words of the addresses that the forms of a page lead to, beside that to sign out."""
    found = page.eval_on_selector_all("main form", "all => all.map((each) => each.action)")
    return [each.rpartition("/")[2] for each in found]
