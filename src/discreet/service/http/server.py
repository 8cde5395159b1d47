"""Start the processes that serve."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import uvicorn

from discreet.errors import InvalidInput
from discreet.service.runtime.lifecycle import check
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings, text_of
from discreet.service.storage.locations import anchor_of, beside, open_database

LARGEST = 100_000
"""The most bytes of an experiment file, which workers get through their environment."""


def serve(config: Path, *, host: str | None, port: int | None, workers: int) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way are finished first."""
    text = text_of(config)
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
    anchor = anchor_of(settings).path
    if beside(settings, anchor):
        told = (
            f"warning: the anchor {anchor} lies beside what it guards: the service cannot notice "
            "that a copy of the folder was put back. Keep it on another disk: anchor = '…'"
        )
        print(told, file=sys.stderr, flush=True)
    os.environ["DISCREET_CONFIG"] = str(config.resolve())
    # The text as it is now, so that a worker that starts later serves the same plan.
    os.environ["DISCREET_EXPERIMENT"] = text
    os.environ["DISCREET_WORKERS"] = str(workers)
    os.environ["DISCREET_SUPERVISOR"] = str(os.getpid())
    place = (host or settings.host, settings.port if port is None else port)
    address = f"http://{place[0]}:{place[1]}"
    print(f"{settings.experiment}: {address}, dashboard {address}/ui", file=sys.stderr, flush=True)
    # uvicorn raises the signal again after its clean end; SIGTERM must not kill us then.
    signal.signal(signal.SIGTERM, lambda *_: None)
    uvicorn.run(
        "discreet.service.http.app:from_environment",
        factory=True,
        http="discreet.service.http.protocol:Protocol",
        host=place[0],
        port=place[1],
        workers=workers,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
        timeout_keep_alive=75,  # longer than load balancers, so that none is reset
    )


def preflight(settings: Settings) -> None:
    """Check everything before any process starts, so that an error is one line."""
    database = open_database(settings)
    Vault(settings.place(settings.vault)).signing  # noqa: B018
    with database.guard(), closing(database.connect()) as connection:
        check(settings, database, connection, anchor_of(settings))
