"""The HTTP application of a folder of experiments: finds whose a path is, and asks that one."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from discreet.errors import ServiceError
from discreet.service.http.app import CrossOrigin, Direct, routed
from discreet.service.http.bodies import Failure
from discreet.service.http.endpoint import ENCODER, HEADERS
from discreet.service.http.error_responses import problem_of
from discreet.service.http.hosted_experiments import HostedExperiments
from discreet.service.http.server_routes import server_paths
from discreet.service.http.server_state import ServerService
from discreet.service.http.supervision import end_with
from discreet.service.http.tracing import traces_of
from discreet.service.logs import ServerMessages
from discreet.service.runtime.experiment_folder import ExperimentFolder

BELOW = "/v1/experiments/"
ROOMS = ("v1", "ui", "metrics", "internal", "healthz", "readyz", "openapi.json", "")
"""First parts of the paths of an experiment; others are short for /v1/…."""


class ServerApp(Direct):
    """Sends paths below ``/v1/experiments/NAME`` to that experiment, others to the server itself.

    Where there is exactly one experiment, its paths without a name reach it too.
    """

    def __init__(self, hosted: HostedExperiments, own: Direct) -> None:
        super().__init__(own.app, {})
        self._hosted, self._own = hosted, own
        self._before = hosted.folder.server.prefix
        self._places = {getattr(route, "path", "") for route in own.routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._own(scope, receive, send)
            return
        endpoint = self._hosted.direct.get((scope["method"], scope["path"]))
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        path: str = scope["path"]
        if self._before and path.startswith(f"{self._before}/"):
            path = path.removeprefix(self._before)
        name, rest = self._only(path)
        if path.startswith(BELOW):
            name, _, tail = path.removeprefix(BELOW).partition("/")
            rest = f"/{tail}" if tail.partition("/")[0] in ROOMS else f"/v1/{tail}"
        if name is None and path.startswith("/v1/") and not self._servers(path):
            await _refuse(_unnamed(), send)
            return
        if name is None:
            await self._own({**scope, "path": path}, receive, send)
            return
        found = self._hosted.served.get(name)
        if found is None:
            await _refuse(self._missing(name), send)
            return
        whole = found.service.settings.prefix + rest
        await found.app({**scope, "path": whole}, receive, send)

    def _only(self, path: str) -> tuple[str | None, str]:
        """The only experiment, where the path is not one of the server's own."""
        mine = path.startswith("/v1/") and not self._servers(path)
        return (self._hosted.only() if mine else None), path

    def _servers(self, path: str) -> bool:
        """Whether a path below /v1 is one of the server itself."""
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


def make_server_app(
    folder: ExperimentFolder, *, workers: int = 1
) -> tuple[CrossOrigin | ServerApp, HostedExperiments, ServerService]:
    """The application, the experiments that start and stop with it, and the server's own state."""
    hosted = HostedExperiments(folder, workers=workers, traces=traces_of("server"))
    service = ServerService(folder)
    endpoints, paths = server_paths(hosted, service)
    own = Direct(routed(paths), endpoints)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:  # noqa: ARG001
        await hosted.start()
        yield {"connections": folder.server.connections}
        await hosted.stop()
        service.close()

    origins = list(folder.server.cors_origins)
    own.app.router.lifespan_context = lifespan
    whole = ServerApp(hosted, own)
    return (CrossOrigin(whole, origins) if origins else whole), hosted, service


def from_environment() -> CrossOrigin | ServerApp:
    """The application of a worker process, which reads its folder from the environment."""
    sys.setswitchinterval(0.001)  # threads switch more often, so that a commit does not wait
    workers = int(os.environ.get("DISCREET_WORKERS", "1"))
    if workers > 1:
        end_with(int(os.environ["DISCREET_SUPERVISOR"]))
    app, _, service = make_server_app(
        ExperimentFolder(Path(os.environ["DISCREET_FOLDER"])), workers=workers
    )
    ServerMessages(service.state.log).install()
    return app
