"""Every page: who may see it, which forms are refused, what is shown and what never is."""

import base64
import hashlib
import json
import re
import shutil
import time
from html import unescape
from importlib.resources import files
from pathlib import Path

import pytest

from discreet.privacy.attacker import attacker, hundredths, odds_text
from discreet.service.dashboard import operator_pages, page_frame
from discreet.service.dashboard.page_frame import EVERYONE, READERS, SIGNED_IN, Sessions
from discreet.service.dashboard.page_routes import PAGES
from discreet.service.storage.member_tables import SESSION_SECONDS
from service.conftest import running
from service.dashboard.visitor import EITHER, EVERY_KIND, HERE, Visitor, at, fill, visiting

OF_MEMBERS = ("/ui/join", "/ui/account")
"""Pages that a key cannot use. [test_members.py]"""
SHOWN = [path for path, _, _, methods in PAGES if "GET" in methods and path not in OF_MEMBERS]
FORMS = [path for path, _, _, methods in PAGES if "POST" in methods]
CLOSED = [(path, methods[0]) for path, _, needed, methods in PAGES if needed is not EVERYONE]


@EITHER
async def test_every_page_on_either_database(settings, released):
    async with visiting(settings) as (visitor, service):
        await fill(service)
        await released(service)
        await service.decisions.decide("caller", HERE)
        for path in (*SHOWN, "/ui/releases/1"):
            reply = await visitor.get(at(path))
            assert reply.status == 200, path
            assert reply.headers["content-security-policy"].startswith("default-src 'none'")
            assert reply.headers["cache-control"] == "no-store"
            assert "unsafe" not in reply.headers["content-security-policy"]
            assert not re.search(r"<script(?! defer src)|<style| style=| on\w+=", reply.text), path
        assert "All 2 signed entries verify" in (await visitor.get("/ui/releases")).text
        assert "of 8 decisions so far" in (await visitor.get("/ui/batches")).text
        assert "of 8 decisions" in (await visitor.get("/ui")).text


async def test_without_a_log_in_there_is_nothing(settings):
    async with running(settings()) as service:
        visitor = Visitor(service)
        for path, method in CLOSED:
            reply = await visitor.ask(method, at(path))
            assert (reply.status, reply.headers["location"], reply.text) == (303, "/ui/login", "")
            part = await visitor.ask(method, at(path), hx_request="true")
            assert (part.status, part.headers["hx-redirect"]) == (204, "/ui/login")


async def test_scopes_decide_what_is_shown(settings):
    async with visiting(settings) as (admin, service):
        for scope in ("decide", "observe", "ticket", "release:read", "audit"):
            reader, made = admin.other(), await service.create_key([scope], "")
            assert (await reader.log_in(made["key"])).status == (303 if scope == "audit" else 403)
        for path, _, needed, methods in PAGES:
            if path in ("/ui/login", "/ui/logout", *OF_MEMBERS):
                continue
            for method in methods:
                form = {"token": reader.token} if method == "POST" else None
                reply = await reader.ask(method, at(path), form)
                assert reply.status == (200 if needed in (READERS, SIGNED_IN) else 403), path
        assert "Settings" not in (await reader.get("/ui")).text


async def test_forms_from_elsewhere_are_refused(settings):
    """Those without a token, with a wrong one, or with that of another session."""
    async with visiting(settings) as (visitor, service):
        stranger = visitor.other()
        await stranger.get("/ui/login")
        for path in FORMS:
            for token in ({}, {"token": "x"}, {"token": ""}, {"token": stranger.token}):
                reply = await visitor.ask("POST", path, {"mode": "frozen", **token})
                assert reply.status == 403, path
        assert service.state.mode == "online"
        reply = await visitor.send("/ui/settings/mode", mode="frozen")
        assert (reply.status, service.state.mode) == (303, "frozen")


async def test_a_wrong_key_or_cookie_opens_nothing(settings):
    async with running(settings()) as service:
        for text in ("", "dk_", "dk_000000000000_" + "x" * 43, settings.key() + "x"):
            visitor = Visitor(service)
            reply = await visitor.log_in(text)
            assert (reply.status, 'role="alert"' in reply.text) == (401, True)
            assert text not in reply.text or len(text) < 10
            assert (await visitor.get("/ui")).status == 303
        for name in (page_frame.COOKIE, page_frame.MEMBER_COOKIE):
            for cookie in ("", f"{name}=é", f"{name}=gAAAA", f"a=b; {name}"):
                visitor.cookie = cookie
                assert (await visitor.get("/ui")).status == 303, cookie


async def test_a_session_ends(settings, monkeypatch):
    async with visiting(settings) as (visitor, service):
        kept = visitor.cookie
        await visitor.send("/ui/logout")
        assert (await visitor.get("/ui")).status == 303
        visitor.cookie = kept[:-3] + "AAA"
        assert (await visitor.get("/ui")).status == 303, "altered"
        _, _, text = kept.partition("=")
        mine = Sessions(service.state.vault.mac)
        assert mine.read(text) is not None
        assert Sessions(b"another secret").read(text) is None
        visitor.cookie = kept
        assert (await visitor.get("/ui")).status == 303, "a copy of a cookie that logged out"
        await visitor.log_in(settings.key())
        assert (await visitor.get("/ui")).status == 200, "a new one with the same key"
        await service.revoke_key(mine.read(text).key)
        assert (await visitor.get("/ui")).status == 303, "revoked"
        began = time.time()
        monkeypatch.setattr(time, "time", lambda: began + SESSION_SECONDS - 5)
        assert mine.read(text) is not None
        monkeypatch.setattr(time, "time", lambda: began + SESSION_SECONDS + 5)
        assert mine.read(text) is None, "too old"


async def test_pages_below_a_path_stay_there(settings):
    async with running(settings(prefix="/shop/bandit", window=60)) as service:
        visitor = Visitor(service)
        assert (await visitor.get("/shop/bandit/")).headers["location"] == "/shop/bandit/ui"
        assert (await visitor.get("/shop/bandit/ui")).headers["location"] == "/shop/bandit/ui/login"
        reply = await visitor.get("/shop/bandit/ui/login")
        assert "path=/shop/bandit/ui;" in reply.headers["set-cookie"].lower()
        reply = await visitor.send("/shop/bandit/ui/login", key=settings.key())
        assert (reply.status, reply.headers["location"]) == (303, "/shop/bandit/ui")
        for path in ("", "/history", "/batches", "/releases", "/explorer", "/keys", "/settings"):
            page = await visitor.get(f"/shop/bandit/ui{path}")
            assert page.status == 200
            places = re.findall(r'(?:href|src|action|hx-get|hx-post)="(/[^"]*)"', page.text)
            assert places
            assert all(each.startswith("/shop/bandit/ui") for each in places)
            assert page.text.count('aria-current="page"') == 1


async def test_a_key_is_shown_once_and_works(settings):
    async with visiting(settings) as (visitor, service):
        reply = await visitor.send("/ui/keys", scope=["decide", "audit"], label="<b>shop</b>")
        secret = re.search(r"dk_[0-9a-f]{12}_[\w-]{43}", reply.text)[0]
        assert "&lt;b&gt;shop&lt;/b&gt;" in reply.text
        assert "<b>shop</b>" not in reply.text
        again = await visitor.get("/ui/keys")
        assert secret not in again.text
        assert secret[3:15] in again.text
        assert (await Visitor(service).log_in(secret)).status == 303
        await visitor.send("/ui/keys/revoke", id=secret[3:15])
        assert (await Visitor(service).log_in(secret)).status == 401
        assert (await visitor.send("/ui/keys")).status == 422, "no scope"


async def test_the_settings_page_changes_mode_and_release(settings, released):
    async with visiting(settings) as (visitor, service):
        await fill(service)
        await released(service)
        assert (await visitor.send("/ui/settings/serving", release="0")).status == 303
        assert service.state.serving.served() == 0
        assert "An operator went back to an older release" in (await visitor.get("/ui")).text
        await visitor.send("/ui/settings/serving", release="newest")
        assert service.state.serving.served() == 1
        shown = (await visitor.get("/ui/settings?done=serving")).text
        assert "Another release decides now." in shown
        wrong = [
            ("mode", {"mode": "fast"}),
            ("serving", {"release": "99"}),
            ("serving", {"release": "one"}),
            ("burn", {"batch": "x", "typed": "x"}),
        ]
        for name, form in wrong:
            reply = await visitor.send(f"/ui/settings/{name}", **form)
            assert reply.status == 422, (name, form)
            assert 'role="alert"' in reply.text
        assert service.state.serving.served() == 1


async def test_a_batch_burns_only_when_its_number_is_typed(settings):
    async with visiting(settings) as (visitor, service):
        await service.decisions.decide("caller", HERE)
        for typed in ("", "2", "yes"):
            assert (await visitor.send("/ui/settings/burn", batch="1", typed=typed)).status == 422
        (batch,) = await service.state.read(operator_pages.every_batch)
        assert batch.state == "open"
        assert (await visitor.send("/ui/settings/burn", batch="1", typed=" 1 ")).status == 303
        (batch,) = await service.state.read(operator_pages.every_batch)
        assert batch.state == "burned"
        page = (await visitor.get("/ui/releases/1")).text
        assert "Batch given up" in page
        assert "All 2 signed entries verify" in (await visitor.get("/ui/releases")).text
        assert (await visitor.get("/ui/explorer")).status == 200, "a burn is no policy"


@pytest.mark.parametrize("spoil", ["altered", "swapped"])
async def test_a_document_that_does_not_verify_is_named(settings, released, spoil):
    async with visiting(settings) as (visitor, service):
        await fill(service)
        await released(service)
        bodies = dict(await service.state.read(operator_pages.bodies))
        wrong = bodies[1].replace(b'"records":4', b'"records":5')
        if spoil == "swapped":  # signed by us, but not what was published under that number
            wrong = bodies[0]
        await service.state.write(
            lambda c: c.execute("UPDATE documents SET body = ? WHERE number = 1", (wrong,)) and None
        )
        page = (await visitor.get("/ui/releases")).text
        assert "1 of 2 signed entries do not verify" in page
        assert page.count(">invalid<") == 1
        assert 'role="alert"' in (await visitor.get("/ui/releases/1")).text


async def test_the_explorer_has_an_input_for_every_kind_of_column(settings, released):
    async with visiting(settings, plan={"features": EVERY_KIND}) as (visitor, service):
        at = "2026-03-29T14:05"
        contexts = [{"n": n, "f": n > 9, "c": 1, "h": f"{n}", "t": at} for n in (1, 5, 20, 90)]
        for number, context in enumerate(contexts):
            decision = await service.decisions.decide("caller", context)
            await service.decisions.observe(decision.decision, number / 3)
        made = await released(service)
        plan = service.settings.plan
        page = (await visitor.get("/ui/explorer")).text
        for kind in ("range", "text", "datetime-local"):
            assert page.count(f'type="{kind}"') == 1
        missing = {f"x{place}-given": "missing" for place in (0, 1, 3)}
        all_given = {"n": 50, "f": False, "c": 2, "h": "Bern", "t": at}
        for form, context in (
            ({"x0": "50", "x1": "false", "x2": "2", "x3": "Bern"}, all_given),
            ({"x2": "3", **missing}, {"c": 9, "t": at}),
        ):
            given = {"token": visitor.token, "release": 1, "x4": at, **form}
            page = await visitor.ask("POST", "/ui/explorer", given, hx_request="true")
            assert page.status == 200, page.text
            expected = plan.policy.probabilities(made, plan.features.map(context))[0]
            found = [float(text) for text in re.findall(r'max="1" value="([^"]+)"', page.text)]
            assert found == pytest.approx(expected.tolist(), abs=1e-15)
        for form in ({"x2": "two"}, {"x4": "noon"}):
            assert (await visitor.send("/ui/explorer", **form)).status == 422, form


def timeless(text):
    return re.sub(r"\d{10}\.\d+", "time", text)


async def test_no_page_depends_on_answers(settings):
    async with visiting(settings) as (visitor, service):
        decision, _ = [await service.decisions.decide("caller", HERE) for _ in range(2)]
        before = [timeless((await visitor.get(at(path))).text) for path in SHOWN]
        await service.decisions.observe(decision.decision, 1.0)
        after = [timeless((await visitor.get(at(path))).text) for path in SHOWN]
        assert before == after


HOSTILE = (
    {"x0": "\x00"},
    {"release": "-1"},
    {"batch": "9" * 400, "typed": "9" * 400},
    {"id": "' OR 1=1"},
    {"id": "\x00"},
    {"scope": "audit", "label": "\x00\n"},
    {"mode": "\udcff".encode("utf-8", "surrogatepass")},
)


async def test_hostile_forms_get_a_page_and_no_5xx(settings):
    async with visiting(settings) as (visitor, service):
        limit = service.settings.server.body_limit
        assert (await visitor.send("/ui/login", key="x" * (limit + 1))).status == 413
        for path in FORMS:
            for form in HOSTILE:
                reply = await visitor.send(path, **form)
                assert reply.status < 500, (path, form)
                await visitor.log_in(settings.key())
        assert (await visitor.get("/ui/releases/99999999999999999999")).status == 404
        assert (await visitor.get("/ui/nothing")).status == 404


MARKUP = "<script>alert(1)</script>"


async def test_names_with_markup_are_text_in_charts_and_tables(settings, released):
    column = {"kind": "Category", "name": MARKUP, "values": [MARKUP, "other"]}
    plan = {"features": {"kind": "Schema", "fields": [column]}, "n_actions": None}
    plan |= {"actions": [MARKUP, "b"], "control": {"share": 0.25, "action": MARKUP}}
    async with visiting(settings, plan=plan, experiment=MARKUP) as (visitor, service):
        for _ in range(2):
            await fill(service, {MARKUP: MARKUP})
            await released(service)
        for path in ("/ui", "/ui/explorer", "/ui/label", "/ui/releases/0"):
            page = (await visitor.get(path)).text
            assert "<script>alert" not in page, path
            assert "&lt;script&gt;alert" in page, path


OLD_WORDS = re.compile(
    r"\b(parts?|places|slots?)\b|by the clock|whoever answers|differ so:|learned so far decides"
    r"|genesis|epoch"
)


def words(page):
    """The text that a person reads: no markup, no classes and no code."""
    text = re.sub(r"<(style|script|code).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(text))


async def read_in_words(visitor):
    for path in ("", "explorer", "history", "batches", "releases", "ledger", "releases/0"):
        found = words((await visitor.get(f"/ui/{path}".rstrip("/"))).text)
        if path == "ledger":  # the guarantee itself is in exact words, for verifiers
            found = found.partition("What the guarantee assumes")[0]
        old = OLD_WORDS.search(found)
        assert old is None, (path, found[max(0, old.start() - 60) : old.end() + 40])


async def test_pages_use_the_words_of_their_readers(settings, released):
    """At the start, in a batch, after its release, at an older one."""
    users = {"unit": "user", "batches_per_user": 3, "records_per_batch": 1}
    plan = {"control": {"share": 0.25, "action": 0}}
    async with visiting(settings, plan=plan, **users) as (visitor, service):
        await read_in_words(visitor)
        for number in range(4):
            await service.decisions.decide("caller", HERE, user=f"u{number}")
            await read_in_words(visitor)
        await released(service)
        await read_in_words(visitor)
        await service.set_serving(0)
        await read_in_words(visitor)


async def test_numbers_of_releases_agree_on_every_page(settings, released):
    """A release decides from the batch on that opens after it, and pages say so alike."""
    async with visiting(settings) as (visitor, service):
        for _ in range(2):
            await fill(service)
            await released(service)
        said = "2 releases so far"
        for path in ("/ui", "/ui/releases", "/ui/label"):
            assert said in words((await visitor.get(path)).text), path
        now = len(service.state.serving.chain.until(service.state.deciding()).releases)
        chosen = re.search(r"release (\d)( \(now\))", (await visitor.get("/ui/explorer")).text)
        assert int(chosen[1]) == now
        if now != 2:
            later = f"release {now} decides until the next batch opens"
            assert later in (await visitor.get("/ui")).text
        await service.set_serving(1)
        page = words((await visitor.get("/ui")).text)
        assert "2 releases so far; release 1 decides, as an operator chose." in page
        assert "release 1 (now)" in words((await visitor.get("/ui/explorer")).text)


async def test_every_page_links_the_label_in_words(settings, released):
    async with visiting(settings) as (visitor, service):
        assert "Nothing was published yet" in (await visitor.get("/ui")).text
        await fill(service)
        await released(service)
        ledger = await service.state.ledger()
        best = attacker(ledger.bounding_event())
        right = hundredths(best.success, best.exact)
        sentence = odds_text("decision", right, exact=best.exact)
        for path in (*SHOWN, "/ui/releases/1", "/ui/releases/999"):
            if path in ("/ui/login", "/ui/newest", "/ui/releases/{number:int}/document"):
                continue
            page = (await visitor.get(at(path))).text
            assert sentence in words(page), path
            assert 'href="/ui/label"' in page, path
        page = words((await visitor.get("/ui/label")).text)
        assert best.sentence() in page
        assert f"right thanks to the releases, {right - 50}." in page


UI = Path(str(files("discreet.service.dashboard")))
OURS = {"dashboard.css", "dashboard.js"}


def wrong(folder):
    """Files whose content, licence or record is missing or differs."""
    listed = json.loads((folder / "vendored.json").read_text())
    found = []
    for package in listed:
        if not (folder / package["licence_file"]).read_text().strip():
            found.append(package["licence_file"])
        for name, expected in package["files"].items():
            digest = hashlib.sha384((folder / name).read_bytes()).digest()
            if f"sha384-{base64.b64encode(digest).decode()}" != expected:
                found.append(name)
    known = {name for package in listed for name in package["files"]}
    known |= {package["licence_file"] for package in listed} | {"vendored.json"} | OURS
    return found + sorted({path.name for path in folder.iterdir()} - known)


def test_checksums_hold():
    assert wrong(UI / "static") == []


@pytest.mark.parametrize("name", ["htmx.min.js"])
def test_an_altered_file_is_noticed(tmp_path, name):
    shutil.copytree(UI / "static", tmp_path / "static")
    file = tmp_path / "static" / name
    file.write_bytes(file.read_bytes() + b"\n")
    assert wrong(tmp_path / "static") == [name]


def test_pages_name_no_other_place():
    for path in (*UI.glob("templates/*.html"), *(UI / "static" / name for name in OURS)):
        assert not re.search(r"https?://|//\w+\.\w", path.read_text()), path.name
