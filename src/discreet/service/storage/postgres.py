"""PostgreSQL server, which several stateless workers share."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from discreet.errors import InvalidInput
from discreet.service.storage.batches import ACCEPTING, HELD, INSERTED, Head, LeasePlace
from discreet.service.storage.database import Connection, Database, Rows

_LOCK = 0x6469736372656574
"""The advisory lock of new tables; its number spells "discreet"."""


class Whole(str):
    """A statement that is a whole transaction, if nothing else is in it."""


class _Int8s(bytes):
    """An array of whole numbers in the binary format of PostgreSQL."""


class _Byteas(bytes):
    """An array of byte strings in the binary format of PostgreSQL."""


class _Int8sDumper(Dumper):
    oid, format, element = 1016, Format.BINARY, 20

    def dump(self, obj: bytes) -> bytes:
        return obj


class _ByteasDumper(_Int8sDumper):
    oid, element = 1001, 17


def _array(values: Sequence[Any]) -> bytes:
    """Return an array parameter; psycopg takes at least ten times as long for a list."""
    if isinstance(values[0], bytes):
        parts = [part for each in values for part in (_LENGTH.pack(len(each)), each)]
        return _Byteas(_ARRAY.pack(1, 0, _ByteasDumper.element, len(values), 1) + b"".join(parts))
    packed = np.empty(len(values), [("length", ">i4"), ("value", ">i8")])
    packed["length"], packed["value"] = 8, values
    head = _ARRAY.pack(1, 0, _Int8sDumper.element, len(values), 1)
    return _Int8s(head + packed.tobytes())


_LENGTH, _ARRAY = struct.Struct(">i"), struct.Struct(">5i")
"""Length of an element; dimensions, NULLs, type of elements, their number and the first index."""


class _Connection:
    """Connection of psycopg that takes ``?`` for parameters.

    BEGIN is sent with the first statement that needs it.
    """

    def __init__(self, url: str) -> None:
        self.inner = psycopg.connect(url, autocommit=True, connect_timeout=10)
        self.inner.adapters.register_dumper(_Int8s, _Int8sDumper)
        self.inner.adapters.register_dumper(_Byteas, _ByteasDumper)
        self._to_begin = False

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        if sql == Postgres.begin:
            self._to_begin = True
            return self.inner.cursor()
        if self._to_begin and not isinstance(sql, Whole):
            self._to_begin = False
            if sql in ("COMMIT", "ROLLBACK"):
                return self.inner.cursor()
            self.inner.execute(Postgres.begin)
        return self.inner.execute(_translated(sql), parameters or None)

    def close(self) -> None:
        self.inner.close()


@lru_cache(maxsize=1024)
def _translated(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


@cache
def _accepted(table: str, checked: bool) -> Whole:
    columns = ", ".join(INSERTED[table])
    given = ", ".join("?" for _ in (*INSERTED[table], "nonce"))
    return Whole(
        f"""WITH live AS (
            {ACCEPTING.format(nonces="= ANY (?)", now=Postgres.now, held=HELD if checked else "")}
            {Postgres.share}),
        written AS (
            INSERT INTO {table} SELECT {columns}
            FROM unnest({given})
            AS given ({columns}, nonce) JOIN live USING (epoch, batch, nonce)
            ON CONFLICT DO NOTHING RETURNING 1)
        SELECT epoch, batch, nonce, (SELECT count(*) FROM written) FROM live"""
    )


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

    def insert_accepted(
        self,
        connection: Connection,
        table: str,
        rows: Sequence[tuple[Any, ...]],
        head: Head | None,
    ) -> tuple[set[LeasePlace], int]:
        leases = {(*row[:2], row[-1]) for row in rows}
        sql = _accepted(table, head is not None)
        given = [_array([nonce for *_, nonce in leases]), *(head or ())]
        found = connection.execute(sql, [*given, *map(_array, zip(*rows, strict=True))]).fetchall()
        return {row[:3] for row in found} & leases, found[0][3] if found else 0

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
