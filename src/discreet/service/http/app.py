"""The HTTP application of an experiment: its routes and pages."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Path_
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from discreet.errors import ServiceError
from discreet.service.access import Access, ExperimentAccess
from discreet.service.dashboard.server_pages import pages
from discreet.service.error_responses import problem_of
from discreet.service.http.bodies import Bodies, Failure
from discreet.service.http.endpoint import ENCODER, HEADERS, Endpoint
from discreet.service.http.handlers import Call, ExperimentHandlers
from discreet.service.http.personalizer_routes import personalizer_paths
from discreet.service.http.routes import ANY, Route, experiment_routes, openapi_document
from discreet.service.http.tracing import Traces
from discreet.service.metrics import Metrics
from discreet.service.runtime.service import Service
from discreet.service.settings import ServerSettings, Settings


class ExperimentApp:
    """ASGI application of one experiment, or of the server itself.

    Paths without a parameter whose endpoint reads a body go straight to that endpoint, which
    handles its own errors; all others go through Starlette.
    """

    def __init__(
        self, app: Starlette, endpoints: dict[tuple[str, str], Endpoint], prefix: str = ""
    ) -> None:
        self.app, self.routes, self._prefix = app, app.routes, prefix
        self._direct = {place: each for place, each in endpoints.items() if each.takes_body}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self._prefix and scope["path"].startswith(f"{self._prefix}/"):
            scope = {**scope, "path": scope["path"].removeprefix(self._prefix)}
        found = self._direct.get((scope["method"], scope["path"]))
        await (found or self.app)(scope, receive, send)


class CrossOrigin(CORSMiddleware):
    """Responses with the headers that let pages of other origins read them."""

    def __init__(self, app: ExperimentApp, origins: tuple[str, ...]) -> None:
        super().__init__(
            app,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=[
                *("Authorization", "Content-Type", "Idempotency-Key"),
                "Ocp-Apim-Subscription-Key",
            ],
        )
        self.routes = app.routes


def experiment_app(
    service: Service, metrics: Metrics, traces: Traces | None = None
) -> ExperimentApp:
    """Return the routes and pages of one experiment; the caller starts and stops the service."""
    access = ExperimentAccess(service)
    table = experiment_routes(Bodies(service.settings.plan), ExperimentHandlers(service, metrics))
    own = personalizer_paths(service, access, metrics) + pages(service, access, metrics)
    return routed(table, own, access, metrics, service.settings.experiment, ANY, traces)


def routed(
    table: tuple[Route, ...],
    own_pages: list[BaseRoute],
    access: Access,
    metrics: Metrics,
    title: str,
    readers: tuple[str, ...],
    traces: Traces | None = None,
) -> ExperimentApp:
    """Return the application of a table of routes, its OpenAPI document and pages."""

    async def described_api(call: Call) -> Any:  # noqa: ARG001
        return openapi_document(table, title, access.prefix)

    document = Route("GET", "/openapi.json", readers, described_api, "This document")
    endpoints = {
        (each.method, each.path): Endpoint(each, access, metrics, traces)
        for each in (*table, document)
    }
    paths: list[BaseRoute] = [
        Path_(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()
    ]
    named_by_proxy: Any = ProxyHeadersMiddleware  # its types are those of uvicorn
    proxies = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")
    app = Starlette(
        routes=paths + own_pages,
        exception_handlers={404: _not_found, 405: _not_found},
        middleware=[Middleware(named_by_proxy, trusted_hosts=proxies)],
    )
    app.router.redirect_slashes = False  # a wrong path is an error, in the one shape of errors
    return ExperimentApp(app, endpoints, access.prefix)


def make_app(service: Service, traces: Traces | None = None) -> CrossOrigin | ExperimentApp:
    """Return the application of a single experiment; the service starts and stops with it."""
    settings = service.settings
    app = experiment_app(service, Metrics(internal=settings.internal_metrics), traces)
    return started_with(app, app, settings, service.start, service.stop)


def started_with(
    app: ExperimentApp,
    router: ExperimentApp,
    settings: Settings | ServerSettings,
    start: Callable[[], Awaitable[None]],
    stop: Callable[[], Awaitable[None]],
) -> CrossOrigin | ExperimentApp:
    """Return an application that starts and stops what it serves, for the allowed origins."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[dict[str, Any]]:
        await start()
        yield {"connections": settings.connections}  # read by ``request_limits.py``
        await stop()

    router.app.router.lifespan_context = lifespan
    return CrossOrigin(app, settings.cors_origins) if settings.cors_origins else app


async def _not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001
    status = getattr(error, "status_code", 404)
    if status == 404:
        code = "not_found"
        message = "path must be one of this service; there is no such path. See GET /openapi.json."
    else:
        code = "method_not_allowed"
        message = "method must be allowed for the path; this one is not. Use another."
    failure = ServiceError(message, status=status, code=code)
    content = ENCODER.encode(Failure(problem_of(failure, ())[1]))
    headers = {name.decode(): value.decode() for name, value in HEADERS}
    headers |= getattr(error, "headers", None) or {}
    return Response(content, status, headers, "application/json")


def settle_memory() -> None:
    """Exclude existing objects from garbage collection, and let it run less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
