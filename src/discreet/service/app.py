"""The HTTP application: authentication, limits, parsing and errors around the handlers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Path_
from starlette.types import Receive, Scope, Send

from discreet.errors import ServiceError
from discreet.service import access, logs, openapi
from discreet.service.bodies import Bodies, Failure, parse
from discreet.service.handlers import Call, Raw
from discreet.service.limits import RateLimit
from discreet.service.metrics import Metrics
from discreet.service.problems import problem_of
from discreet.service.routes import ANY, PUBLIC, Route, routes
from discreet.service.service import Service
from discreet.service.settings import Settings
from discreet.service.ui.pages import pages

_ENCODER = msgspec.json.Encoder()
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
Headers = tuple[tuple[bytes, bytes], ...]
EXTRA: dict[int, Headers] = {
    401: ((b"www-authenticate", b"Bearer"),),
    429: ((b"retry-after", b"1"),),
    503: ((b"retry-after", b"1"),),
}


class Endpoint:
    """One route as an ASGI application."""

    def __init__(self, route: Route, service: Service, metrics: Metrics, rate: RateLimit) -> None:
        self._route, self._service, self._metrics, self._rate = route, service, metrics, rate
        self._decoder = None if route.body is None else msgspec.json.Decoder(route.body)
        self._open = route.scopes == PUBLIC or (route.releases and service.settings.public_releases)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        kind, extra = b"application/json", EXTRA.get(200, ())
        try:
            answer = await self._answer(scope, receive)
            status = 200
            if isinstance(answer, Raw):
                content, kind, extra = answer.content, answer.kind.encode(), answer.headers
            else:
                content = _ENCODER.encode(answer)
        except Exception as error:
            status, problem = problem_of(error, self._service.state.database.lost)
            content, extra = _ENCODER.encode(Failure(problem)), EXTRA.get(status, ())
            if status >= 500:
                logs.event(
                    "request failed",
                    kind=type(error).__name__,
                    route=self._route.path,
                    status=status,
                )
        await respond(send, status, content, kind, extra)
        self._metrics.count(self._route.path, status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive) -> Any:
        headers = dict(scope["headers"])
        caller = "public"
        if not self._open:
            given = headers.get(b"authorization", b"").decode("latin-1")
            key = access.bearer(self._service.state.keys, given)
            access.permit(key, self._route.scopes)
            caller = key.id
        self._rate.take(caller)
        client = scope.get("client") or ("",)
        call = Call(self._service, self._metrics, caller, client=client[0], headers=headers)
        call.path = scope.get("path_params", {})
        if self._decoder is not None:
            content = await self._content(headers, receive)
            call.body = parse(self._decoder, content)
        return await self._route.handler(call)

    async def _content(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        kind = headers.get(b"content-type", b"application/json").split(b";")[0].strip().lower()
        if kind != b"application/json":
            raise ServiceError(
                "Content-Type must be application/json; it is not. Send JSON.",
                status=415,
                code="not_json",
            )
        limit, content = self._service.settings.body_limit, bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ServiceError("the request must be complete; it is not.", status=400)
            content += message.get("body", b"")
            if len(content) > limit:
                raise ServiceError(
                    f"body must be at most {limit} bytes; it is larger. Send less at once.",
                    status=413,
                    code="too_large",
                )
            if not message.get("more_body"):
                return bytes(content)


async def respond(
    send: Send,
    status: int,
    content: bytes,
    kind: bytes = b"application/json",
    extra: Headers = (),
) -> None:
    """One whole answer with the headers that all have."""
    length = str(len(content)).encode()
    headers = [(b"content-type", kind), (b"content-length", length), *HEADERS, *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


class Direct:
    """Paths without a parameter go straight to their endpoint, everything else through Starlette.

    An endpoint answers its own errors, so it needs nothing of what Starlette wraps around it.
    """

    def __init__(self, app: Starlette, endpoints: dict[tuple[str, str], Endpoint]) -> None:
        self._app, self._endpoints, self.routes = app, endpoints, app.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = None
        if scope["type"] == "http":
            found = self._endpoints.get((scope["method"], scope["path"]))
        await (found or self._app)(scope, receive, send)


def make_app(service: Service) -> Starlette | Direct:
    """The application; the service starts and stops with it."""
    metrics = Metrics(internal=service.settings.internal_metrics)
    rate = RateLimit(service.settings.rate_limit)
    table = routes(Bodies(service.settings.plan))
    described = openapi.document(table, service.settings.experiment)

    async def described_api(call: Call) -> Any:  # noqa: ARG001
        return described

    shown = Route("GET", "/openapi.json", ANY, described_api, "This document")
    endpoints = {
        (each.method, each.path): Endpoint(each, service, metrics, rate) for each in (*table, shown)
    }
    paths: list[BaseRoute] = [
        Path_(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()
    ]
    paths += pages(service, metrics, rate)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001
        await service.start()
        yield
        await service.stop()

    origins = list(service.settings.cors_origins)
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
    )
    app = Starlette(
        routes=paths,
        middleware=[cors] if origins else [],
        exception_handlers={404: _not_found, 405: _not_found},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a path is right or wrong; errors have one shape
    return app if origins else Direct(app, endpoints)


async def _not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001
    status = getattr(error, "status_code", 404)
    words = {404: "path must be one of the service's; it is not. GET /openapi.json lists them."}
    said = words.get(status, "method must be one that the path has; it is not. Use another.")
    code = "not_found" if status == 404 else "method_not_allowed"
    failure = ServiceError(said, status=status, code=code)
    content = _ENCODER.encode(Failure(problem_of(failure, ())[1]))
    headers = {name.decode(): value.decode() for name, value in HEADERS}
    headers |= getattr(error, "headers", None) or {}
    return Response(content, status, headers, "application/json")


def from_environment() -> Starlette | Direct:
    """The application of a worker process, which learns its settings from the environment."""
    # Threads take turns more often, so that a commit need not wait for requests.
    sys.setswitchinterval(0.001)
    config = Path(os.environ["DISCREET_CONFIG"])
    workers = int(os.environ.get("DISCREET_WORKERS", "1"))
    service = Service(Settings.read(config), config=config, workers=workers)
    return make_app(service)
