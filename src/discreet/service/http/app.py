"""The HTTP application: every route and page; the service starts and stops with it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
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
from discreet.service.http import openapi
from discreet.service.http.bodies import Bodies, Failure
from discreet.service.http.endpoint import ENCODER, HEADERS, Endpoint
from discreet.service.http.error_responses import problem_of
from discreet.service.http.handlers import Call
from discreet.service.http.metrics import Metrics
from discreet.service.http.rate_limit import RateLimit
from discreet.service.http.refusals import Refusals
from discreet.service.http.routes import ANY, Route, routes
from discreet.service.http.supervision import end_with
from discreet.service.http.tracing import Traces, traces_of
from discreet.service.logs import ServerMessages
from discreet.service.runtime.service import Service
from discreet.service.settings import Settings
from discreet.service.ui.page_table import pages


class Direct:
    """Sends paths without a parameter straight to their endpoint, others through Starlette.

    An endpoint handles its own errors, so it does not need the layers of Starlette.
    """

    def __init__(
        self, app: Starlette, endpoints: dict[tuple[str, str], Endpoint], prefix: str = ""
    ) -> None:
        self.app, self.routes, self._prefix = app, app.routes, prefix
        self._direct = {place: each for place, each in endpoints.items() if each.takes_body}

    def taking_bodies(self) -> dict[tuple[str, str], Endpoint]:
        """Return the endpoints that read a body; they do not depend on the client's address."""
        return self._direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self._prefix and scope["path"].startswith(f"{self._prefix}/"):
            scope = {**scope, "path": scope["path"].removeprefix(self._prefix)}
        found = self._direct.get((scope["method"], scope["path"]))
        await (found or self.app)(scope, receive, send)


class CrossOrigin(CORSMiddleware):
    """Lets pages of other origins call; what goes past ASGI does the same. [protocol.py]"""

    def __init__(self, app: Direct, origins: list[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
        self.routes = app.routes


def experiment_app(service: Service, metrics: Metrics, traces: Traces | None = None) -> Direct:
    """Every route and page of one experiment; who calls this starts and stops the service."""
    rate = RateLimit(service.settings.rate_limit)
    refusals = Refusals(service.state.log)
    table = routes(Bodies(service.settings.plan))

    async def described_api(call: Call) -> Any:  # noqa: ARG001
        return openapi.document(table, service.settings.experiment, service.settings.prefix)

    shown = Route("GET", "/openapi.json", ANY, described_api, "This document")
    endpoints = {
        (each.method, each.path): Endpoint(each, service, metrics, rate, refusals, traces)
        for each in (*table, shown)
    }
    paths: list[BaseRoute] = [
        Path_(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()
    ]
    paths += pages(service, metrics, rate, refusals)
    return Direct(routed(paths), endpoints, service.settings.prefix)


def routed(paths: list[BaseRoute]) -> Starlette:
    """An application whose errors have our one shape."""
    proxies = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")
    named_by_proxy: Any = ProxyHeadersMiddleware  # its types are those of uvicorn
    app = Starlette(
        routes=paths,
        exception_handlers={404: _not_found, 405: _not_found},
        middleware=[Middleware(named_by_proxy, trusted_hosts=proxies)],
    )
    app.router.redirect_slashes = False  # a wrong path is an error, in the one shape of errors
    return app


def make_app(service: Service, traces: Traces | None = None) -> CrossOrigin | Direct:
    """The application of a single experiment; the service starts and stops with it."""
    whole = experiment_app(service, Metrics(internal=service.settings.internal_metrics), traces)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:  # noqa: ARG001
        await service.start()
        yield {"connections": service.settings.connections}
        await service.stop()

    origins = list(service.settings.cors_origins)
    whole.app.router.lifespan_context = lifespan
    return CrossOrigin(whole, origins) if origins else whole


async def _not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001
    status = getattr(error, "status_code", 404)
    words = {404: "path must be one of this service; there is no such path. See GET /openapi.json."}
    said = words.get(status, "method must be allowed for the path; this one is not. Use another.")
    code = "not_found" if status == 404 else "method_not_allowed"
    failure = ServiceError(said, status=status, code=code)
    content = ENCODER.encode(Failure(problem_of(failure, ())[1]))
    headers = {name.decode(): value.decode() for name, value in HEADERS}
    headers |= getattr(error, "headers", None) or {}
    return Response(content, status, headers, "application/json")


def from_environment() -> CrossOrigin | Direct:
    """The application of a worker process, which reads its settings from the environment."""
    # Threads switch more often, so that a commit does not wait for requests.
    sys.setswitchinterval(0.001)
    config = Path(os.environ["DISCREET_CONFIG"])
    workers = int(os.environ.get("DISCREET_WORKERS", "1"))
    if workers > 1:
        end_with(int(os.environ["DISCREET_SUPERVISOR"]))
    settings = Settings.of_text(os.environ.pop("DISCREET_EXPERIMENT"), config)
    service = Service(settings, config=config, workers=workers)
    ServerMessages(service.state.log).install()
    app = make_app(service, traces_of(settings.experiment))
    settle_memory()
    return app


def settle_memory() -> None:
    """Garbage collections skip what exists now, and run less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
