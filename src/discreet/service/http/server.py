"""Processes that serve: the command that starts them, and the application of each worker."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from discreet.errors import InvalidInput
from discreet.service.access import ServerAccess
from discreet.service.http.app import make_app, make_folder_app
from discreet.service.http.endpoint import traces_of
from discreet.service.logs import Log, ServerMessages
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.runtime.hosted_experiments import settle_memory
from discreet.service.runtime.lifecycle import PlanDiffers, check
from discreet.service.runtime.service import Service
from discreet.service.secrets.vault import Vault, locked_file
from discreet.service.settings import (
    SERVER_FILE,
    ServerSettings,
    Settings,
    port_number,
    read_experiment_file,
)
from discreet.service.storage.database import storage_errors
from discreet.service.storage.locations import anchor_of, in_same_folder, open_database

LOOK = 0.1
"""Seconds between two checks of the supervisor."""
LARGEST = 100_000
"""The most bytes of an experiment file, which workers get through their environment."""


def serve(
    path: Path, *, host: str | None, port: int | None, workers: int, folder: bool = False
) -> None:
    """Serve the experiment of a file, or all experiments of a folder, until SIGTERM or Ctrl-C.

    Requests under way are finished first. Nothing of the experiments of a folder is checked here:
    one that cannot start must not keep the others.
    """
    if folder:
        server = ServerSettings.read(path)
        _refuse_workers(workers, server.database is not None, server.folder / SERVER_FILE)
        ServerAccess(server).close()  # its keys must be there
        listening = _listening(server, host, port)
        refusal = (
            f"{server.folder} must be served by one server; another one serves it. Stop that one "
            "first, or use its --workers."
        )
        with locked_file(server.folder / SERVER_FILE, refusal):
            os.environ["DISCREET_FOLDER"] = str(server.folder)
            _run("experiments", listening, workers)
        return
    text = read_experiment_file(path)
    settings = Settings.of_text(text, path)
    if workers > 1 and len(text.encode()) > LARGEST:
        raise InvalidInput(
            f"experiment file must have at most {LARGEST} bytes for several workers; it has more. "
            "Shorten it, or serve it with one worker."
        )
    _refuse_workers(workers, settings.postgres, path)
    preflight(settings)
    listening = _listening(settings.server, host, port)
    anchor = anchor_of(settings).path
    if in_same_folder(settings, anchor):
        warning = (
            f"warning: the anchor {anchor} is in the folder that it guards: the service cannot "
            "notice that a copy of the folder was put back. Keep it on another disk: anchor = '…'"
        )
        print(warning, file=sys.stderr, flush=True)
    os.environ["DISCREET_CONFIG"] = str(path.resolve())
    # The text as it is now, so that a worker that starts later serves the same plan.
    os.environ["DISCREET_EXPERIMENT"] = text
    os.environ.pop("DISCREET_FOLDER", None)
    _run(settings.experiment, listening, workers)


def _refuse_workers(workers: int, postgres: bool, file: Path) -> None:
    if workers > 1 and not postgres:
        raise InvalidInput(
            f"workers must be 1 with SQLite; got {workers}. Name a PostgreSQL database in {file} "
            "for more: database = 'postgresql://…'."
        )


def _listening(server: ServerSettings, host: str | None, port: int | None) -> socket.socket:
    return listen(host or server.host, server.port if port is None else port_number(port))


def _run(name: str, listening: socket.socket, workers: int) -> None:
    os.environ["DISCREET_WORKERS"] = str(workers)
    os.environ["DISCREET_SUPERVISOR"] = str(os.getpid())
    # uvicorn raises the signal again after its clean end; SIGTERM must not kill us then.
    signal.signal(signal.SIGTERM, lambda *_: None)
    running = uvicorn.Config(
        "discreet.service.http.server:from_environment",
        factory=True,
        http="discreet.service.http.request_limits:LimitedHttp",
        proxy_headers=False,  # the application reads them, and only where they matter
        workers=workers,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
        timeout_keep_alive=75,  # longer than load balancers, so that none is reset
    )
    where, port = listening.getsockname()[:2]
    address = f"http://{where}:{port}"
    print(f"{name}: {address}, dashboard {address}/ui", file=sys.stderr, flush=True)
    if workers > 1:
        with TemporaryDirectory(prefix="discreet-metrics-") as folder:  # of mode 0700
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
            Multiprocess(running, sockets=[listening]).run()
        return
    server = uvicorn.Server(running)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    if not server.started:
        raise SystemExit(3)  # the log says why; systemd and others start it again


def listen(host: str, port: int) -> socket.socket:
    """Return the socket of the service; a port that is in use is an error before all others."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        busy = error.errno == errno.EADDRINUSE
        raise InvalidInput(
            f"port {port} of {host} must be free; another program listens there. Stop it, or name "
            "another port: --port 8001."
            if busy
            else f"host and port must be of this machine; cannot listen on {host}, port {port} "
            f"({error.strerror}). Write host = '127.0.0.1', or '0.0.0.0' for all networks."
        ) from None
    sock.set_inheritable(True)
    return sock


def preflight(settings: Settings) -> None:
    """Check everything before any process starts, so that an error is one line."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    vault.check()
    faults = storage_errors(database)
    with faults, database.guard(), closing(database.connect()) as connection:
        try:
            check(settings, database, connection, anchor_of(settings))
        except PlanDiffers as error:
            Log(settings.experiment).event("plan refused", keys=list(error.keys))
            raise


def from_environment() -> ASGIApp:
    """Return the application of a worker process: of a folder, or of a single experiment."""
    # Threads switch more often, so that a commit does not wait for requests.
    sys.setswitchinterval(0.001)
    workers = int(os.environ.get("DISCREET_WORKERS", "1"))
    if workers > 1:
        end_with(int(os.environ["DISCREET_SUPERVISOR"]))
    if "DISCREET_FOLDER" in os.environ:
        folder = ExperimentFolder(Path(os.environ["DISCREET_FOLDER"]))
        app, _, access = make_folder_app(folder, workers=workers, traces=traces_of("server"))
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

    def watch() -> None:
        while os.getppid() == supervisor:  # an orphan has another parent
            time.sleep(LOOK)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="supervision", daemon=True).start()
