"""The HTTP application of a server: of a folder of experiments, or of a single one at the root."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

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
from discreet.service.access import Access, ExperimentAccess, ServerAccess, problem_of
from discreet.service.dashboard.server_pages import pages, server_pages
from discreet.service.http.bodies import Bodies, Failure
from discreet.service.http.endpoint import ENCODER, HEADERS, Endpoint, ExperimentApp
from discreet.service.http.handlers import Call, ExperimentHandlers
from discreet.service.http.personalizer_routes import personalizer_paths
from discreet.service.http.routes import ANY, Route, experiment_routes, openapi_document
from discreet.service.http.server_handlers import ServerHandlers, server_routes
from discreet.service.http.tracing import Traces
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
    service: Service,
    metrics: Metrics,
    traces: Traces | None = None,
    members: Members | None = None,
) -> ExperimentApp:
    """Return the routes and pages of one experiment; the caller starts and stops the service.

    An experiment of a folder has the ``members`` of its server.
    """
    access = ExperimentAccess(service, members)
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

    async def described_api(call: Call) -> object:  # noqa: ARG001
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
    """Application of a server: ``/v1/experiments/NAME/…`` belongs to that experiment.

    Where there is exactly one experiment, its paths without a name reach it too.
    """

    def __init__(self, hosted: HostedExperiments, own: ExperimentApp) -> None:
        super().__init__(own.app, {})
        self._hosted, self._own = hosted, own
        self._before = hosted.folder.server.prefix
        self._places = {getattr(route, "path", "") for route in own.routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._own(scope, receive, send)
            return
        path: str = scope["path"]
        if self._before and path.startswith(f"{self._before}/"):
            path = path.removeprefix(self._before)
        name, rest = self._only(path)
        if path.startswith(BELOW):
            name, _, tail = path.removeprefix(BELOW).partition("/")
            rest = f"/{tail}" if tail.partition("/")[0] in FIRST_PARTS else f"/v1/{tail}"
        if name is None and path.startswith("/v1/") and not self._servers(path):
            await _refuse(_unnamed(), send)
            return
        if name is None:
            await self._own({**scope, "path": path}, receive, send)
            return
        found = self._hosted.served.get(name)
        if found is None and name not in self._hosted.broken:
            archived = await asyncio.to_thread(self._hosted.folder.archived_file, name)
            if archived is not None and not (scope["method"] == "GET" or rest in READING):
                await _refuse(_archived(name), send)
                return
            try:
                if archived is not None:
                    found = await self._hosted.read_archived(name, archived)
            except Exception as error:
                await _refuse(_unreadable(name, error), send)
                return
        if found is None:
            await _refuse(self._missing(name), send)
            return
        whole = found.service.settings.server.prefix + rest
        await found.app({**scope, "path": whole}, receive, send)

    def _only(self, path: str) -> tuple[str | None, str]:
        """Return the only experiment, where the path is not one of the server's own."""
        mine = path.startswith(("/v1/", "/personalizer/")) and not self._servers(path)
        return (self._hosted.only() if mine else None), path

    def _servers(self, path: str) -> bool:
        """Return whether a path below /v1 is one of the server itself."""
        return path in self._places or path.startswith("/v1/admin/experiments/")

    def _missing(self, name: str) -> ServiceError:
        broken = self._hosted.broken.get(name)
        if broken is None:
            return ServiceError(
                "experiment must be one that this server has; it has none of this name. "
                "GET /v1/experiments lists them, with the key of the server.",
                status=404,
                code="unknown_experiment",
            )
        return ServiceError(
            f"experiment {name!r} must be able to start; it is not ({broken.kind}). The server's "
            "list and discreet experiment list say why; it is tried again every few seconds.",
            status=503,
            code="not_ready",
        )


def _archived(name: str) -> ServiceError:
    return ServiceError(
        f"experiment {name!r} is archived. Its documents and pages can be read; it decides and "
        "stores nothing, and nothing of it can be changed.",
        status=410,
        code="archived",
    )


def _unreadable(name: str, error: Exception) -> ServiceError:
    return ServiceError(
        f"archived experiment {name!r} cannot be read ({safe_name(error)}). Its documents are in "
        "its folder; discreet experiment list names it.",
        status=503,
        code="not_ready",
    )


def _unnamed() -> ServiceError:
    return ServiceError(
        "path must name an experiment, as in /v1/experiments/NAME/decide; it names none, and this "
        "server has not exactly one. GET /v1/experiments lists them.",
        status=404,
        code="unknown_experiment",
    )


async def _refuse(error: ServiceError, send: Send) -> None:
    status, problem = problem_of(error, ())
    content = ENCODER.encode(Failure(problem))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        *HEADERS,
    ]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def make_app(service: Service, traces: Traces | None = None) -> CrossOrigin | ExperimentApp:
    """Return the application of a single experiment, which starts and stops with it."""
    settings = service.settings
    app = experiment_app(service, Metrics(internal=settings.internal_metrics), traces)
    return _started_with(app, app, settings.server, service.start, service.stop)


def make_folder_app(
    folder: ExperimentFolder, *, workers: int = 1, traces: Traces | None = None
) -> tuple[CrossOrigin | ExperimentApp, HostedExperiments, ServerAccess]:
    """Return the application, the experiments that start and stop with it, and its access."""
    families = Families(named=True)

    def mount(name: str, service: Service) -> ExperimentApp:
        internal = service.settings.internal_metrics
        metrics = Metrics(internal=internal, families=families, experiment=name)
        return experiment_app(service, metrics, traces, access.members)

    hosted, access = HostedExperiments(folder, mount, workers=workers), ServerAccess(folder.server)
    metrics = Metrics(internal=False, families=families, experiment="")
    table = server_routes(ServerHandlers(hosted, families))
    own_pages = server_pages(hosted, access, metrics)
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
) -> CrossOrigin | ExperimentApp:
    """Return an application that starts and stops what it serves, for the allowed origins."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[dict[str, int]]:
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
