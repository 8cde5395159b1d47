"""The HTTP application of a server: of a folder of experiments, or of a single one at the root."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Path_
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from discreet.service.access import Access, ErrorDetail, ExperimentAccess, ServerAccess
from discreet.service.dashboard.page_routes import page_routes
from discreet.service.http.bodies import Bodies, Failure
from discreet.service.http.endpoint import ENCODER, HEADERS, Endpoint, ExperimentApp, Traces
from discreet.service.http.handlers import Call, ExperimentHandlers, ServerHandlers
from discreet.service.http.personalizer_routes import personalizer_paths
from discreet.service.http.routes import (
    ANY,
    Route,
    experiment_routes,
    openapi_document,
    server_routes,
)
from discreet.service.membership import Members
from discreet.service.metrics import Families, Metrics
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.runtime.hosted_experiments import HostedExperiments
from discreet.service.runtime.service import Service
from discreet.service.settings import ServerSettings
from discreet.service.storage.api_keys import SERVER
from discreet.service.storage.database import safe_name

BELOW = "/v1/experiments/"
FIRST_PARTS = (
    *("v1", "ui", "metrics", "internal", "healthz", "readyz", "openapi.json", ""),
    "personalizer",
)
"""First parts of the paths of an experiment; others are short for /v1/…."""
READING = ("/ui/login", "/ui/logout", "/ui/explorer")
"""Forms of the pages that change nothing of an experiment."""
SENT_BY_OTHERS = ("Authorization", "Content-Type", "Idempotency-Key", "Ocp-Apim-Subscription-Key")
"""Headers that pages of other origins may send."""
LISTS = "GET /v1/experiments lists them."


def refusal(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer to a request that reaches no route."""
    sent = {name.decode(): value.decode() for name, value in HEADERS} | dict(headers or {})
    if status == 503:
        sent["retry-after"] = "1"
    content = ENCODER.encode(Failure(ErrorDetail(code, message)))
    return Response(content, status, sent, "application/json")


def experiment_app(
    service: Service,
    metrics: Metrics,
    traces: Traces | None = None,
    members: Members | None = None,
) -> ExperimentApp:
    """Return the routes and pages of a started experiment; ``members`` are those of its server."""
    access = ExperimentAccess(service, members)
    table = experiment_routes(Bodies(service.settings.plan), ExperimentHandlers(service, metrics))
    own = personalizer_paths(service, access, metrics) + page_routes(service, access, metrics)
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
    async def described_api(_call: Call) -> object:
        return openapi_document(table, title, access.prefix)

    document = Route("GET", "/openapi.json", readers, described_api, "This document")
    endpoints = {
        (each.method, each.path): Endpoint(each, access, metrics, traces)
        for each in (*table, document)
    }
    paths: list[BaseRoute] = [
        Path_(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()
    ]
    proxy: object = ProxyHeadersMiddleware  # its types are those of uvicorn
    proxies = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")
    app = Starlette(
        routes=paths + own_pages,
        exception_handlers={404: _not_found, 405: _not_found},
        middleware=[Middleware(proxy, trusted_hosts=proxies)],  # type: ignore[arg-type]
    )
    app.router.redirect_slashes = False  # a wrong path is an error, in the one shape of errors
    return ExperimentApp(app, endpoints, access.prefix)


class ServerApp(ExperimentApp):
    """Paths of a server: those without a name belong to its only experiment."""

    def __init__(self, hosted: HostedExperiments, own: ExperimentApp) -> None:
        super().__init__(own.app, {})
        self._hosted, self._own = hosted, own
        self._before = hosted.folder.server.prefix
        self._paths = {getattr(route, "path", "") for route in own.routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            app, scope = await self._route(scope)
        else:
            app = self._own
        await app(scope, receive, send)

    async def _route(self, scope: Scope) -> tuple[ASGIApp, Scope]:
        """Return the application of a path, and the path there; or an answer that refuses it."""
        hosted, rest = self._hosted, scope["path"]
        if self._before and rest.startswith(f"{self._before}/"):
            rest = rest.removeprefix(self._before)
        name = None
        servers = rest in self._paths or rest.startswith("/v1/admin/experiments/")
        if rest.startswith(BELOW):
            name, _, tail = rest.removeprefix(BELOW).partition("/")
            rest = f"/{tail}" if tail.partition("/")[0] in FIRST_PARTS else f"/v1/{tail}"
        elif rest.startswith(("/v1/", "/personalizer/")) and not servers:
            name = hosted.only()
            if name is None and rest.startswith("/v1/"):
                text = "path must name an experiment, as in /v1/experiments/NAME/decide; it names "
                text += f"none, and this server has not exactly one. {LISTS}"
                return refusal(404, "unknown_experiment", text), scope
        if name is None:
            return self._own, {**scope, "path": rest}
        found = hosted.served.get(name)
        if found is None and name not in hosted.broken:
            archived = await asyncio.to_thread(hosted.folder.archived_file, name)
            if archived is not None and not (scope["method"] == "GET" or rest in READING):
                text = f"experiment {name!r} is archived. Its documents and pages can be read; it "
                text += "decides and stores nothing, and nothing of it can be changed."
                return refusal(410, "archived", text), scope
            try:
                if archived is not None:
                    found = await hosted.read_archived(name, archived)
            except Exception as error:
                text = f"archived experiment {name!r} cannot be read ({safe_name(error)}). Its "
                text += "documents are in its folder; discreet experiment list names it."
                return refusal(503, "not_ready", text), scope
        if found is None and name in hosted.broken:
            text = f"experiment {name!r} must be able to start; it is not "
            text += f"({hosted.broken[name].kind}). The server's list and discreet experiment list "
            text += "say why; it is tried again every few seconds."
            return refusal(503, "not_ready", text), scope
        if found is None:
            text = "experiment must be one that this server has; it has none of this name. "
            text += f"{LISTS[:-1]}, with the key of the server."
            return refusal(404, "unknown_experiment", text), scope
        return found.app, {**scope, "path": found.service.settings.server.prefix + rest}


def make_app(service: Service, traces: Traces | None = None) -> ASGIApp:
    settings = service.settings
    app = experiment_app(service, Metrics(internal=settings.internal_metrics), traces)
    return _started_with(app, app, settings.server, service.start, service.stop)


def make_folder_app(
    folder: ExperimentFolder, *, workers: int = 1, traces: Traces | None = None
) -> tuple[ASGIApp, HostedExperiments, ServerAccess]:
    """Return the application, the experiments that start and stop with it, and its access."""
    families = Families(named=True)

    def mount(name: str, service: Service) -> ExperimentApp:
        internal = service.settings.internal_metrics
        metrics = Metrics(internal=internal, families=families, experiment=name)
        return experiment_app(service, metrics, traces, access.members)

    hosted, access = HostedExperiments(folder, mount, workers=workers), ServerAccess(folder.server)
    metrics = Metrics(internal=False, families=families, experiment="")
    table = server_routes(ServerHandlers(hosted, families))
    own_pages = page_routes(hosted, access, metrics)
    own = routed(table, own_pages, access, metrics, "experiments", (SERVER,))

    async def stop() -> None:
        await hosted.stop()
        access.close()

    app = _started_with(ServerApp(hosted, own), own, folder.server, hosted.start, stop)
    return app, hosted, access


def _started_with(
    app: ExperimentApp,
    router: ExperimentApp,
    settings: ServerSettings,
    start: Callable[[], Awaitable[None]],
    stop: Callable[[], Awaitable[None]],
) -> ASGIApp:
    """Return an application that starts and stops what it serves, for the allowed origins."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[dict[str, int]]:
        await start()
        yield {"connections": settings.connections}  # read by ``request_limits.py``
        await stop()

    router.app.router.lifespan_context = lifespan
    if not settings.cors_origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=settings.cors_origins,
        allow_methods=["GET", "POST"],
        allow_headers=SENT_BY_OTHERS,
    )


async def _not_found(_request: Request, error: Exception) -> Response:
    status, headers = getattr(error, "status_code", 404), getattr(error, "headers", None)
    if status == 404:
        text = "path must be one of this service; there is no such path. See GET /openapi.json."
        return refusal(status, "not_found", text, headers)
    text = "method must be allowed for the path; this one is not. Use another."
    return refusal(status, "method_not_allowed", text, headers)
