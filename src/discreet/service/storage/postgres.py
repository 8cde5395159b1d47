"""PostgreSQL server, which several stateless workers share."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path

import psycopg

from discreet.errors import InvalidInput
from discreet.service.storage.database import Connection, Database, Rows

_LOCK = 0x6469736372656574
"""The advisory lock of new tables; its number spells "discreet"."""


class _Connection:
    """Connection of psycopg that takes ``?`` for parameters and begins no transactions."""

    def __init__(self, url: str) -> None:
        self.inner = psycopg.connect(url, autocommit=True, connect_timeout=10)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        return self.inner.execute(_translated(sql), parameters or None)

    def close(self) -> None:
        self.inner.close()


@lru_cache(maxsize=1024)
def _translated(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


class Postgres(Database):
    """Database on a server. Locks are rows, held until the transaction ends."""

    now = "extract(epoch FROM clock_timestamp())::float8"
    lock, claim, share = "FOR UPDATE", "FOR UPDATE SKIP LOCKED", "FOR KEY SHARE OF batches"
    find_table = "SELECT to_regclass('experiment')"
    lost = (psycopg.Error,)
    remedy = "Start the server, or correct database = 'postgresql://…' or DISCREET_DATABASE_URL."

    def __init__(self, url: str) -> None:
        self._url, self.place = url, "the PostgreSQL server that the settings name"

    def connect(self) -> Connection:
        return _Connection(self._url)

    @contextmanager
    def guard(self) -> Iterator[None]:
        yield

    def alone(self, connection: Connection) -> None:
        connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")

    def revived(self, connection: Connection) -> Connection:
        if isinstance(connection, _Connection) and not connection.inner.broken:
            return connection
        return self.connect()

    def back_up(self, target: Path) -> None:
        program = shutil.which("pg_dump")
        if program is None:
            raise InvalidInput(
                "pg_dump must be installed to copy a PostgreSQL database; it is not in the PATH. "
                "Install the client programs of your PostgreSQL, or use the archive of its server."
            )
        with closing(self.connect()) as connection:
            schema = connection.execute("SELECT current_schema()").fetchone()[0]
        # Not as an argument: everyone can read arguments, and the address may hold a password.
        parsed = psycopg.pq.Conninfo.parse(self._url.encode())
        named = {each.envvar: each.val for each in parsed if each.envvar and each.val is not None}
        given = {name.decode(): value.decode() for name, value in named.items()}
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made before anything is in it, so that it never has another mode.
        with os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            done = subprocess.run(
                [program, "--format=custom", "--no-password", "--schema", f'"{schema}"'],
                env=os.environ | given,
                stdout=file,
                stderr=subprocess.PIPE,
                text=True,
            )
            os.fsync(file.fileno())
        if done.returncode:
            target.unlink()
            lines = done.stderr.strip().splitlines() or ["no reason was given"]
            raise InvalidInput(
                f"pg_dump must be able to copy the database; it is not ({lines[-1]}). Use the "
                "version of your server or a newer one."
            )

    def erase(self, connection: Connection) -> bool:  # noqa: ARG002
        # Copies stay in the server's write-ahead log; the destroyed key makes them unreadable.
        return True
