"""Start the processes that serve."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from uvicorn.supervisors import Multiprocess

from discreet.errors import InvalidInput
from discreet.service.logs import Log
from discreet.service.runtime.lifecycle import PlanDiffers, check
from discreet.service.secrets.vault import Vault, locked_file
from discreet.service.settings import (
    SERVER_FILE,
    ServerSettings,
    Settings,
    port_number,
    read_experiment_file,
)
from discreet.service.storage.api_keys import ServerKeys
from discreet.service.storage.database import storage_errors
from discreet.service.storage.locations import anchor_of, in_same_folder, open_database

LARGEST = 100_000
"""The most bytes of an experiment file, which workers get through their environment."""


def serve(config: Path, *, host: str | None, port: int | None, workers: int) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way are finished first."""
    text = read_experiment_file(config)
    settings = Settings.of_text(text, config)
    if workers > 1 and len(text.encode()) > LARGEST:
        raise InvalidInput(
            f"experiment file must have at most {LARGEST} bytes for several workers; it has more. "
            "Shorten it, or serve it with one worker."
        )
    if workers > 1 and not settings.postgres:
        raise InvalidInput(
            f"workers must be 1 with SQLite; got {workers}. "
            "Name a PostgreSQL database for more: database = 'postgresql://…'."
        )
    preflight(settings)
    listening = listen(host or settings.host, settings.port if port is None else port_number(port))
    anchor = anchor_of(settings).path
    if in_same_folder(settings, anchor):
        warning = (
            f"warning: the anchor {anchor} lies beside what it guards: the service cannot notice "
            "that a copy of the folder was put back. Keep it on another disk: anchor = '…'"
        )
        print(warning, file=sys.stderr, flush=True)
    os.environ["DISCREET_CONFIG"] = str(config.resolve())
    # The text as it is now, so that a worker that starts later serves the same plan.
    os.environ["DISCREET_EXPERIMENT"] = text
    os.environ.pop("DISCREET_FOLDER", None)
    _run(settings.experiment, listening, workers)


def serve_folder(folder: Path, *, host: str | None, port: int | None, workers: int) -> None:
    """Serve all experiments of a folder until SIGTERM or Ctrl-C.

    Nothing of an experiment is checked here: one that cannot start must not keep the others.
    """
    server = ServerSettings.read(folder)
    if workers > 1 and server.database is None:
        raise InvalidInput(
            f"workers must be 1 with SQLite; got {workers}. Name a PostgreSQL database in "
            f"{server.folder / SERVER_FILE} for more: database = 'postgresql://…'."
        )
    ServerKeys(server.folder).close()  # its keys must be there
    listening = listen(host or server.host, server.port if port is None else port_number(port))
    with _served_once(server.folder):
        os.environ["DISCREET_FOLDER"] = str(server.folder)
        _run("experiments", listening, workers)


@contextmanager
def _served_once(folder: Path) -> Iterator[None]:
    """Refuse a second server of a folder."""
    refusal = (
        f"{folder} must be served by one server; another one serves it. Stop that one first, or "
        "use its --workers."
    )
    with locked_file(folder / SERVER_FILE, refusal):
        yield


def _run(name: str, listening: socket.socket, workers: int) -> None:
    os.environ["DISCREET_WORKERS"] = str(workers)
    os.environ["DISCREET_SUPERVISOR"] = str(os.getpid())
    # uvicorn raises the signal again after its clean end; SIGTERM must not kill us then.
    signal.signal(signal.SIGTERM, lambda *_: None)
    running = uvicorn.Config(
        "discreet.service.http.server_app:from_environment",
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
