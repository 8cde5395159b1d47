"""A PostgreSQL server: several stateless workers share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import psycopg

from discreet.errors import InvalidInput
from discreet.service.storage.database import Claim, Connection, Database, Made, Rows

_LOCK = 0x6469736372656574
"""The advisory lock of migrations; its number spells "discreet"."""


class _Connection:
    """A psycopg connection that takes ``?`` for parameters and leaves transactions to us."""

    def __init__(self, url: str) -> None:
        self.inner = psycopg.connect(url, autocommit=True, connect_timeout=10)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        return self.inner.execute(_translated(sql), parameters or None)

    def close(self) -> None:
        self.inner.close()


@lru_cache(maxsize=1024)
def _translated(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


class Postgres(Database):
    """Locks are rows, held by a transaction and gone with it; the clock is the server's."""

    now = "extract(epoch FROM clock_timestamp())::float8"
    whole, blob, real, clustered = "BIGINT", "BYTEA", "DOUBLE PRECISION", ""
    lock, claim, share = "FOR UPDATE", "FOR UPDATE SKIP LOCKED", "FOR KEY SHARE OF batches"
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

    def release(
        self,
        claim: Callable[[Connection], Claim | None],
        compute: Callable[[Claim], Made],
        write: Callable[[Connection, Claim, Made], bool],
        commit: Callable[[Callable[[Connection], Any]], Any],  # noqa: ARG002
    ) -> bool:
        # The row stays locked from the claim to the commit: other workers skip it.
        with closing(self.connect()) as connection, self.transaction(connection):
            claimed = claim(connection)
            return claimed is not None and write(connection, claimed, compute(claimed))

    def holds_experiment(self) -> bool:
        with closing(self.connect()) as connection:
            found = connection.execute("SELECT to_regclass('experiment')").fetchone()[0]
            return bool(found and connection.execute("SELECT 1 FROM experiment").fetchone())

    def back_up(self, target: Path) -> None:
        raise InvalidInput(
            f"database must be SQLite to be copied to {target}; it is PostgreSQL. Use pg_dump, or "
            "the archive of its server."
        )

    def erase(self, connection: Connection) -> bool:  # noqa: ARG002
        # Copies stay in the server's write-ahead log; the destroyed key makes them unreadable.
        return True
