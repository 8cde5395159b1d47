"""Common parts of all pages: sign-in, permissions, the token of forms, headers, errors."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from urllib.parse import parse_qs, urlencode

from cryptography.fernet import Fernet, InvalidToken
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from discreet.errors import ServiceError
from discreet.service.access import OTHER, Access
from discreet.service.dashboard.templating import rendered
from discreet.service.error_responses import problem_of
from discreet.service.metrics import Metrics
from discreet.service.storage import api_keys
from discreet.service.storage.database import safe_name
from discreet.service.storage.member_tables import NONE, ROLES, SESSION_SECONDS, Member

COOKIE, MEMBER_COOKIE = "discreet_session", "discreet_member"
"""Cookies of a session that an API key began, and of one that a member began. That of a member is
for all experiments of a server."""
SECONDS = SESSION_SECONDS
"""Seconds that a session lasts; signing out or revoking the key ends it immediately."""


@dataclass(frozen=True)
class Session:
    """The id of an API key or of a member's session, empty before the sign-in, the token of this
    session's forms, and when it began by the database's clock."""

    key: str
    token: str
    began: float

    def issued(self, token: str) -> bool:
        """Return whether a form carries the token of this session; compared in constant time."""
        return hmac.compare_digest(self.token.encode(), token.encode())


class Sessions:
    """Writes and reads cookies; every worker can, since all workers have the vault's secret."""

    def __init__(self, mac: bytes) -> None:
        secret = hmac.digest(mac, b"sessions of the dashboard", "sha256")
        self._box = Fernet(base64.urlsafe_b64encode(secret))

    def begin(self, key: str, began: float) -> tuple[Session, str]:
        """Return a new session and its cookie."""
        session = Session(key, secrets.token_urlsafe(24), began)
        return session, self._box.encrypt(json.dumps(astuple(session)).encode()).decode()

    def read(self, cookie: str | None) -> Session | None:
        """Return the session of a valid cookie that is not too old; otherwise None."""
        try:
            return Session(*json.loads(self._box.decrypt((cookie or "").encode(), ttl=SECONDS)))
        except (InvalidToken, TypeError):  # altered, too old, or of an older version
            return None


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
LOG_IN = "/ui/login"
SharedValues = Callable[[bool], dict[str, object]]
"""The values that all pages of an experiment show; the argument: whether the visitor may look."""


@dataclass(frozen=True)
class Visitor:
    """Whoever is signed in: a member, or the holder of an API key; ``role`` is for these pages."""

    id: str
    name: str
    role: str
    author: str
    """Id, and name of a member, for the history."""
    member: Member | None = None
    rate: int | None = None

    def role_at(self, experiment: str) -> str:
        """Return the role for one experiment of a server; the server's keys have all rights."""
        return self.member.role_at(experiment) if self.member else self.role


def visitor_of_key(key: api_keys.Key) -> Visitor:
    """Return the holder of a key: ``admin`` and the server's keys have all rights."""
    role = NONE
    if key.scopes & {"admin", api_keys.SERVER}:
        role = "owner"
    elif "audit" in key.scopes:
        role = "viewer"
    return Visitor(key.id, key.label or "key", role, key.id, rate=key.rate)


def at_least(role: str, needed: str) -> bool:
    """Return whether a role includes the rights of another."""
    return ROLES.index(role) >= ROLES.index(needed)


@dataclass
class PageRequest:
    """One permitted request to the dashboard."""

    request: Request
    access: Access
    metrics: Metrics
    shared_values: SharedValues
    session: Session
    visitor: Visitor | None = None
    cookie: tuple[str, str] | None = None
    """Name and text of a cookie that the answer sets, unless the view sets another."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    privacy_words: str = ""
    """What the releases reveal at most, in one sentence of every page."""

    def given(self, name: str) -> str:
        """Return a field of the form, or of the address; empty if it is missing."""
        return self.fields.get(name, [""])[0]

    @property
    def root(self) -> str:
        """Prefix of every path, if a proxy serves the service below a path."""
        return self.access.prefix

    def to(self, path: str) -> Response:
        """Lead the browser to a page, after a form."""
        return RedirectResponse(self.root + path, 303)

    @property
    def by(self) -> str:
        """Author of changes, for the history and the log."""
        return self.visitor.author if self.visitor else ""

    @property
    def address(self) -> str:
        """Address of the browser, as a trusted proxy names it."""
        return self.request.client.host if self.request.client else ""

    def may(self, needed: str) -> bool:
        """Return whether the person on this page has the rights of a role."""
        return self.visitor is not None and at_least(self.visitor.role, needed)

    def permit(self, needed: str, role: str | None = None) -> None:
        """Refuse with 403 unless the person has the rights of a role."""
        role = role or (self.visitor.role if self.visitor else NONE)
        if not at_least(role, needed):
            raise ServiceError(
                f"This needs the role {needed}; your role here is {role}. Ask an owner, who can "
                "change it on the page Members.",
                status=403,
                code="forbidden",
            )

    @property
    def partial(self) -> bool:
        """True if the browser requests only a part of the page."""
        return "hx-request" in self.request.headers

    def render(self, name: str, code: int = 200, /, **values: object) -> Response:
        """Render a template with the values that every page shows."""
        text = rendered(
            name,
            **values,
            **self.shared_values(self.may(READERS)),
            privacy_words=self.privacy_words,
            token=self.session.token,
            visitor=self.visitor,
            admin=self.may(ADMIN),
            owner=self.may(OWNERS),
            path=self.request.url.path.removeprefix(self.root),
            root=self.root,
        )
        return HTMLResponse(text, code)


View = Callable[[PageRequest], Awaitable[Response]]
Again = Callable[[PageRequest, str, int], Awaitable[Response]]
"""Shows a long form again with what was typed, after a failure: its message and status."""


class Page:
    """A view as an ASGI application, for people with the role ``needed``."""

    def __init__(
        self,
        view: View,
        needed: str | None,
        access: Access,
        metrics: Metrics,
        shared_values: SharedValues,
        again: Again | None = None,
    ) -> None:
        self._view, self._needed, self._again = view, needed, again
        self._access, self._metrics, self._shared_values = access, metrics, shared_values
        self._sessions = Sessions(access.session_secret)
        self._member_sessions = Sessions(access.members.secret)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        request = Request(scope, receive)
        response = await self._respond(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)
        self._metrics.count("/ui", response.status_code, time.perf_counter() - began)

    async def _respond(self, request: Request) -> Response:
        session = self._sessions.read(request.cookies.get(COOKIE))
        cookie = None
        if session is None:
            session, text = self._sessions.begin("", 0.0)
            cookie = (COOKIE, text)
        page = PageRequest(request, self._access, self._metrics, self._shared_values, session)
        page.cookie = cookie
        try:
            await self._access.wake()
            await self._identify(page)
            visitor = page.visitor
            if self._needed is not None and visitor is None:
                return await self._not_signed_in(page)
            if visitor is None:
                self._access.rate.take(OTHER, "dashboard")
            else:
                self._access.rate.take(OTHER, visitor.id, visitor.rate)
            if self._needed is not None:
                page.permit(self._needed)
            if request.method == "POST":
                page.fields = await self._form(request)
                _refuse_foreign(page)
            else:
                page.fields = _fields(request.url.query)
            response = await self._view(page)
        except Exception as error:
            response = await self._failure(page, error)
        if page.cookie is not None and "set-cookie" not in response.headers:
            set_cookie(page, response, *page.cookie, SECONDS)
        return response

    async def _not_signed_in(self, page: PageRequest) -> Response:
        """Lead to the sign-in; the page of a long form keeps what was typed meanwhile."""
        if self._again is None or page.request.method != "POST":
            return _log_in_first(page.request, self._access.prefix)
        self._access.rate.take(OTHER, "dashboard")
        return page.render("kept.html", 401, fields=await self._form(page.request))

    async def _identify(self, page: PageRequest) -> None:
        """Find who is signed in: by a proxy, as a member, or with a key."""
        access, request, members = self._access, page.request, self._access.members
        session, member = self._member_sessions.read(request.cookies.get(MEMBER_COOKIE)), None
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

    async def _form(self, request: Request) -> dict[str, list[str]]:
        limit, content = self._access.body_limit, bytearray()
        async for part in request.stream():
            content += part
            if len(content) > limit:
                raise ServiceError(
                    f"form must be at most {limit} bytes; this form is larger. Send less.",
                    status=413,
                    code="too_large",
                )
        return _fields(content.decode("utf-8", "replace"))

    async def _failure(self, page: PageRequest, error: Exception) -> Response:
        status, problem = problem_of(error, self._access.storage_errors)
        if status >= 500:
            self._access.log.failure(
                "request failed", kind=safe_name(error), route="/ui", status=status
            )
        if (
            self._again is not None
            and page.visitor
            and page.fields
            and page.request.method == "POST"
        ):
            with suppress(Exception):
                return await self._again(page, problem.message, status)
        name = "part_error.html" if page.partial else "error.html"
        return page.render(name, status, message=problem.message)


def _fields(text: str) -> dict[str, list[str]]:
    return parse_qs(text, keep_blank_values=True)


def set_cookie(
    page: PageRequest, response: Response, name: str, text: str = "", seconds: int = 0
) -> None:
    """Set a cookie that no script reads and no form of another site sends, or delete it. That of
    a member comes with links from other sites, such as a chat."""
    ours = name == MEMBER_COOKIE
    response.set_cookie(
        name,
        text,
        max_age=seconds,
        path=f"{page.access.members.prefix}/" if ours else f"{page.root}/ui",
        httponly=True,
        samesite="lax" if ours else "strict",
        secure=page.request.url.scheme == "https",
    )


def _log_in_first(request: Request, prefix: str) -> Response:
    place = prefix + LOG_IN
    if "hx-request" in request.headers:  # redirect the whole page, not a part of it
        return Response(status_code=204, headers={"HX-Redirect": place})
    if request.method == "GET" and request.url.query:  # a link that somebody shared
        path = request.url.path.removeprefix(prefix)
        place += "?" + urlencode({"next": f"{path}?{request.url.query}"})
    return RedirectResponse(place, 303)


def _refuse_foreign(page: PageRequest) -> None:
    if not page.session.issued(page.given("token")):
        raise ServiceError(
            "form must come from this dashboard and be recent; its token is foreign or old. "
            "Load the page again and send it once more.",
            status=403,
            code="foreign_form",
        )


async def signed_in(page: PageRequest, member: Member, way: str) -> Session:
    """Begin a session of a member, whose cookie the answer sets."""
    members = page.access.members
    id = await members.begin_session(member, way)
    session, text = Sessions(members.secret).begin(id, 0.0)
    page.cookie = (MEMBER_COOKIE, text)
    return session
