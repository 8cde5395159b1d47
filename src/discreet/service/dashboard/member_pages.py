"""Pages to sign in and out, to use an invitation, and to manage one's account and all members."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from starlette.responses import Response

from discreet.errors import InvalidInput, ServiceError
from discreet.service.dashboard.page_frame import (
    COOKIE,
    LOG_IN,
    MEMBER_COOKIE,
    OWNERS,
    READERS,
    AnyPage,
    Sessions,
    at_least,
    set_cookie,
    signed_in,
    visitor_of_key,
)
from discreet.service.membership import RULE, check_passphrase
from discreet.service.storage import api_keys
from discreet.service.storage.database import Connection
from discreet.service.storage.member_tables import (
    INVITED_FOR,
    NONE,
    ROLES,
    SESSION_SECONDS,
    checked_name,
)

LONGEST = 4096
"""Characters of a link that is kept while somebody signs in."""


async def log_in(page: AnyPage) -> Response:
    """Show a form for a member's passphrase or for a key, and begin a session for either."""
    access, name, given = page.access, page.given("name"), page.given("key")
    headers, after = page.request.headers.raw, page.given("next")
    ours = after.startswith(("/ui?", "/ui/")) and after.isascii() and after.isprintable()
    after = after if ours and len(after) <= LONGEST else ""  # no page of another site
    known = await access.members.read(access.members.tables.listed)
    values = {"after": after, "name": name, "members": bool(known), "message": ""}
    if page.request.method == "GET":
        if not page.visitor and (named := access.members.named(headers)):
            who = named[0][:64]
            values["message"] = f"Single sign-on names {who}, who is no member. Ask an owner."
        return page.render("login.html", **values)
    try:
        if given:
            key = api_keys.bearer(access.keys, f"Bearer {given}")
            if not at_least(visitor_of_key(key).role, READERS):
                api_keys.permit(key, ("audit",))
            # A new session: a session that someone prepared before must not gain rights.
            _, text = Sessions(access.session_secret).begin(key.id, await access.now())
            page.cookie, by = (COOKIE, text), key.id
        else:
            member = await access.members.verify(name, page.given("passphrase"), page.address)
            await signed_in(page, member, "passphrase")
            by = member.id
    except ServiceError as error:
        status, values["message"] = error.status or 401, str(error)
        if status == 401:
            status = access.refusals.count(error, dict(headers), page.address).status or 401
        if given:
            values["message"] = "The key must be valid here, with scope audit or admin; it is not."
        return page.render("login.html", status, **values)
    access.log.event("logged in", by=by)
    return _entered(page, after or "/ui")


def _entered(page: AnyPage, to: str) -> Response:
    """Lead to a page with the cookie of a new session, and without that of another kind."""
    response = page.redirect(to)
    if page.cookie is not None:
        set_cookie(page, response, COOKIE if page.cookie[0] != COOKIE else MEMBER_COOKIE)
        set_cookie(page, response, *page.cookie, SESSION_SECONDS)
    return response


async def log_out(page: AnyPage) -> Response:
    """End this session of a member, or all of a key: copies of its cookie are worthless."""
    members, id = page.access.members, page.session.key
    if page.visitor and (member := page.visitor.member):
        await members.write(lambda c: members.tables.end_sessions(c, member.id, id))
    else:
        await page.access.end_sessions(id)
    response = page.redirect(LOG_IN)
    for name in (MEMBER_COOKIE, COOKIE):
        set_cookie(page, response, name)
    return response


async def join(page: AnyPage) -> Response:
    """Let the holder of an invitation choose a name and a passphrase, once."""
    members, code = page.access.members, page.given("code")
    tables = members.tables
    invitation = await members.read(lambda c: tables.invitation(c, code))
    member = invitation.member  # who gets a new passphrase
    known = await members.read(lambda c: tables.find(c, member)) if member else None
    name, email, message = page.given("name"), page.given("email"), ""
    if page.request.method == "POST":
        try:
            names = (known.name, known.email) if known else (checked_name(name), email)
            hash = await members.hash(_chosen(page, *names))
            joined = await members.write(lambda c: tables.join(c, code, name, email, hash))
            await signed_in(page, joined, "invitation")
            page.access.log.event("logged in", by=joined.id)
            return _entered(page, "/ui")
        except InvalidInput as error:
            message = str(error)
    values = {"invitation": invitation, "known": known, "name": name, "email": email}
    status = 422 if message else 200
    return page.render("join.html", status, message=message, code=code, rule=RULE, **values)


def _chosen(page: AnyPage, *names: str) -> str:
    if page.given("passphrase") != page.given("again"):
        raise InvalidInput("passphrase must be typed twice; the two differ. Type it again.")
    return check_passphrase(page.given("passphrase"), *names)


async def account(page: AnyPage) -> Response:
    """Show the sessions of the signed-in member; change the passphrase or end sessions."""
    members, visitor = page.access.members, page.visitor
    member = visitor.member if visitor else None
    if member is None:
        raise ServiceError("A key has no account. Sign in as a member.", status=404)
    tables, message, status = members.tables, "", 200
    if page.request.method == "POST":
        try:
            if page.given("what") == "end":
                only = page.given("id")
                await members.write(lambda c: tables.end_sessions(c, member.id, only))
                return page.redirect("/ui/account?done=end")
            await members.verify(member.name, page.given("current"), page.address)
            hash = await members.hash(_chosen(page, member.name, member.email))
            await members.write(lambda c: tables.set_hash(c, member.id, hash, page.by))
            await signed_in(page, member, "passphrase")
            return _entered(page, "/ui/account?done=passphrase")
        except (InvalidInput, ServiceError) as error:
            message, status = str(error), getattr(error, "status", None) or 422
    sessions = await members.read(lambda c: tables.sessions(c, member.id))
    values = {"sessions": sessions, "session": page.session.key, "message": message, "rule": RULE}
    return page.render("account.html", status, **values)


async def members(page: AnyPage) -> Response:
    """List the members of the server or of one experiment, and change them."""
    directory, scope, link = page.access.members, page.access.experiment, ""
    if page.request.method == "POST":
        what = page.given("what")
        code = await directory.write(_change(page, scope, what))
        if not code:
            return page.redirect(f"/ui/members?done={what}")
        url, query = page.request.url, urlencode({"code": code})
        link = f"{url.scheme}://{url.netloc}{directory.prefix}/ui/join?{query}"
    everyone = await directory.read(directory.tables.listed)
    invited = await directory.read(directory.tables.invitations)
    return page.render(
        "members.html",
        members=[each for each in everyone if not scope or each.role_at(scope) != NONE],
        invited=[each for each in invited if not scope or each.experiment == scope],
        names={each.id: each.name for each in everyone},
        scope=scope,
        roles=ROLES[1:],
        link=link,
    )


def _change(page: AnyPage, scope: str, what: str) -> Callable[[Connection], str]:
    """Return the change that a form of the page requests; its result is the code of a link."""
    tables, by, id, role = page.access.members.tables, page.by, page.given("id"), page.given("role")
    lasts = page.given("expires_in").strip() or INVITED_FOR
    if scope and what in ("remove", "end", "reset"):
        # An account belongs to the whole server, and a key of the experiment does not.
        member = page.visitor.member if page.visitor else None
        page.permit(OWNERS, member.role if member else NONE)

    def change(c: Connection) -> str:
        match what:
            case "invite":
                return tables.invite(c, role, scope, expires_in=lasts, author=by)
            case "reset":
                return tables.invite(c, NONE, member=tables.named(c, id).id, author=by)
            case "role":
                tables.set_role(c, id, role, scope, by)
            case "remove":
                tables.remove(c, id, by)
            case "end":
                tables.end_sessions(c, tables.named(c, id).id)
            case "withdraw":
                known = {each.id: each.experiment for each in tables.invitations(c)}
                if known.get(id) == scope or not scope:
                    tables.withdraw(c, id)
            case _:
                raise InvalidInput("form must be one of this page; it is not. Load the page again.")
        return ""

    return change
