"""The HTTP application of a worker: of a folder of experiments, or of a single one."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from starlette.types import Receive, Scope, Send

from discreet.errors import ServiceError
from discreet.service.access import ServerAccess
from discreet.service.error_responses import problem_of
from discreet.service.http.app import (
    CrossOrigin,
    ExperimentApp,
    make_app,
    settle_memory,
    started_with,
)
from discreet.service.http.bodies import Failure
from discreet.service.http.endpoint import ENCODER, HEADERS
from discreet.service.http.hosted_experiments import HostedExperiments
from discreet.service.http.server_handlers import server_itself
from discreet.service.http.tracing import traces_of
from discreet.service.logs import ServerMessages
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.runtime.service import Service
from discreet.service.settings import Settings

BELOW = "/v1/experiments/"
LOOK = 0.1
"""Seconds between two checks of the supervisor."""
FIRST_PARTS = (
    *("v1", "ui", "metrics", "internal", "healthz", "readyz", "openapi.json", ""),
    "personalizer",
)
"""First parts of the paths of an experiment; others are short for /v1/…."""


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
        if found is None:
            await _refuse(self._missing(name), send)
            return
        whole = found.service.settings.prefix + rest
        await found.app({**scope, "path": whole}, receive, send)

    def _only(self, path: str) -> tuple[str | None, str]:
        """The only experiment, where the path is not one of the server's own."""
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
) -> tuple[CrossOrigin | ExperimentApp, HostedExperiments, ServerAccess]:
    """Return the application, the experiments that start and stop with it, and its access."""
    hosted = HostedExperiments(folder, workers=workers, traces=traces_of("server"))
    access = ServerAccess(folder.server)
    own = server_itself(hosted, access)

    async def stop() -> None:
        await hosted.stop()
        access.close()

    app = started_with(ServerApp(hosted, own), own, folder.server, hosted.start, stop)
    return app, hosted, access


def from_environment() -> CrossOrigin | ExperimentApp:
    """Return the application of a worker process: of a folder, or of a single experiment."""
    # Threads switch more often, so that a commit does not wait for requests.
    sys.setswitchinterval(0.001)
    workers = int(os.environ.get("DISCREET_WORKERS", "1"))
    if workers > 1:
        end_with(int(os.environ["DISCREET_SUPERVISOR"]))
    if "DISCREET_FOLDER" in os.environ:
        folder = ExperimentFolder(Path(os.environ["DISCREET_FOLDER"]))
        app, _, access = make_server_app(folder, workers=workers)
        ServerMessages(access.log).install()
        return app
    config = Path(os.environ["DISCREET_CONFIG"])
    settings = Settings.of_text(os.environ.pop("DISCREET_EXPERIMENT"), config)
    service = Service(settings, config=config, workers=workers)
    ServerMessages(service.state.log).install()
    app = make_app(service, traces_of(settings.experiment))
    settle_memory()
    return app


def end_with(supervisor: int) -> None:
    """End this process like SIGTERM as soon as its supervisor is gone.

    A worker that outlived it would hold the port, and the service could not be started again.
    """
    threading.Thread(target=_watch, args=(supervisor,), name="supervision", daemon=True).start()


def _watch(supervisor: int) -> None:
    while os.getppid() == supervisor:  # an orphan has another parent
        time.sleep(LOOK)
    os.kill(os.getpid(), signal.SIGTERM)
