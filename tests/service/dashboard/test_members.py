"""Members: who signs in, with which rights, through which proxy, and when the rights end."""

import asyncio
import json
import re
import threading
from contextlib import asynccontextmanager, closing
from html import unescape

import pytest

from discreet.errors import InvalidInput
from discreet.service import membership
from discreet.service.dashboard.page_frame import (
    ADMIN,
    EVERYONE,
    OWNERS,
    READERS,
    SIGNED_IN,
)
from discreet.service.dashboard.page_routes import PAGES
from discreet.service.experiment_file import FOLDER_EXAMPLE
from discreet.service.membership import (
    PER_ADDRESS,
    PER_NAME,
    RETURNS,
    Throttle,
    check_passphrase,
    hashed,
    verified,
)
from discreet.service.secrets.vault import Vault
from discreet.service.settings import ServerSettings
from discreet.service.storage.api_keys import DATABASE, VAULT
from discreet.service.storage.locations import open_database
from discreet.service.storage.member_tables import MemberTables
from discreet.service.storage.sqlite import Sqlite
from service.conftest import dump, running, set_back
from service.dashboard.visitor import EITHER, Visitor, at
from service.hosting import Folder, hosting

PASSPHRASE = "four plain words here"
CHOSEN = {"passphrase": PASSPHRASE, "again": PASSPHRASE}
HEADER = {"sign_in_header": "X-Webauth-User", "sign_in_proxies": ["10.0.0.5", "fd00::/8"]}


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch):
    """Hashes that take no time; one test has those of the product."""
    cheap = membership.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(membership, "HASHER", cheap)


def changed(place, operation):
    """Change the members of a service as a command does: ``place`` are settings or a folder."""
    if isinstance(place, Folder):
        database, vault = Sqlite(place.path / DATABASE), Vault(place.path / VAULT)
    else:
        database, vault = open_database(place), Vault(place.place(place.vault))
    tables = MemberTables(database, vault)
    with closing(database.connect()) as connection:
        return tables.change(connection, lambda c: operation(tables, c))


def members_of(place):
    return {each.name: each for each in changed(place, lambda t, c: t.listed(c))}


def add(place, **people):
    """Members by name, each with a role, or with roles for experiments by name."""

    def operation(tables, connection):
        for name, role in people.items():
            everywhere, grants = (role, {}) if isinstance(role, str) else ("none", role)
            email = f"{name.split()[0].lower()}@example.org"
            member = tables.add(connection, name, email, hashed(PASSPHRASE), everywhere)
            for experiment, granted in grants.items():
                tables.set_role(connection, member.id, granted, experiment)

    changed(place, operation)


@asynccontextmanager
async def serving(made, **people):
    """Somebody who is not signed in to a service with these members, and the service."""
    add(made, **people)
    async with running(made) as service:
        yield Visitor(service), service


async def signed_in(visitor, name, passphrase=PASSPHRASE, at=""):
    """Another visitor of the same application, with the reply to the sign-in."""
    other = visitor.other()
    other.reply = await enter(other, name, passphrase, at)
    if other.reply.status == 303:
        await other.get(f"{at}/ui/account")
    return other


async def enter(visitor, name, passphrase=PASSPHRASE, at=""):
    await visitor.get(f"{at}/ui/login")
    return await visitor.send(f"{at}/ui/login", name=name, passphrase=passphrase)


async def invited(owner, at="", **form):
    """The address of the link that the page shows after an invitation or a reset."""
    page = await owner.send(f"{at}/ui/members", **{"what": "invite", "expires_in": "7d"} | form)
    return unescape(re.search(r"http://localhost(/ui/join[^<]+)", page.text)[1]), page


@EITHER
async def test_each_role_has_its_pages(settings):
    needs = {SIGNED_IN: 0, READERS: 1, ADMIN: 2, OWNERS: 3}
    people = {"None": "none", "Vera": "viewer", "Ed": "editor", "Ada": "owner"}
    async with serving(settings(), **people) as (guest, _):
        for rank, (name, role) in enumerate(people.items()):
            visitor = await signed_in(guest, name)
            for path, _, needed, methods in PAGES:
                if needed is EVERYONE or path == "/ui/logout":
                    continue
                for method in methods:
                    form = {"token": visitor.token} if method == "POST" else None
                    reply = await visitor.ask(method, at(path), form)
                    refused = rank < needs[needed]
                    assert (reply.status == 403) == refused, (role, method, path)
                    assert reply.status < 500
                    if refused:
                        assert f"needs the role {needed}; your role here is {role}" in reply.text
            page = (await visitor.get("/ui/account")).text
            assert ("/ui/settings" in page) == (rank >= 2)
            assert ("/ui/members" in page) == (rank >= 3)


async def test_a_viewer_changes_nothing_and_an_editor_is_named_in_the_history(settings):
    people = {"Vera": "viewer", "Ed <b>it</b>": "editor"}
    async with serving(settings(), **people) as (guest, service):
        viewer = await signed_in(guest, "vera")
        assert (await viewer.send("/ui/settings/mode", mode="frozen")).status == 403
        assert service.state.mode == "online"
        editor = await signed_in(guest, "ED@example.org")
        assert (await editor.send("/ui/settings/mode", mode="frozen")).status == 303
        assert service.state.mode == "frozen"
        history = (await viewer.get("/ui/history")).text
        assert "<b>it</b>" not in history
        lines = re.findall(r'"What">(.*?)</th>\s*<td data-label="Who">(.*?)</td>', history)
        assert ("Set to paused", "Ed &lt;b&gt;it&lt;/b&gt;") in lines
        (change,) = [each for each in await service.changes() if each.what == "mode changed"]
        assert (change.by[:2], change.label) == ("m_", "Ed <b>it</b>")


async def test_logs_have_the_id_and_never_a_passphrase(settings, capfd):
    made = settings()
    async with serving(made, Ed="editor") as (guest, _):
        editor = await signed_in(guest, "Ed")
        await editor.send("/ui/settings/mode", mode="frozen")
        await enter(guest, "Ed", "a wrong but long one")
    id, text = members_of(made)["Ed"].id, capfd.readouterr().err
    lines = [json.loads(line) for line in text.splitlines()]
    events = [(each["event"], each["by"]) for each in lines if "by" in each]
    assert events == [("logged in", id), ("mode changed", id)]
    assert "authentication refused" in {each["event"] for each in lines}
    for secret in (PASSPHRASE, "a wrong but long one"):
        assert secret not in text


async def test_a_session_is_new_ends_and_does_not_come_back(settings):
    async with serving(settings(), Ada="owner") as (visitor, _):
        await visitor.get("/ui/login")
        stranger = visitor.other()
        stranger.cookie = visitor.cookie
        reply = await enter(visitor, "ada")
        assert (reply.status, reply.headers["location"]) == (303, "/ui")
        cookie = reply.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
        assert (await stranger.get("/ui")).status == 303, "prepared before: it gains no rights"
        other = await signed_in(visitor, "Ada")
        page = (await other.get("/ui/account")).text
        assert page.count("End it") == 1
        (id,) = re.findall('name="id" value="([^"]+)"', page)
        await other.send("/ui/account", what="end", id=id)
        assert (await visitor.get("/ui")).headers["location"] == "/ui/login"
        assert (await other.get("/ui")).status == 200
        kept = other.cookie
        await other.send("/ui/logout")
        other.cookie = kept
        assert (await other.get("/ui")).status == 303, "a copy of the cookie"


async def test_behind_https_cookies_are_for_https(settings):
    async with serving(settings(), Ada="viewer") as (guest, _):
        ways = {"name": "Ada", "passphrase": PASSPHRASE}, {"key": settings.key()}
        for scheme, given in ((each, way) for each in ("https", "http") for way in ways):
            visitor = guest.other()
            replies = [await visitor.get("/ui/login", x_forwarded_proto=scheme)]
            form = {"token": visitor.token, **given}
            replies += [await visitor.ask("POST", "/ui/login", form, x_forwarded_proto=scheme)]
            assert replies[1].status == 303
            for reply in replies:
                words = reply.headers["set-cookie"].split("; ")
                assert ("Secure" in words) == (scheme == "https")
                assert "HttpOnly" in words
            if "key" in given:
                assert {"SameSite=strict", "Path=/ui"} <= {*words}


async def test_after_a_sign_in_no_other_site(settings):
    own = ("/ui/history?x=1", "/ui/../..//x")
    links = ("//evil.example/ui", "https://evil.example/ui/", "/v1/status", *own)
    links += ("/uix", "/ui/\r\nX: y", "/ui/é")
    async with serving(settings(), Ada="viewer") as (guest, _):
        for link in links:
            for way in ({"name": "Ada", "passphrase": PASSPHRASE}, {"key": settings.key()}):
                visitor = guest.other()
                await visitor.get("/ui/login")
                reply = await visitor.send("/ui/login", next=link, **way)
                place = link if link in own else "/ui"
                assert (reply.status, reply.headers["location"]) == (303, place), link


async def test_forms_of_members_need_the_token_of_their_session(settings):
    async with serving(settings(), Ada="owner") as (guest, _):
        owner, other = [await signed_in(guest, "Ada") for _ in range(2)]
        for path, _, needed, methods in PAGES:
            if "POST" in methods and needed is not EVERYONE:
                for token in ("", "x", other.token):
                    assert (await owner.ask("POST", path, {"token": token})).status == 403, path
        for path in ("/ui/login", "/ui/join"):
            assert (await guest.ask("POST", path, {})).status == 403


@pytest.mark.parametrize("ending", ["removed", "demoted", "passphrase", "owner"])
async def test_sessions_end_with_the_rights(settings, ending):
    made = settings()
    async with serving(made, Ada="owner", Eve="owner") as (guest, _):
        owner, eve = [await signed_in(guest, name) for name in ("Ada", "Eve")]
        if ending == "removed":
            await asyncio.to_thread(changed, made, lambda t, c: t.remove(c, "Ada"))
        elif ending == "demoted":
            await eve.send("/ui/members", what="role", id="Ada", role="viewer")
        elif ending == "owner":
            await eve.send("/ui/members", what="end", id="Ada")
        else:
            hash = hashed("another long passphrase")
            await asyncio.to_thread(changed, made, lambda t, c: t.set_hash(c, "Ada", hash))
        assert (await owner.get("/ui")).headers.get("location") == "/ui/login"
        assert (await eve.get("/ui")).status == 200
        again = (await signed_in(guest, "Ada")).reply.status
        assert again == (401 if ending in ("removed", "passphrase") else 303)


async def test_the_last_owner_stays(settings):
    async with serving(settings(), Ada="owner", Ed="editor") as (guest, _):
        owner = await signed_in(guest, "Ada")
        for form in ({"what": "role", "role": "viewer"}, {"what": "remove"}):
            reply = await owner.send("/ui/members", id="Ada", **form)
            assert (reply.status, "Ada is the last one" in reply.text) == (422, True)
        assert (await owner.get("/ui/members")).status == 200
        await owner.send("/ui/members", what="role", id="Ed", role="owner")
        assert (await owner.send("/ui/members", what="remove", id="Ada")).status == 303
        assert (await owner.get("/ui")).status == 303


@EITHER
def test_two_owners_who_demote_each_other_leave_one(settings):
    made, names = settings(), ("Ada", "Eve")
    add(made, **dict.fromkeys(names, "owner"))
    begin, refused = threading.Barrier(2), []

    def demote(name):
        begin.wait()
        try:
            changed(made, lambda t, c: t.set_role(c, name, "viewer"))
        except InvalidInput:
            refused.append(name)

    threads = [threading.Thread(target=demote, args=(name,)) for name in names]
    [each.start() for each in threads], [each.join() for each in threads]
    assert len(refused) == 1
    assert sorted(each.role for each in members_of(made).values()) == ["owner", "viewer"]


@EITHER
async def test_an_invitation_works_once(settings):
    async with serving(settings(), Ada="owner") as (guest, _):
        owner = await signed_in(guest, "Ada")
        link, _ = await invited(owner, role="editor", expires_in="1d")
        assert link not in (await owner.get("/ui/members")).text
        assert "invited as editor" in (await guest.get(link)).text
        form = {"code": link.partition("=")[2], "name": "Gus <i>", "email": "gus@example.org"}
        for passphrase, again in (("short", "short"), (PASSPHRASE, "other"), ("a" * 20, "a" * 20)):
            reply = await guest.send("/ui/join", **form, passphrase=passphrase, again=again)
            assert (reply.status, "passphrase must" in reply.text.lower()) == (422, True)
            assert "gus@example.org" in reply.text, "nothing typed is lost"
            assert passphrase not in reply.text
        taken = await guest.send("/ui/join", **form | {"name": "ADA"}, **CHOSEN)
        assert (taken.status, "member has it already" in taken.text) == (422, True)
        assert (await guest.send("/ui/join", **form, **CHOSEN)).status == 303
        assert (await guest.get("/ui/settings")).status == 200
        late = guest.other()
        assert (await late.get(link)).status == 410
        await late.get("/ui/login")
        assert (await late.send("/ui/join", **form, **CHOSEN)).status == 410
        shown = (await owner.get("/ui/members")).text
        assert "Gus &lt;i&gt;" in shown
        assert "<i>" not in shown


async def test_invitations_end_and_are_withdrawn(settings):
    made = settings()
    async with serving(made, Ada="owner") as (guest, _):
        owner = await signed_in(guest, "Ada")
        for role, lasts in (("emperor", "1d"), ("viewer", "soon")):
            reply = await owner.send("/ui/members", what="invite", role=role, expires_in=lasts)
            assert reply.status == 422
        link, page = await invited(owner, role="viewer")
        (id,) = re.findall(
            'value="withdraw"><input type="hidden" name="id" value="(.+?)"', page.text
        )
        assert id not in link
        await owner.send("/ui/members", what="withdraw", id=id)
        assert (await guest.get(link)).status == 410
        code = changed(made, lambda t, c: t.invite(c, "viewer", expires_in="1s"))
        old = "UPDATE invitations SET expires = expires - 2"
        changed(made, lambda _, c: c.execute(old) and None)
        assert (await guest.get(f"/ui/join?code={code}")).status == 410


async def test_a_link_for_a_new_passphrase(settings):
    async with serving(settings(), Ada="owner", Ed="editor") as (guest, _):
        owner, editor = [await signed_in(guest, name) for name in ("Ada", "Ed")]
        link, _ = await invited(owner, what="reset", id="Ed")
        assert "For Ed." in (await guest.get(link)).text
        new = "an entirely new one"
        form = {"code": link.partition("=")[2], "passphrase": new, "again": new}
        assert (await guest.send("/ui/join", **form, name="Ada")).status == 303
        assert (await editor.get("/ui")).status == 303, "older sessions have ended"
        assert (await signed_in(guest, "Ed")).reply.status == 401
        assert (await signed_in(guest, "Ed", new)).reply.status == 303
        assert (await owner.get("/ui")).status == 200
        for current, status in (("not the right one", 401), (PASSPHRASE, 303)):
            form = {"current": current, "passphrase": new, "again": new}
            assert (await owner.send("/ui/account", **form)).status == status
        assert (await signed_in(guest, "Ada", new)).reply.status == 303
        assert "Ada" in (await owner.get("/ui/members")).text


async def test_wrong_passphrases_are_throttled_by_name_and_address(settings, monkeypatch):
    now = [0.0]
    async with serving(settings(), Ada="owner", Eve="owner") as (guest, _):
        access = next(each for each in guest.app.routes if getattr(each, "path", "") == "/ui")
        members = access.endpoint.access.members
        for name, most in (("_names", PER_NAME), ("_addresses", PER_ADDRESS)):
            monkeypatch.setattr(members, name, Throttle(most, clock=lambda: now[0]))
        visitors = [guest.other(f"10.1.0.{i}") for i in range(PER_NAME + 1)]
        replies = [await enter(each, "ada", "a wrong passphrase") for each in visitors]
        assert [each.status for each in replies] == [401] * PER_NAME + [429]
        assert "Try again in 1 min." in replies[-1].text
        assert (await enter(visitors[0], "ADA")).status == 429, "the right one too"
        assert (await enter(visitors[0], "Eve")).status == 303, "others are not concerned"
        now[0] += RETURNS
        assert (await enter(visitors[1], "Ada")).status == 303, "a right one costs nothing"
        assert (await enter(visitors[2], "Ada")).status == 303
        one = guest.other("10.2.0.1")
        statuses = [
            (await enter(one, f"nobody {i}", "a wrong passphrase")).status
            for i in range(PER_ADDRESS + 1)
        ]
        assert statuses == [401] * PER_ADDRESS + [429]
        assert (await enter(guest.other("10.2.0.2"), "Eve")).status == 303


async def test_an_unknown_name_takes_the_same_work(settings, monkeypatch):
    made = settings()
    changed(made, lambda t, c: t.add(c, "Proxied", "", "", "viewer"))  # without a passphrase
    checked = []

    class Counting(type(membership.HASHER)):
        def verify(self, hash, passphrase):
            checked.append(hash.rpartition("$")[0].rpartition("$")[0])
            return super().verify(hash, passphrase)

    monkeypatch.setattr(membership, "HASHER", Counting(time_cost=1, memory_cost=8, parallelism=1))
    async with serving(made, Ada="owner") as (guest, _):
        texts = set()
        for name in ("Ada", "nobody", "Proxied"):
            reply = await enter(guest.other(), name, "a wrong passphrase")
            assert reply.status == 401
            texts.add(re.search('role="alert">(.*?)</p>', reply.text)[1])
        assert len(texts) == 1
    assert len(checked) == 3
    assert len({*checked}) == 1, "the same parameters"


async def test_hashes_are_argon2id_and_grow_with_the_parameters(settings, monkeypatch):
    made = settings()
    add(made, Ada="owner")  # with a weak hash
    monkeypatch.setattr(membership, "HASHER", membership.PasswordHasher())
    strong = hashed(PASSPHRASE)
    assert strong.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert (verified(strong, PASSPHRASE), verified(strong, "x"), verified("", "x")) == (1, 0, 0)
    assert not verified("not a hash", PASSPHRASE)
    async with serving(made) as (guest, _):
        assert (await signed_in(guest, "Ada")).reply.status == 303
    assert members_of(made)["Ada"].hash.startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_rules_of_passphrases():
    assert check_passphrase(PASSPHRASE, "Ada") == PASSPHRASE
    for text in ("", "elevenchars", "aaaaaaaabbbb", "Ada Lovelace", "ADA@example.org", "x" * 2000):
        with pytest.raises(InvalidInput, match="at least 12 characters") as error:
            check_passphrase(text, "ada lovelace", "ada@example.org")
        assert text not in str(error.value) or not text


async def named(guest, name, peer="10.0.0.5", path="/ui", **headers):
    """A visitor whom a proxy at the address ``peer`` names."""
    visitor = guest.other(peer)
    visitor.reply = await visitor.get(path, x_webauth_user=name, **headers)
    return visitor


async def test_a_declared_proxy_names_members(settings):
    made = settings(**HEADER)
    async with serving(made, Ada="owner", Vera="viewer") as (guest, service):
        for name, peer in (("ada@example.org", "10.0.0.5"), ("Vera", "fd00::7")):
            assert (await named(guest, name, peer, x_forwarded_for="9.9.9.9")).reply.status == 200
        owner, stranger = await named(guest, "Ada"), guest.other("10.0.0.5")
        await stranger.get("/ui/login")
        # The token belongs to a session of this member: that of a stranger is worth nothing.
        for visitor, mode, status in ((owner, "frozen", 303), (stranger, "online", 403)):
            form = {"token": visitor.token, "mode": mode}
            reply = await visitor.ask("POST", "/ui/settings/mode", form, x_webauth_user="Ada")
            assert (reply.status, service.state.mode) == (status, "frozen")
        other = await owner.ask("GET", "/ui/settings", x_webauth_user="Vera")
        assert other.status == 403, "the header decides, not an older session"


async def test_the_header_of_anybody_else_is_refused(settings):
    async with serving(settings(**HEADER), Ada="owner") as (guest, _):
        # 127.0.0.1 may say for whom it forwards; that does not make it the declared proxy.
        for peer in ("127.0.0.1", "10.0.0.6", "testclient", ""):
            for path in ("/ui", "/ui/login", "/ui/settings"):
                reply = (await named(guest, "Ada", peer, path, x_forwarded_for="10.0.0.5")).reply
                assert reply.status == 403
                assert "sign_in_proxies" in reply.text
            assert (await enter(guest.other(peer), "Ada")).status == 303, "without a proxy"


async def test_without_the_setting_the_header_means_nothing(settings):
    async with serving(settings(), Ada="owner") as (guest, _):
        for peer in ("10.0.0.5", "127.0.0.1"):
            reply = (await named(guest, "Ada", peer, x_forwarded_for="10.0.0.5")).reply
            assert (reply.status, reply.headers["location"]) == (303, "/ui/login")


@pytest.mark.parametrize("role", [None, "viewer"])
async def test_unknown_names_become_members_only_where_that_is_declared(settings, role):
    made = settings(**HEADER | ({"sign_in_role": role} if role else {}))
    async with serving(made) as (guest, _):
        assert (await named(guest, "new <b>")).reply.status == (200 if role else 303)
        if role is None:
            page = (await named(guest, "new <b>", path="/ui/login")).reply.text
            assert "Single sign-on names new &lt;b&gt;" in page
        again = await named(guest, "new <b>", path="/ui/settings")
        assert again.reply.status in (303, 403)
    found = {name: each.role for name, each in members_of(made).items()}
    assert found == ({"new <b>": "viewer"} if role else {})


def test_settings_of_single_sign_on_are_checked():
    for header, proxies in (("X-User", ()), (None, ("10.0.0.5",)), ("X-User", ("proxy.example",)),
                            ("X-User", ("*",)), ("no name", ("10.0.0.5",))):  # fmt: skip
        with pytest.raises(InvalidInput, match="sign_in_"):
            ServerSettings(sign_in_header=header, sign_in_proxies=proxies)
    with pytest.raises(InvalidInput, match="sign_in_role"):
        ServerSettings(sign_in_role="owner")


@EITHER
async def test_a_restored_backup_brings_no_rights_back(settings):
    made = settings()
    people = {"Ada": "owner", "Gone": "owner", "Less": "owner", "Same": "viewer"}
    async with serving(made, **people) as (guest, _):
        code = await asyncio.to_thread(changed, made, lambda t, c: t.invite(c, "owner"))
        old = [await signed_in(guest, name) for name in people]
    kept = dump(made)
    async with running(made) as service:
        owner = Visitor(service)
        owner.cookie = old[0].cookie
        await owner.get("/ui/members")
        await owner.send("/ui/members", what="remove", id="Gone")
        await owner.send("/ui/members", what="role", id="Less", role="viewer")
        guest = owner.other()
        await guest.get(f"/ui/join?code={code}")
        assert (await guest.send("/ui/join", code=code, name="New", **CHOSEN)).status == 303
    set_back(made, kept)
    async with running(made) as service:
        guest = Visitor(service)
        for each in old:
            each.app = guest.app
            assert (await each.get("/ui")).status == 303, "an old session"
        assert (await guest.get(f"/ui/join?code={code}")).status == 410
        statuses = {name: (await signed_in(guest, name)).reply.status for name in (*people, "New")}
        assert statuses == {"Ada": 303, "Gone": 401, "Less": 401, "Same": 303, "New": 401}
        owner = await signed_in(guest, "Ada")
        assert (await owner.get("/ui")).status == 200, "new sessions work"
        page = (await owner.get("/ui/members")).text
        assert page.count("Came back with a backup") == 2
        await owner.send("/ui/members", what="role", id="Less", role="viewer")
        assert (await signed_in(guest, "Less")).reply.status == 303


def test_a_change_that_a_crash_cut_short_is_recorded_later(settings, monkeypatch):
    """The power fails between the commit and the record in the vault."""
    made = settings()
    add(made, Ada="owner", Gone="viewer")
    kept = dump(made)
    with monkeypatch.context() as patch:
        patch.setattr(MemberTables, "record", lambda *_: None)
        changed(made, lambda t, c: t.remove(c, "Gone"))
    assert [*members_of(made)] == ["Ada"]
    set_back(made, kept)
    found = {name: each.outdated for name, each in members_of(made).items()}
    assert found == {"Ada": False, "Gone": True}


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / "server")
    add(made, Olga="owner", Ed="editor", Vera="viewer")
    add(made, Ann={"a": "owner"}, Bea={"a": "viewer", "b": "editor"})
    return made


async def test_one_sign_in_for_a_server_and_its_experiments(folder):
    async with hosting(folder) as (asking, hosted):
        both = {"Olga": (3, 3), "Ed": (2, 2), "Vera": (1, 1), "Ann": (3, 0), "Bea": (1, 2)}
        for name, ranks in both.items():
            visitor = await signed_in(asking, name)
            listed = (await visitor.get("/ui")).text
            for experiment, rank in zip("ab", ranks, strict=True):
                for path, least in (("", 1), ("/settings", 2), ("/members", 3), ("/keys", 3)):
                    status = (await visitor.get(f"/v1/experiments/{experiment}/ui{path}")).status
                    assert status == (200 if rank >= least else 403), (name, experiment, path)
                assert (f'id="name-{experiment}"' in listed) == (rank >= 1)
                assert (f"Pause {experiment}" in listed) == (rank >= 2)
        service = hosted.served["b"].service
        ann = await signed_in(asking, "Ann")
        assert (await ann.send("/ui/change", name="b", what="pause")).status == 403
        assert service.state.mode == "online"
        bea = await signed_in(asking, "Bea", at="/v1/experiments/b")
        assert (await bea.send("/ui/change", name="b", what="pause")).status == 303
        assert service.state.mode == "frozen"
        history = (await bea.get("/v1/experiments/b/ui/history")).text
        assert '<td data-label="Who">Bea</td>' in history


async def test_only_editors_of_the_server_begin_experiments(folder):
    async with hosting(folder) as (asking, hosted):
        visitors = {name: await signed_in(asking, name) for name in ("Vera", "Ann", "Ed", "Olga")}
        for name, visitor in visitors.items():
            status = 200 if name in ("Ed", "Olga") else 403
            text = FOLDER_EXAMPLE.replace('"welcome"', f'"by-{name.lower()}"')
            assert (await visitor.get("/ui/new?from=a")).status == status
            page = await visitor.send("/ui/new", view="file", toml=text, do="create")
            assert page.status == status
            assert ("dk_" in page.text) == (name == "Olga"), "a key has the rights of an owner"
        assert sorted(hosted.served) == ["a", "b", "by-ed", "by-olga"]
        assert (await visitors["Ed"].get("/ui/history")).status == 403
        assert "Role of Olga: owner" in (await visitors["Olga"].get("/ui/history")).text


async def test_an_owner_of_an_experiment_manages_that_one_alone(folder):
    olga = members_of(folder)["Olga"].id
    base = "/v1/experiments/a"
    here = f"{base}/ui/members"
    async with hosting(folder) as (asking, _):
        ann = await signed_in(asking, "Ann")
        page = (await ann.get(here)).text
        assert "Bea" in page
        assert "owner of the whole server" in page
        for id, role in (("Vera", "editor"), ("Bea", "none"), (olga, "none")):
            assert (await ann.send(here, what="role", id=id, role=role)).status == 303
        assert (await ann.get("/ui/members")).status == 403
        link, _ = await invited(ann, base, role="owner")
        guest = asking.other()
        assert "of the experiment a" in (await guest.get(link)).text
        form = {"code": link.partition("=")[2], "name": "Guest", **CHOSEN}
        assert (await guest.send("/ui/join", **form)).status == 303
        for experiment, status in (("a", 200), ("b", 403)):
            assert (await guest.get(f"/v1/experiments/{experiment}/ui/members")).status == status
        admin = asking.other()
        await admin.get(f"{base}/ui/login")
        await admin.send(f"{base}/ui/login", key=folder.keys["a"])
        assert (await admin.get(here)).status == 200
        assert (await admin.get("/ui/members")).headers["location"] == "/ui/login"
        for what in ("remove", "reset", "end"):  # neither an owner of this one nor its key
            for visitor in (ann, admin):
                assert (await visitor.send(here, what=what, id=olga)).status == 403
    found = members_of(folder)
    assert (found["Olga"].role, found["Guest"].role) == ("owner", "none")
    assert found["Vera"].grants == {"a": "editor"}
    assert found["Bea"].grants == {"b": "editor"}
