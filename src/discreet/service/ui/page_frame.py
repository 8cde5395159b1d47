"""What all pages share: log-in, permissions, the token of forms, headers, errors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from discreet.errors import ServiceError
from discreet.service.http.error_responses import problem_of
from discreet.service.http.metrics import Metrics
from discreet.service.http.rate_limit import OTHER, RateLimit
from discreet.service.http.refusals import Refusals
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import faults
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.storage import api_keys
from discreet.service.storage.database import safe_name
from discreet.service.ui.session import COOKIE, SECONDS, Session, Sessions
from discreet.service.ui.templating import rendered

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


@dataclass
class Asked:
    """One permitted request to the dashboard."""

    request: Request
    service: Service
    metrics: Metrics
    refusals: Refusals
    session: Session
    key: api_keys.Key | None
    fields: dict[str, list[str]] = field(default_factory=dict)

    def given(self, name: str) -> str:
        """A field of the form, or of the address; empty if it is missing."""
        return self.fields.get(name, [""])[0]

    @property
    def root(self) -> str:
        """What comes before every path, where a proxy serves us below a path of its own."""
        return self.service.settings.prefix

    @property
    def server(self) -> str | None:
        """The page of all experiments, if this is one of a server's."""
        below = f"/v1/experiments/{self.service.settings.experiment}"
        return f"{self.root.removesuffix(below)}/ui" if self.root.endswith(below) else None

    def to(self, path: str) -> Response:
        """Lead the browser to a page, after a form."""
        return RedirectResponse(self.root + path, 303)

    @property
    def by(self) -> str:
        """The id of the key that does something, for the log."""
        return self.key.id if self.key else ""

    @property
    def admin(self) -> bool:
        return self.key is not None and "admin" in self.key.scopes

    @property
    def partial(self) -> bool:
        """Whether the browser asks for a part of the page only."""
        return "hx-request" in self.request.headers

    @property
    def faults(self) -> list[str]:
        """What an operator should repair; of a server of many experiments, nothing."""
        state = self.service.state
        return faults(state) if isinstance(state, WorkerState) and self.key else []

    def page(self, name: str, code: int = 200, **values: Any) -> Response:
        """Render a template with the values that every page shows."""
        text = rendered(
            name,
            **values,
            experiment=self.service.settings.experiment,
            outcome=self.service.settings.plan.outcome,
            token=self.session.token,
            key=self.key,
            admin=self.admin,
            path=self.request.url.path.removeprefix(self.root),
            root=self.root,
            server=self.server,
            newest=self.service.newest,
            faults=self.faults,
        )
        return HTMLResponse(text, code)


View = Callable[[Asked], Awaitable[Response]]


class Page:
    """A view as an ASGI application; ``scopes`` None is open to everyone."""

    def __init__(
        self,
        view: View,
        scopes: tuple[str, ...] | None,
        service: Service,
        metrics: Metrics,
        rate: RateLimit,
        refusals: Refusals,
        error: str = "error.html",
    ) -> None:
        self._view, self._scopes, self._error = view, scopes, error
        self._service, self._metrics, self._rate = service, metrics, rate
        self._refusals = refusals
        self._sessions = Sessions(service.state.vault.mac)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        request = Request(scope, receive)
        response = await self._respond(request)
        response.headers.update(HEADERS | dict(response.headers))
        await response(scope, receive, send)
        self._metrics.count("/ui", response.status_code, time.perf_counter() - began)

    async def _respond(self, request: Request) -> Response:
        if self._service.state.asleep:
            await self._service.upkeep.wake()
        self._service.state.last_request = time.perf_counter()
        session = self._sessions.read(request.cookies.get(COOKIE))
        key = self._service.state.keys.get(session.key) if session else None
        if session and key and (not key.valid or session.began <= (key.ended or 0.0)):
            key = None
        if self._scopes is not None and key is None:
            return _log_in_first(request, self._service.settings.prefix)
        cookie = None
        if session is None:
            session, cookie = self._sessions.begin("", 0.0)
        asked = Asked(request, self._service, self._metrics, self._refusals, session, key)
        try:
            if key is None:
                self._rate.take(OTHER, "dashboard")
            else:
                self._service.state.used.add(key.id)
                self._rate.take(OTHER, key.id, key.rate)
            if key is not None and self._scopes is not None:
                api_keys.permit(key, self._scopes)
            if request.method == "POST":
                asked.fields = await self._form(request)
                _refuse_foreign(asked)
            else:
                asked.fields = _fields(request.url.query)
            response = await self._view(asked)
        except Exception as error:
            response = self._failure(asked, error)
        if cookie is not None and "set-cookie" not in response.headers:
            set_cookie(asked, response, cookie)
        return response

    async def _form(self, request: Request) -> dict[str, list[str]]:
        limit, content = self._service.settings.body_limit, bytearray()
        async for part in request.stream():
            content += part
            if len(content) > limit:
                raise ServiceError(
                    f"form must be at most {limit} bytes; this form is larger. Send less.",
                    status=413,
                    code="too_large",
                )
        return _fields(content.decode("utf-8", "replace"))

    def _failure(self, asked: Asked, error: Exception) -> Response:
        status, problem = problem_of(error, self._service.state.database.lost)
        if status >= 500:
            self._service.state.log.failure(
                "request failed", kind=safe_name(error), route="/ui", status=status
            )
        name = "part_error.html" if asked.partial else self._error
        return asked.page(name, status, message=problem.message)


def _fields(text: str) -> dict[str, list[str]]:
    return parse_qs(text, keep_blank_values=True)


def set_cookie(asked: Asked, response: Response, text: str) -> None:
    """A cookie that no script reads and no other site sends."""
    response.set_cookie(
        COOKIE,
        text,
        max_age=SECONDS,
        path=f"{asked.root}/ui",
        httponly=True,
        samesite="strict",
        secure=asked.request.url.scheme == "https",
    )


def _log_in_first(request: Request, prefix: str) -> Response:
    place = prefix + LOG_IN
    if "hx-request" in request.headers:  # redirect the whole page, not a part of it
        return Response(status_code=204, headers={"HX-Redirect": place})
    if request.method == "GET" and request.url.query:  # a link that somebody shared
        path = request.url.path.removeprefix(prefix)
        place += "?" + urlencode({"next": f"{path}?{request.url.query}"})
    return RedirectResponse(place, 303)


def _refuse_foreign(asked: Asked) -> None:
    if not asked.session.issued(asked.given("token")):
        raise ServiceError(
            "form must come from this dashboard and be recent; its token is foreign or old. "
            "Load the page again and send it once more.",
            status=403,
            code="foreign_form",
        )
