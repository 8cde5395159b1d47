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
from discreet.service.dashboard.page_frame import Sessions
from discreet.service.dashboard.server_pages import (
    ADMIN,
    EVERYONE,
    OWNERS,
    PAGES,
    READERS,
    SIGNED_IN,
)
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
from service.dashboard.visitor import Visitor
from service.hosting import Folder, hosting

PASSPHRASE = "four plain words here"
EITHER = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
HEADER = {"sign_in_header": "X-Webauth-User", "sign_in_proxies": ["10.0.0.5", "fd00::/8"]}


@pytest.fixture
def database(request):
    """SQLite, unless a test asks for both."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return "discreet.db"
    return request.getfixturevalue("fresh_schema")


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


def add(place, name, role="viewer", passphrase=PASSPHRASE, email="", **grants):
    """A member, with roles for experiments by name."""
    hash = hashed(passphrase) if passphrase else ""

    def operation(tables, connection):
        member = tables.add(connection, name, email, hash, role)
        for experiment, granted in grants.items():
            member = tables.set_role(connection, member.id, granted, experiment)
        return member

    return changed(place, operation)


@asynccontextmanager
async def people(settings, **roles):
    """A service with these members by name, and the members."""
    made = settings()
    members = {name: add(made, name, role) for name, role in roles.items()}
    async with running(made) as service:
        yield service, members


async def signed_in(app, name, passphrase=PASSPHRASE, at="", **options):
    visitor = Visitor(None, app=app, **options)
    visitor.reply = await enter(visitor, name, passphrase, at)
    if visitor.reply.status == 303:
        await visitor.get(f"{at}/ui/account")
    return visitor


async def enter(visitor, name, passphrase=PASSPHRASE, at=""):
    await visitor.get(f"{at}/ui/login")
    return await visitor.send(f"{at}/ui/login", name=name, passphrase=passphrase)


def joining(page):
    """The address of a link that a page shows."""
    return unescape(re.search(r"http://localhost(/ui/join[^<]+)", page.text)[1])


def at(path):
    return path.replace("{number:int}", "0")


@EITHER
async def test_each_role_has_its_pages(settings):
    made = settings()
    people = {role: add(made, role.title(), role) for role in ("viewer", "editor", "owner")}
    people["none"] = add(made, "None", "none")
    ranks = {"none": 0, "viewer": 1, "editor": 2, "owner": 3}
    needs = {SIGNED_IN: 0, READERS: 1, ADMIN: 2, OWNERS: 3}
    async with running(made) as service:
        app = Visitor(service).app
        for role, member in people.items():
            visitor = await signed_in(app, member.name)
            for path, _, needed, methods in PAGES:
                if needed is EVERYONE or path == "/ui/logout":
                    continue
                for method in methods:
                    form = {"token": visitor.token} if method == "POST" else None
                    reply = await visitor.ask(method, at(path), form)
                    refused = ranks[role] < needs[needed]
                    assert (reply.status == 403) == refused, (role, method, path)
                    assert reply.status < 500
                    if refused:
                        assert f"needs the role {needed}; your role here is {role}" in reply.text
            page = (await visitor.get("/ui/account")).text
            assert ("/ui/settings" in page) == (ranks[role] >= 2)
            assert ("/ui/members" in page) == (ranks[role] >= 3)


async def test_a_viewer_changes_nothing_and_an_editor_is_named_in_the_history(settings):
    made = settings()
    add(made, "Vera", "viewer"), add(made, "Ed <b>it</b>", "editor", email="ed@example.org")
    async with running(made) as service:
        viewer = await signed_in(Visitor(service).app, "vera")
        assert (await viewer.send("/ui/settings/mode", mode="frozen")).status == 403
        assert service.state.mode == "online"
        editor = await signed_in(viewer.app, "ED@example.org")
        assert (await editor.send("/ui/settings/mode", mode="frozen")).status == 303
        assert service.state.mode == "frozen"
        history = (await viewer.get("/ui/history")).text
        assert "<b>it</b>" not in history
        lines = re.findall(r'"What">(.*?)</th>\s*<td data-label="Who">(.*?)</td>', history)
        assert ("Set to paused", "Ed &lt;b&gt;it&lt;/b&gt;") in lines
        (change,) = [each for each in await service.changes() if each.what == "mode changed"]
        assert (change.by[:2], change.label) == ("m_", "Ed <b>it</b>")


async def test_logs_have_the_id_and_never_a_passphrase(settings, capfd):
    async with people(settings, Ed="editor") as (service, ids):
        member = ids["Ed"]
        editor = await signed_in(Visitor(service).app, "Ed")
        await editor.send("/ui/settings/mode", mode="frozen")
        await enter(Visitor(service, app=editor.app), "Ed", "a wrong but long one")
    text = capfd.readouterr().err
    lines = [json.loads(line) for line in text.splitlines()]
    events = [(each["event"], each["by"]) for each in lines if "by" in each]
    assert events == [("logged in", member.id), ("mode changed", member.id)]
    assert "authentication refused" in {each["event"] for each in lines}
    for secret in (PASSPHRASE, "a wrong but long one"):
        assert secret not in text


async def test_a_session_is_new_ends_and_does_not_come_back(settings):
    async with people(settings, Ada="owner") as (service, _):
        visitor = Visitor(service)
        reply = await visitor.get("/ui/login")
        before = visitor.cookie
        reply = await enter(visitor, "ada")
        assert (reply.status, reply.headers["location"]) == (303, "/ui")
        cookie = reply.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert before != visitor.cookie, "what was prepared before the sign-in gains no rights"
        stranger = Visitor(service, app=visitor.app)
        stranger.cookie = before
        assert (await stranger.get("/ui")).status == 303
        kept = visitor.cookie
        await visitor.get("/ui")
        other = await signed_in(visitor.app, "Ada")
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
    async with people(settings, Ada="viewer") as (service, _):
        ways = {"name": "Ada", "passphrase": PASSPHRASE}, {"key": settings.key()}
        for scheme, given in ((each, way) for each in ("https", "http") for way in ways):
            visitor = Visitor(service)
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
    links = ("//evil.example/ui", "https://evil.example/ui/", "/v1/status", "/ui/../..//x")
    links += ("/uix", "/ui/\r\nX: y", "/ui/é")
    async with people(settings, Ada="viewer") as (service, _):
        for link in ("/ui/history?x=1", *links):
            for way in ({"name": "Ada", "passphrase": PASSPHRASE}, {"key": settings.key()}):
                visitor = Visitor(service)
                await visitor.get("/ui/login")
                reply = await visitor.send("/ui/login", next=link, **way)
                ours = link if link in ("/ui/history?x=1", "/ui/../..//x") else "/ui"
                assert (reply.status, reply.headers["location"]) == (303, ours), link


async def test_a_cookie_opens_pages_of_the_server_that_made_it(settings):
    async with people(settings, Ada="owner") as (service, _):
        visitor = await signed_in(Visitor(service).app, "Ada")
        name, _, text = visitor.cookie.partition("=")
        mine = service.state.vault.mac
        id = Sessions(mine).read(text).key
        for secret, status in ((mine, 200), (b"of another server", 303)):
            visitor.cookie = f"{name}={Sessions(secret).begin(id)[1]}"
            assert (await visitor.get("/ui")).status == status


async def test_forms_of_members_need_the_token_of_their_session(settings):
    async with people(settings, Ada="owner") as (service, _):
        owner = await signed_in(Visitor(service).app, "Ada")
        other = await signed_in(owner.app, "Ada")
        for path, _, needed, methods in PAGES:
            if "POST" in methods and needed is not EVERYONE:
                for token in ("", "x", other.token):
                    assert (await owner.ask("POST", path, {"token": token})).status == 403, path
        for path in ("/ui/login", "/ui/join"):
            assert (await Visitor(service, app=owner.app).ask("POST", path, {})).status == 403


@pytest.mark.parametrize("ending", ["removed", "demoted", "passphrase", "owner"])
async def test_sessions_end_with_the_rights(settings, ending):
    made = settings()
    member = add(made, "Ada", "owner")
    add(made, "Eve", "owner")
    async with running(made) as service:
        owner = await signed_in(Visitor(service).app, "Ada")
        eve = await signed_in(owner.app, "Eve")
        if ending == "removed":
            await asyncio.to_thread(changed, made, lambda t, c: t.remove(c, "Ada"))
        elif ending == "demoted":
            await eve.send("/ui/members", what="role", id=member.id, role="viewer")
        elif ending == "owner":
            await eve.send("/ui/members", what="end", id=member.id)
        else:
            hash = hashed("another long passphrase")
            await asyncio.to_thread(changed, made, lambda t, c: t.set_hash(c, "Ada", hash))
        assert (await owner.get("/ui")).headers.get("location") == "/ui/login"
        assert (await eve.get("/ui")).status == 200
        again = (await signed_in(owner.app, "Ada")).reply.status
        assert again == (401 if ending in ("removed", "passphrase") else 303)


async def test_the_last_owner_stays(settings):
    async with people(settings, Ada="owner", Ed="editor") as (service, ids):
        ada = ids["Ada"]
        owner = await signed_in(Visitor(service).app, "Ada")
        for form in ({"what": "role", "role": "viewer"}, {"what": "remove"}):
            reply = await owner.send("/ui/members", id=ada.id, **form)
            assert (reply.status, "Ada is the last one" in reply.text) == (422, True)
        assert (await owner.get("/ui/members")).status == 200
        await owner.send("/ui/members", what="role", id="Ed", role="owner")
        assert (await owner.send("/ui/members", what="remove", id=ada.id)).status == 303
        assert (await owner.get("/ui")).status == 303


@EITHER
def test_two_owners_who_demote_each_other_leave_one(settings):
    made = settings()
    names = ["Ada", "Eve"]
    for name in names:
        add(made, name, "owner")
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
    roles = changed(made, lambda t, c: [each.role for each in t.listed(c)])
    assert sorted(roles) == ["owner", "viewer"]


@EITHER
async def test_an_invitation_works_once(settings):
    async with people(settings, Ada="owner") as (service, _):
        owner = await signed_in(Visitor(service).app, "Ada")
        page = await owner.send("/ui/members", what="invite", role="editor", expires_in="1d")
        link = joining(page)
        assert link not in (await owner.get("/ui/members")).text
        guest = Visitor(service, app=owner.app)
        assert "invited as editor" in (await guest.get(link)).text
        form = {"code": link.partition("=")[2], "name": "Gus <i>", "email": "gus@example.org"}
        for passphrase, again in (("short", "short"), (PASSPHRASE, "other"), ("a" * 20, "a" * 20)):
            reply = await guest.send("/ui/join", **form, passphrase=passphrase, again=again)
            assert (reply.status, "passphrase must" in reply.text.lower()) == (422, True)
            assert "gus@example.org" in reply.text, "nothing typed is lost"
            assert passphrase not in reply.text
        chosen = {"passphrase": PASSPHRASE, "again": PASSPHRASE}
        taken = await guest.send("/ui/join", **form | {"name": "ADA"}, **chosen)
        assert (taken.status, "member has it already" in taken.text) == (422, True)
        assert (await guest.send("/ui/join", **form, **chosen)).status == 303
        assert (await guest.get("/ui/settings")).status == 200
        late = Visitor(service, app=owner.app)
        assert (await late.get(link)).status == 410
        await late.get("/ui/login")
        assert (await late.send("/ui/join", **form, **chosen)).status == 410
        shown = (await owner.get("/ui/members")).text
        assert "Gus &lt;i&gt;" in shown
        assert "<i>" not in shown


async def test_invitations_end_and_are_withdrawn(settings):
    async with people(settings, Ada="owner") as (service, _):
        owner = await signed_in(Visitor(service).app, "Ada")
        guest = Visitor(service, app=owner.app)
        for role, lasts in (("emperor", "1d"), ("viewer", "soon")):
            reply = await owner.send("/ui/members", what="invite", role=role, expires_in=lasts)
            assert reply.status == 422
        page = await owner.send("/ui/members", what="invite", role="viewer", expires_in="7d")
        link = joining(page)
        (id,) = re.findall(
            'value="withdraw"><input type="hidden" name="id" value="(.+?)"', page.text
        )
        assert id not in link
        await owner.send("/ui/members", what="withdraw", id=id)
        assert (await guest.get(link)).status == 410
        code = changed(service.settings, lambda t, c: t.invite(c, "viewer", expires_in="1s"))
        old = "UPDATE invitations SET expires = expires - 2"
        changed(service.settings, lambda _, c: c.execute(old) and None)
        assert (await guest.get(f"/ui/join?code={code}")).status == 410


async def test_a_link_for_a_new_passphrase(settings):
    async with people(settings, Ada="owner", Ed="editor") as (service, ids):
        ada = ids["Ada"]
        member = ids["Ed"]
        owner, editor = [await signed_in(Visitor(service).app, name) for name in ("Ada", "Ed")]
        page = await owner.send("/ui/members", what="reset", id=member.id)
        link = joining(page)
        guest = Visitor(service, app=owner.app)
        assert "For Ed." in (await guest.get(link)).text
        new = "an entirely new one"
        form = {"code": link.partition("=")[2], "passphrase": new, "again": new}
        assert (await guest.send("/ui/join", **form, name="Ada")).status == 303
        assert (await editor.get("/ui")).status == 303, "older sessions have ended"
        assert (await signed_in(owner.app, "Ed")).reply.status == 401
        assert (await signed_in(owner.app, "Ed", new)).reply.status == 303
        assert (await owner.get("/ui")).status == 200
        for current, status in (("not the right one", 401), (PASSPHRASE, 303)):
            form = {"current": current, "passphrase": new, "again": new}
            assert (await owner.send("/ui/account", **form)).status == status
        assert (await signed_in(owner.app, "Ada", new)).reply.status == 303
        assert ada.name in (await owner.get("/ui/members")).text


async def test_wrong_passphrases_are_throttled_by_name_and_address(settings, monkeypatch):
    made, now = settings(), [0.0]
    add(made, "Ada", "owner"), add(made, "Eve", "owner")
    async with running(made) as service:
        app = Visitor(service).app
        access = next(each for each in app.routes if getattr(each, "path", "") == "/ui")
        members = access.endpoint.access.members
        for name, most in (("_names", PER_NAME), ("_addresses", PER_ADDRESS)):
            monkeypatch.setattr(members, name, Throttle(most, clock=lambda: now[0]))
        visitors = [Visitor(service, f"10.1.0.{i}", app) for i in range(PER_NAME + 1)]
        replies = [await enter(each, "ada", "a wrong passphrase") for each in visitors]
        assert [each.status for each in replies] == [401] * PER_NAME + [429]
        assert "Try again in 1 min." in replies[-1].text
        assert (await enter(visitors[0], "ADA")).status == 429, "the right one too"
        assert (await enter(visitors[0], "Eve")).status == 303, "others are not concerned"
        now[0] += RETURNS
        assert (await enter(visitors[1], "Ada")).status == 303, "a right one costs nothing"
        assert (await enter(visitors[2], "Ada")).status == 303
        one = Visitor(service, "10.2.0.1", app)
        statuses = [
            (await enter(one, f"nobody {i}", "a wrong passphrase")).status
            for i in range(PER_ADDRESS + 1)
        ]
        assert statuses == [401] * PER_ADDRESS + [429]
        assert (await enter(Visitor(service, "10.2.0.2", app), "Eve")).status == 303


async def test_an_unknown_name_takes_the_same_work(settings, monkeypatch):
    made = settings()
    add(made, "Ada", "owner"), add(made, "Proxied", passphrase="")
    checked = []

    class Counting(type(membership.HASHER)):
        def verify(self, hash, passphrase):
            checked.append(hash.rpartition("$")[0].rpartition("$")[0])
            return super().verify(hash, passphrase)

    monkeypatch.setattr(membership, "HASHER", Counting(time_cost=1, memory_cost=8, parallelism=1))
    async with running(made) as service:
        app = Visitor(service).app
        texts = set()
        for name in ("Ada", "nobody", "Proxied"):
            reply = await enter(Visitor(service, app=app), name, "a wrong passphrase")
            assert reply.status == 401
            texts.add(re.search('role="alert">(.*?)</p>', reply.text)[1])
        assert len(texts) == 1
    assert len(checked) == 3
    assert len({*checked}) == 1, "the same parameters"


async def test_hashes_are_argon2id_and_grow_with_the_parameters(settings, monkeypatch):
    made = settings()
    monkeypatch.setattr(membership, "HASHER", membership.PasswordHasher())
    strong = hashed(PASSPHRASE)
    assert strong.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert (verified(strong, PASSPHRASE), verified(strong, "x"), verified("", "x")) == (1, 0, 0)
    assert not verified("not a hash", PASSPHRASE)
    weak = membership.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSPHRASE)
    changed(made, lambda t, c: t.add(c, "Ada", "", weak, "owner"))
    async with running(made) as service:
        assert (await signed_in(Visitor(service).app, "Ada")).reply.status == 303
    (member,) = changed(made, lambda t, c: t.listed(c))
    assert member.hash.startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_rules_of_passphrases():
    assert check_passphrase(PASSPHRASE, "Ada") == PASSPHRASE
    for text in ("", "elevenchars", "aaaaaaaabbbb", "Ada Lovelace", "ADA@example.org", "x" * 2000):
        with pytest.raises(InvalidInput, match="at least 12 characters") as error:
            check_passphrase(text, "ada lovelace", "ada@example.org")
        assert text not in str(error.value) or not text


async def named(app, name, peer, path="/ui", **headers):
    visitor = Visitor(None, peer, app)
    visitor.reply = await visitor.get(path, x_webauth_user=name, **headers)
    return visitor


async def test_a_declared_proxy_names_members(settings):
    made = settings(**HEADER)
    add(made, "Ada", "owner", email="ada@example.org"), add(made, "Vera", "viewer", "")
    async with running(made) as service:
        app = Visitor(service).app
        for name, peer in (("ada@example.org", "10.0.0.5"), ("Vera", "fd00::7")):
            visitor = await named(app, name, peer, x_forwarded_for="9.9.9.9")
            assert visitor.reply.status == 200
        owner = await named(app, "Ada", "10.0.0.5")
        form = {"token": owner.token, "mode": "frozen"}
        reply = await owner.ask("POST", "/ui/settings/mode", form, x_webauth_user="Ada")
        assert (reply.status, service.state.mode) == (303, "frozen")
        # The token belongs to a session of this member: that of a stranger is worth nothing.
        stranger = Visitor(None, "10.0.0.5", app)
        await stranger.get("/ui/login")
        form = {"token": stranger.token, "mode": "online"}
        reply = await stranger.ask("POST", "/ui/settings/mode", form, x_webauth_user="Ada")
        assert (reply.status, service.state.mode) == (403, "frozen")
        other = await owner.ask("GET", "/ui/settings", x_webauth_user="Vera")
        assert other.status == 403, "the header decides, not an older session"


async def test_the_header_of_anybody_else_is_refused(settings):
    made = settings(**HEADER)
    add(made, "Ada", "owner")
    async with running(made) as service:
        app = Visitor(service).app
        # 127.0.0.1 may say for whom it forwards; that does not make it the declared proxy.
        for peer in ("127.0.0.1", "10.0.0.6", "testclient", ""):
            for path in ("/ui", "/ui/login", "/ui/settings"):
                reply = (await named(app, "Ada", peer, path, x_forwarded_for="10.0.0.5")).reply
                assert reply.status == 403
                assert "sign_in_proxies" in reply.text
            local = Visitor(None, peer, app)
            assert (await enter(local, "Ada")).status == 303, "a local owner needs no proxy"


async def test_without_the_setting_the_header_means_nothing(settings):
    async with people(settings, Ada="owner") as (service, _):
        app = Visitor(service).app
        for peer in ("10.0.0.5", "127.0.0.1"):
            reply = (await named(app, "Ada", peer, x_forwarded_for="10.0.0.5")).reply
            assert (reply.status, reply.headers["location"]) == (303, "/ui/login")


@pytest.mark.parametrize("role", [None, "viewer"])
async def test_unknown_names_become_members_only_where_that_is_declared(settings, role):
    made = settings(**HEADER | ({"sign_in_role": role} if role else {}))
    async with running(made) as service:
        app = Visitor(service).app
        reply = (await named(app, "new <b>", "10.0.0.5")).reply
        assert reply.status == (200 if role else 303)
        if role is None:
            page = (await named(app, "new <b>", "10.0.0.5", "/ui/login")).reply.text
            assert "Single sign-on names new &lt;b&gt;" in page
        twice = Visitor(None, "10.0.0.5", app)
        assert (await twice.get("/ui/settings", x_webauth_user="new <b>")).status in (303, 403)
    found = changed(made, lambda t, c: [(each.name, each.role) for each in t.listed(c)])
    assert found == ([("new <b>", "viewer")] if role else [])


def test_settings_of_single_sign_on_are_checked():
    for header, proxies in (("X-User", ()), (None, ("10.0.0.5",)), ("X-User", ("proxy.example",)),
                            ("X-User", ("*",)), ("no name", ("10.0.0.5",))):  # fmt: skip
        with pytest.raises(InvalidInput, match="sign_in_"):
            ServerSettings(sign_in_header=header, sign_in_proxies=proxies)
    with pytest.raises(InvalidInput, match="sign_in_role"):
        ServerSettings(sign_in_role="owner")


@EITHER
def test_a_restored_backup_brings_no_rights_back(settings, play):
    made = settings()
    add(made, "Ada", "owner"), add(made, "Gone", "owner"), add(made, "Less", "owner")
    add(made, "Same", "viewer")
    code = changed(made, lambda t, c: t.invite(c, "owner"))

    async def before(service):
        visitors = {}
        for name in ("Ada", "Gone", "Less", "Same"):
            visitors[name] = (await signed_in(Visitor(service).app, name)).cookie
        return visitors

    cookies = play(made, before)
    kept = dump(made)

    async def withdraw(service):
        owner = Visitor(service)
        owner.cookie = cookies["Ada"]
        await owner.get("/ui/members")
        await owner.send("/ui/members", what="remove", id="Gone")
        await owner.send("/ui/members", what="role", id="Less", role="viewer")
        guest = Visitor(service, app=owner.app)
        await guest.get(f"/ui/join?code={code}")
        chosen = {"passphrase": PASSPHRASE, "again": PASSPHRASE}
        assert (await guest.send("/ui/join", code=code, name="New", **chosen)).status == 303

    play(made, withdraw)
    set_back(made, kept)

    async def after(service):
        app = Visitor(service).app
        for name, cookie in cookies.items():
            visitor = Visitor(service, app=app)
            visitor.cookie = cookie
            assert (await visitor.get("/ui")).status == 303, f"an old session of {name}"
        assert (await Visitor(service, app=app).get(f"/ui/join?code={code}")).status == 410
        statuses = {name: (await signed_in(app, name)).reply.status for name in (*cookies, "New")}
        assert statuses == {"Ada": 303, "Gone": 401, "Less": 401, "Same": 303, "New": 401}
        owner = await signed_in(app, "Ada")
        assert (await owner.get("/ui")).status == 200, "new sessions work"
        page = (await owner.get("/ui/members")).text
        assert page.count("Came back with a backup") == 2
        await owner.send("/ui/members", what="role", id="Less", role="viewer")
        assert (await signed_in(app, "Less")).reply.status == 303

    play(made, after)


def test_a_change_that_a_crash_cut_short_is_recorded_later(settings, monkeypatch):
    """The power fails between the commit and the record in the vault."""
    made = settings()
    add(made, "Ada", "owner"), add(made, "Gone")
    kept = dump(made)
    with monkeypatch.context() as patch:
        patch.setattr(MemberTables, "record", lambda *_: None)
        changed(made, lambda t, c: t.remove(c, "Gone"))
    assert changed(made, lambda t, c: [each.name for each in t.listed(c)]) == ["Ada"]
    set_back(made, kept)
    found = changed(made, lambda t, c: {each.name: each.outdated for each in t.listed(c)})
    assert found == {"Ada": False, "Gone": True}


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / "server")
    add(made, "Olga", "owner"), add(made, "Ed", "editor"), add(made, "Vera", "viewer")
    add(made, "Ann", "none", a="owner"), add(made, "Bea", "none", a="viewer", b="editor")
    return made


async def test_one_sign_in_for_a_server_and_its_experiments(folder):
    async with hosting(folder) as (asking, hosted):
        both = {"Olga": (3, 3), "Ed": (2, 2), "Vera": (1, 1), "Ann": (3, 0), "Bea": (1, 2)}
        for name, ranks in both.items():
            visitor = await signed_in(asking.app, name)
            listed = (await visitor.get("/ui")).text
            for experiment, rank in zip("ab", ranks, strict=True):
                for path, least in (("", 1), ("/settings", 2), ("/members", 3), ("/keys", 3)):
                    status = (await visitor.get(f"/v1/experiments/{experiment}/ui{path}")).status
                    assert status == (200 if rank >= least else 403), (name, experiment, path)
                assert (f'id="name-{experiment}"' in listed) == (rank >= 1)
                assert (f"Pause {experiment}" in listed) == (rank >= 2)
        service = hosted.served["b"].service
        ann = await signed_in(asking.app, "Ann")
        assert (await ann.send("/ui/change", name="b", what="pause")).status == 403
        assert service.state.mode == "online"
        bea = await signed_in(asking.app, "Bea", at="/v1/experiments/b")
        assert (await bea.send("/ui/change", name="b", what="pause")).status == 303
        assert service.state.mode == "frozen"
        history = (await bea.get("/v1/experiments/b/ui/history")).text
        assert '<td data-label="Who">Bea</td>' in history


async def test_only_editors_of_the_server_begin_experiments(folder):
    async with hosting(folder) as (asking, hosted):
        for name, status in (("Vera", 403), ("Ann", 403), ("Ed", 200), ("Olga", 200)):
            visitor = await signed_in(asking.app, name)
            text = FOLDER_EXAMPLE.replace('"welcome"', f'"by-{name.lower()}"')
            assert (await visitor.get("/ui/new?from=a")).status == status
            page = await visitor.send("/ui/new", view="file", toml=text, do="create")
            assert page.status == status
            assert ("dk_" in page.text) == (name == "Olga"), "a key has the rights of an owner"
        assert sorted(hosted.served) == ["a", "b", "by-ed", "by-olga"]
        for name, status in (("Ed", 403), ("Olga", 200)):
            visitor = await signed_in(asking.app, name)
            assert (await visitor.get("/ui/history")).status == status
        assert "Role of Olga: owner" in (await visitor.get("/ui/history")).text


async def test_an_owner_of_an_experiment_manages_that_one_alone(folder):
    ids = {each.name: each.id for each in changed(folder, lambda t, c: t.listed(c))}
    here = "/v1/experiments/a/ui/members"
    async with hosting(folder) as (asking, _):
        ann = await signed_in(asking.app, "Ann")
        page = (await ann.get(here)).text
        assert "Bea" in page
        assert "owner of the whole server" in page
        assert (await ann.send(here, what="role", id="Vera", role="editor")).status == 303
        assert (await ann.send(here, what="role", id="Bea", role="none")).status == 303
        for what in ("remove", "reset", "end"):
            assert (await ann.send(here, what=what, id=ids["Olga"])).status == 403
        assert (await ann.send(here, what="role", id=ids["Olga"], role="none")).status == 303
        assert (await ann.get("/ui/members")).status == 403
        link = joining(await ann.send(here, what="invite", role="owner"))
        guest = Visitor(None, app=asking.app)
        assert "of the experiment a" in (await guest.get(link)).text
        chosen = {"passphrase": PASSPHRASE, "again": PASSPHRASE}
        form = {"code": link.partition("=")[2], "name": "Guest", **chosen}
        assert (await guest.send("/ui/join", **form)).status == 303
        for experiment, status in (("a", 200), ("b", 403)):
            assert (await guest.get(f"/v1/experiments/{experiment}/ui/members")).status == status

        admin = Visitor(None, app=asking.app)
        await admin.get("/v1/experiments/a/ui/login")
        await admin.send("/v1/experiments/a/ui/login", key=folder.keys["a"])
        assert (await admin.get(here)).status == 200
        for what in ("remove", "reset", "end"):
            assert (await admin.send(here, what=what, id=ids["Olga"])).status == 403, "a key too"
        assert (await admin.get("/ui/members")).headers["location"] == "/ui/login"
    found = {each.name: each for each in changed(folder, lambda t, c: t.listed(c))}
    assert (found["Olga"].role, found["Guest"].role) == ("owner", "none")
    assert found["Vera"].grants == {"a": "editor"}
    assert found["Bea"].grants == {"b": "editor"}
