"""Common parts of all pages: log-in, permissions, the token of forms, headers, errors."""

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
from discreet.service.runtime.service import Service
from discreet.service.storage import api_keys
from discreet.service.storage.database import safe_name

COOKIE = "discreet_session"
SECONDS = 8 * 3600
"""Seconds that a log-in lasts; logging out or revoking the key ends it immediately."""


@dataclass(frozen=True)
class Session:
    """The id of an API key, empty before the log-in, the token of this session's forms, and when
    it began by the database's clock."""

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
READERS = ("audit",)
"""Who may look; ``admin`` may do everything."""
LOG_IN = "/ui/login"
SharedValues = Callable[[bool], dict[str, object]]
"""The values that all pages of an experiment show; the argument: whether somebody is logged in."""


@dataclass
class PageRequest:
    """One permitted request to the dashboard."""

    request: Request
    access: Access
    metrics: Metrics
    shared_values: SharedValues
    session: Session
    key: api_keys.Key | None
    fields: dict[str, list[str]] = field(default_factory=dict)

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
        """Id of the key, for the log."""
        return self.key.id if self.key else ""

    @property
    def admin(self) -> bool:
        return self.key is not None and "admin" in self.key.scopes

    @property
    def partial(self) -> bool:
        """True if the browser requests only a part of the page."""
        return "hx-request" in self.request.headers

    def render(self, name: str, /, code: int = 200, **values: object) -> Response:
        """Render a template with the values that every page shows."""
        text = rendered(
            name,
            **values,
            **self.shared_values(self.key is not None),
            token=self.session.token,
            key=self.key,
            admin=self.admin,
            path=self.request.url.path.removeprefix(self.root),
            root=self.root,
        )
        return HTMLResponse(text, code)


View = Callable[[PageRequest], Awaitable[Response]]
Again = Callable[[PageRequest, str, int], Awaitable[Response]]
"""Shows a long form again with what was typed, after a failure: its message and status."""


class Page:
    """A view as an ASGI application; ``scopes`` None is open to everyone."""

    def __init__(
        self,
        view: View,
        scopes: tuple[str, ...] | None,
        access: Access,
        metrics: Metrics,
        shared_values: SharedValues,
        error: str = "error.html",
        again: Again | None = None,
    ) -> None:
        self._view, self._scopes, self._error, self._again = view, scopes, error, again
        self._access, self._metrics, self._shared_values = access, metrics, shared_values
        self._sessions = Sessions(access.session_secret)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        request = Request(scope, receive)
        response = await self._respond(request)
        response.headers.update(HEADERS | dict(response.headers))
        await response(scope, receive, send)
        self._metrics.count("/ui", response.status_code, time.perf_counter() - began)

    async def _respond(self, request: Request) -> Response:
        await self._access.wake()
        session = self._sessions.read(request.cookies.get(COOKIE))
        key = self._access.keys.get(session.key) if session else None
        if session and key and (not key.valid or session.began <= (key.ended or 0.0)):
            key = None
        kept = self._again is not None and request.method == "POST"
        if self._scopes is not None and key is None and not kept:
            return _log_in_first(request, self._access.prefix)
        cookie = None
        if session is None:
            session, cookie = self._sessions.begin("", 0.0)
        page = PageRequest(request, self._access, self._metrics, self._shared_values, session, key)
        try:
            if key is None:
                self._access.rate.take(OTHER, "dashboard")
            else:
                self._access.note_use(key.id)
                self._access.rate.take(OTHER, key.id, key.rate)
            if key is not None and self._scopes is not None:
                api_keys.permit(key, self._scopes)
            if request.method == "POST":
                page.fields = await self._form(request)
                if self._scopes is not None and key is None:
                    return page.render("kept.html", 401, fields=page.fields)
                _refuse_foreign(page)
            else:
                page.fields = _fields(request.url.query)
            response = await self._view(page)
        except Exception as error:
            response = await self._failure(page, error)
        if cookie is not None and "set-cookie" not in response.headers:
            set_cookie(page, response, cookie)
        return response

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
        if self._again is not None and page.key and page.fields and page.request.method == "POST":
            with suppress(Exception):
                return await self._again(page, problem.message, status)
        name = "part_error.html" if page.partial else self._error
        return page.render(name, status, message=problem.message)


def _fields(text: str) -> dict[str, list[str]]:
    return parse_qs(text, keep_blank_values=True)


def set_cookie(page: PageRequest, response: Response, text: str) -> None:
    """Set a cookie that no script reads and no other site sends."""
    response.set_cookie(
        COOKIE,
        text,
        max_age=SECONDS,
        path=f"{page.root}/ui",
        httponly=True,
        samesite="strict",
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


LONGEST = 4096
"""Characters of a link that is kept while somebody logs in."""


async def log_in(page: PageRequest, _service: Service) -> Response:
    """Show a form for a key; a key with the scope audit or admin opens a session."""
    after = _page_of(page.given("next"))
    if page.request.method == "GET":
        return page.render("login.html", message="", after=after)
    refusal = "The key must be valid, with scope audit or admin; this key is invalid or lacks it."
    return await session_begun(page, READERS, after or "/ui", "login.html", refusal, after=after)


async def session_begun(
    page: PageRequest, scopes: tuple[str, ...], to: str, form: str, refusal: str, **values: str
) -> Response:
    """Begin a session for a key with one of the scopes; show the form again for other keys."""
    access, request = page.access, page.request
    try:
        key = api_keys.bearer(access.keys, f"Bearer {page.given('key')}")
        api_keys.permit(key, scopes)
    except ServiceError as error:
        peer = request.client.host if request.client else ""
        refused = access.refusals.count(error, dict(request.headers.raw), peer)
        return page.render(form, refused.status or 401, message=refusal, **values)
    access.log.event("logged in", by=key.id)
    # A new session: a session that someone prepared before the log-in must not gain rights.
    _, cookie = Sessions(access.session_secret).begin(key.id, await access.now())
    response = page.to(to)
    set_cookie(page, response, cookie)
    return response


def _page_of(text: str) -> str:
    """Return the page that a link led to before the log-in; empty for other addresses."""
    ours = text.startswith(("/ui?", "/ui/")) and text.isascii() and text.isprintable()
    return text if ours and len(text) <= LONGEST else ""


async def log_out(page: PageRequest, _service: Service | None = None) -> Response:
    """Afterwards copies of the cookie are worthless, and so are other sessions of this key."""
    await page.access.end_sessions(page.session.key)
    response = page.to(LOG_IN)
    response.delete_cookie(COOKIE, path=f"{page.root}/ui", httponly=True, samesite="strict")
    return response
