"""Common parts of all pages: templates, sign-in, permissions, the token of forms, errors."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, urlencode

from cryptography.fernet import Fernet, InvalidToken
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from discreet.client.label import label_document, label_values
from discreet.client.pages import environment
from discreet.errors import ServiceError
from discreet.service.access import OTHER, Access, problem_of
from discreet.service.metrics import Metrics
from discreet.service.runtime.hosted_experiments import HostedExperiments
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import faults
from discreet.service.storage import api_keys
from discreet.service.storage.database import safe_name
from discreet.service.storage.member_tables import NONE, ROLES, SESSION_SECONDS, Member
from discreet.types import JsonObject

COOKIE, MEMBER_COOKIE = "discreet_session", "discreet_member"
"""Cookies of a session that an API key began, and of one that a member began. That of a member is
for all experiments of a server."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
EVERYONE, SIGNED_IN, READERS, ADMIN, OWNERS = (None, *ROLES)
"""Role that a page requires; ``EVERYONE`` needs no sign-in. ``ADMIN`` pages change an experiment,
``OWNERS`` pages manage members and keys."""
HOME, LOG_IN = "/ui", "/ui/login"
Site = TypeVar("Site", bound=Service | HostedExperiments)


@cache
def templates() -> Environment:
    made = environment("discreet.service.dashboard")
    vendored = files(__package__).joinpath("static/vendored.json").read_text(encoding="utf-8")
    made.globals["checksum"] = {
        name: digest for each in json.loads(vendored) for name, digest in each["files"].items()
    }
    return made


@dataclass(frozen=True)
class Session:
    """``key``: id of an API key or of a member's session, empty before the sign-in. ``token``
    authenticates forms, and ``began`` is a time of the database's clock."""

    key: str
    token: str
    began: float

    def issued(self, token: str) -> bool:
        return hmac.compare_digest(self.token.encode(), token.encode())


class Sessions:
    """Writes and reads cookies; every worker can, since all workers have the vault's secret."""

    def __init__(self, mac: bytes) -> None:
        secret = hmac.digest(mac, b"sessions of the dashboard", "sha256")
        self._box = Fernet(base64.urlsafe_b64encode(secret))

    def begin(self, key: str, began: float = 0.0) -> tuple[Session, str]:
        session = Session(key, secrets.token_urlsafe(24), began)
        return session, self._box.encrypt(json.dumps(astuple(session)).encode()).decode()

    def read(self, cookie: str | None) -> Session | None:
        """Return the session of a valid cookie that is not too old; otherwise None."""
        try:
            text = self._box.decrypt((cookie or "").encode(), ttl=SESSION_SECONDS)
        except InvalidToken:
            return None
        return Session(*json.loads(text))


@dataclass(frozen=True)
class Visitor:
    """A member, or the holder of a key; ``author`` (id, name of a member) is for the history."""

    id: str
    name: str
    role: str
    author: str
    member: Member | None = None
    rate: int | None = None


def visitor_of_key(key: api_keys.Key) -> Visitor:
    """Return the holder of a key: ``admin`` and the server's keys have all rights."""
    every = key.scopes & {"admin", api_keys.SERVER}
    role = OWNERS if every else READERS if "audit" in key.scopes else NONE
    return Visitor(key.id, key.label or "key", role, key.id, rate=key.rate)


def at_least(role: str, needed: str) -> bool:
    """Return whether a role includes the rights of another."""
    return ROLES.index(role) >= ROLES.index(needed)


@dataclass
class PageRequest(Generic[Site]):
    """One permitted request to the dashboard of an experiment or of a server."""

    request: Request
    access: Access
    site: Site
    session: Session
    visitor: Visitor | None = None
    cookie: tuple[str, str] | None = None
    """Name and text of a cookie that the answer sets, unless the view sets another."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    label: JsonObject = field(default_factory=dict)
    """Values of the privacy label of what was published; empty for visitors without a role."""

    def __post_init__(self) -> None:
        self.root = self.access.prefix
        self.partial = "hx-request" in self.request.headers
        client = self.request.client  # as a trusted proxy names it
        self.address = client.host if client else ""

    def given(self, name: str) -> str:
        """Return a field of the form, or of the address; empty if it is missing."""
        return self.fields.get(name, [""])[0]

    def redirect(self, path: str) -> Response:
        """Send the browser to another page, after a form."""
        return RedirectResponse(self.root + path, 303)

    @property
    def by(self) -> str:
        """Author of changes, for the history and the log."""
        return self.visitor.author if self.visitor else ""

    def role_at(self, experiment: str | None = None) -> str:
        """Return the visitor's role on this page, or for one experiment of the server."""
        if self.visitor is None:
            return NONE
        member = self.visitor.member
        return member.role_at(experiment) if member and experiment else self.visitor.role

    def may(self, needed: str, experiment: str | None = None) -> bool:
        """Return whether the visitor has the rights of a role."""
        return at_least(self.role_at(experiment), needed)

    def permit(self, needed: str, role: str | None = None) -> None:
        """Refuse with 403 unless a role, by default that of the visitor, includes these rights."""
        role = role or self.role_at()
        if not at_least(role, needed):
            text = f"This needs the role {needed}; your role here is {role}. Ask an owner, who can "
            text += "change it on the page Members."
            raise ServiceError(text, status=403, code="forbidden")

    def render(self, name: str, code: int = 200, /, **values: object) -> Response:
        """Render a template with the values that every page shows."""
        values |= self._values_of_experiment() | {
            "token": self.session.token,
            "visitor": self.visitor,
            "admin": self.may(ADMIN),
            "owner": self.may(OWNERS),
            "path": self.request.url.path.removeprefix(self.root),
            "root": self.root,
            "done": self.given("done"),
            "limit": self.access.body_limit,
        }
        return HTMLResponse(templates().get_template(name).render(values), code)

    def _values_of_experiment(self) -> JsonObject:
        if not isinstance(self.site, Service):
            return {"frame": "server_frame.html", "faults": []}
        service = self.site
        below = f"/v1/experiments/{service.settings.experiment}"
        return {
            "frame": "base.html",
            "experiment": service.settings.experiment,
            "outcome": service.settings.plan.outcome,
            "newest": service.newest,
            "server": f"{self.root.removesuffix(below)}/ui" if self.root.endswith(below) else None,
            "faults": faults(service.state) if self.may(READERS) else [],
            "archived": service.settings.archived,
            "privacy_label": self.label,
        }


ExperimentPage = PageRequest[Service]
ServerPage = PageRequest[HostedExperiments]
AnyPage = PageRequest[Any]
View = Callable[[AnyPage], Awaitable[Response]]
Again = Callable[[AnyPage, str, int], Awaitable[Response]]
"""Shows a long form again with what was typed, after a failure: its message and status."""
REPEATED = 16
"""A long form is read up to so many times the limit of a body, to be shown again."""


@dataclass
class Page:
    """A view as an ASGI application, for people with the role ``needed``."""

    view: View
    needed: str | None
    access: Access
    metrics: Metrics
    site: Service | HostedExperiments
    again: Again | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, request, cookie = time.perf_counter(), Request(scope, receive), None
        sessions = Sessions(self.access.session_secret)
        session = sessions.read(request.cookies.get(COOKIE))
        if session is None:
            session, text = sessions.begin("")
            cookie = (COOKIE, text)
        page = PageRequest(request, self.access, self.site, session, cookie=cookie)
        try:
            response = await self._permitted(page)
        except Exception as error:
            response = await self._failure(page, error)
        if page.cookie is not None and "set-cookie" not in response.headers:
            set_cookie(page, response, *page.cookie, SESSION_SECONDS)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)
        self.metrics.count("/ui", response.status_code, time.perf_counter() - began)

    async def _permitted(self, page: AnyPage) -> Response:
        """Return the answer of the view to somebody who may see it."""
        await self.access.wake()
        await self._identify(page)
        visitor, post = page.visitor, page.request.method == "POST"
        signed_out = self.needed is not None and visitor is None
        if signed_out and not (post and self.again):
            return _log_in_first(page)
        who = (visitor.id, visitor.rate) if visitor else ("dashboard", None)
        self.access.rate.take(OTHER, *who)
        if visitor is not None and self.needed is not None:
            page.permit(self.needed)
        if post:
            await self._read(page)
            if signed_out:
                return page.render("signed_out.html", 401, fields=page.fields)
            _refuse_foreign(page)
        else:
            page.fields = _fields(page.request.url.query)
        if isinstance(self.site, Service) and page.may(READERS):
            with suppress(Exception):  # a page works without it, and shows faults itself
                page.label = await label_of(self.access, self.site)
        return await self.view(page)

    async def _identify(self, page: AnyPage) -> None:
        """Find the visitor: named by a proxy, signed in as a member, or with a key."""
        access, request, members = self.access, page.request, self.access.members
        session, member = Sessions(members.secret).read(request.cookies.get(MEMBER_COOKIE)), None
        if session is not None:
            id = session.key
            member = await members.read(lambda c: members.tables.session_member(c, id))
        peer = (request.scope.get("peer") or ("",))[0]
        named = await members.named_by_proxy(request.headers.raw, peer)
        if named and (member is None or member.id != named.id):
            member, session = named, await signed_in(page, named, "single sign-on")
        if session and member:
            page.session = session
            if page.cookie and page.cookie[0] == COOKIE:
                page.cookie = None
            role = member.role_at(access.experiment)
            page.visitor = Visitor(member.id, member.name, role, member.author, member)
            return
        key = access.keys.get(page.session.key)
        if key and key.valid and page.session.began > (key.ended or 0.0):
            access.note_use(key.id)
            page.visitor = visitor_of_key(key)

    async def _read(self, page: AnyPage) -> None:
        """Read the fields of a form; one above the limit is refused after its fields were read."""
        limit, content = self.access.body_limit, bytearray()
        most = limit * (REPEATED if self.again and page.visitor else 1)
        async for part in page.request.stream():
            content += part
            if len(content) > most:
                break
        else:
            page.fields = _fields(content.decode("utf-8", "replace"))
        if len(content) > limit:
            text = f"form must be at most {limit:,} bytes; this form is larger. Shorten it."
            raise ServiceError(text, status=413, code="too_large")

    async def _failure(self, page: AnyPage, error: Exception) -> Response:
        status, problem = problem_of(error, self.access.storage_errors)
        if status >= 500:
            self.access.log.failure(
                "request failed", kind=safe_name(error), route="/ui", status=status
            )
        if self.again and page.visitor and page.fields and page.request.method == "POST":
            with suppress(Exception):
                return await self.again(page, problem.message, status)
        name = "part_error.html" if page.partial else "error.html"
        return page.render(name, status, message=problem.message)


async def label_of(access: Access, service: Service) -> JsonObject:
    """Return the values of the privacy label of everything that was published."""
    chain = service.state.serving.chain
    head = chain.links[-1].digest
    if head not in access.labels:
        ledger = await service.state.ledger()
        about = {"experiment": service.settings.experiment, "releases": len(chain.releases)}
        about |= {"head": head, "key": chain.key}
        made = datetime.now(UTC).date().isoformat()
        document = await asyncio.to_thread(label_document, ledger, about, made=made)
        access.labels = {head: label_values(document)}
    return access.labels[head]


def _fields(text: str) -> dict[str, list[str]]:
    return parse_qs(text, keep_blank_values=True)


def set_cookie(
    page: AnyPage, response: Response, name: str, text: str = "", seconds: int = 0
) -> None:
    """Set a cookie that no script reads and no form of another site sends, or delete it."""
    ours = name == MEMBER_COOKIE  # it comes with links from other sites, such as a chat
    response.set_cookie(
        name,
        text,
        max_age=seconds,
        path=f"{page.access.members.prefix}/" if ours else f"{page.root}/ui",
        httponly=True,
        samesite="lax" if ours else "strict",
        secure=page.request.url.scheme == "https",
    )


def _log_in_first(page: AnyPage) -> Response:
    page.cookie = None  # the page of the sign-in sets it
    if page.partial:  # redirect the whole page, not a part of it
        return Response(status_code=204, headers={"HX-Redirect": page.root + LOG_IN})
    url = page.request.url
    if page.request.method != "GET" or not url.query:
        return page.redirect(LOG_IN)
    shared = f"{url.path.removeprefix(page.root)}?{url.query}"  # a link that somebody shared
    return page.redirect(f"{LOG_IN}?{urlencode({'next': shared})}")


def _refuse_foreign(page: AnyPage) -> None:
    if not page.session.issued(page.given("token")):
        raise ServiceError(
            "form must come from this dashboard and be recent; its token is foreign or old. "
            "Load the page again and send it once more.",
            status=403,
            code="foreign_form",
        )


async def signed_in(page: AnyPage, member: Member, way: str) -> Session:
    """Begin a session of a member, whose cookie the answer sets."""
    members = page.access.members
    session, text = Sessions(members.secret).begin(await members.begin_session(member, way))
    page.cookie = (MEMBER_COOKIE, text)
    return session
