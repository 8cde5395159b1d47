"""API keys, ``dk_<id>_<secret>``, and their scopes; the database stores a hash of the secret."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from discreet.design.schedule import seconds_of
from discreet.errors import InvalidInput, ServiceError, StateClaimed
from discreet.service.secrets.vault import Vault
from discreet.service.storage import document_table
from discreet.service.storage.database import Connection, Database, create_tables
from discreet.service.storage.sqlite import Sqlite
from discreet.types import JsonObject
from discreet.validate import one_of, whole

SCOPES = ("decide", "observe", "ticket", "release:read", "audit", "admin")
SERVER = "server"
"""Scope of the keys of a server with many experiments, which no experiment accepts."""
DATABASE, VAULT = "server.db", "vault"
_KEY = re.compile(r"dk_([0-9a-f]{12})_([0-9A-Za-z_-]{43})")


@dataclass(frozen=True)
class Key:
    """API key as the database stores it."""

    id: str
    hash: str
    scopes: frozenset[str]
    label: str
    created: float
    revoked: float | None
    ended: float | None
    """Sessions of the dashboard that began before this moment are over."""
    expires: float | None
    rate: int | None
    """Requests per second and bucket instead of the service's own limit."""
    used: float | None
    """The hour of its last request; reports of losses do not count. [worker_state.py]"""
    expired: int
    """Not 0, by the clock of the database, when it was read."""

    @property
    def valid(self) -> bool:
        return self.revoked is None and not self.expired

    def shown(self) -> JsonObject:
        """Return the fields that an operator may see."""
        hidden = {"hash", "ended"}
        return {name: value for name, value in vars(self).items() if name not in hidden} | {
            "scopes": [scope for scope in (*SCOPES, SERVER) if scope in self.scopes],
            "expired": bool(self.expired),
        }


def create(
    database: Database,
    connection: Connection,
    scopes: Iterable[str],
    label: str = "",
    *,
    expires_in: str | None = None,
    rate: int | None = None,
    by: str = "",
    known: tuple[str, ...] = SCOPES,
) -> tuple[str, Key]:
    """Create a key with some of the scopes in ``known``; its text is shown only once.

    ``expires_in`` is a time such as "90d"; ``rate`` replaces the setting rate_limit.
    """
    wanted = list(dict.fromkeys(scopes))
    for scope in wanted:
        one_of("scope", scope, known)
    if not wanted:
        raise InvalidInput(f"scopes must be at least one of {', '.join(known)}; got none. Add one.")
    if not label.isprintable():  # some databases refuse such text without a clear error
        raise InvalidInput("label must be one line of plain text; this is not. Use plain words.")
    lasts = None if expires_in is None else seconds_of("expires_in", expires_in)
    if rate is not None:
        whole("rate", rate, 1, "Requests per second; leave it out for the limit of the service.")
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    connection.execute(
        f"""INSERT INTO keys (id, hash, scopes, label, rate, created, expires)
            VALUES (?, ?, ?, ?, ?, {database.now}, {database.now} + ?)""",
        (id, _hash(secret), " ".join(wanted), label, rate, lasts),
    )
    document_table.note_change(database, connection, "key created", by, key=id)
    made = next(key for key in listed(database, connection) if key.id == id)
    return f"dk_{id}_{secret}", made


def listed(database: Database, connection: Connection) -> list[Key]:
    """Return all keys, the oldest first."""
    expired = f"CASE WHEN expires <= {database.now} THEN 1 ELSE 0 END"
    rows = connection.execute(f"SELECT keys.*, {expired} FROM keys ORDER BY created, id").fetchall()
    return [Key(row[0], row[1], frozenset(row[2].split()), *row[3:]) for row in rows]


def note_use(database: Database, connection: Connection, ids: Iterable[str]) -> None:
    """Record that keys were used in this hour."""
    now = float(connection.execute(f"SELECT {database.now}").fetchone()[0])
    for id in sorted(ids):
        connection.execute("UPDATE keys SET used = ? WHERE id = ?", (now - now % 3600, id))


def revoke(database: Database, connection: Connection, id: str, by: str = "") -> Key:
    """Revoke a key; workers notice within a second."""
    if id not in {key.id for key in listed(database, connection)}:
        raise InvalidInput(f"key must be one of those listed; got {id!r}. See discreet keys list.")
    gone = connection.execute(
        f"UPDATE keys SET revoked = {database.now} WHERE id = ? AND revoked IS NULL", (id,)
    )
    if gone.rowcount:
        document_table.note_change(database, connection, "key revoked", by, key=id)
    return next(key for key in listed(database, connection) if key.id == id)


def end_sessions(database: Database, connection: Connection, id: str) -> None:
    """End all sessions of the dashboard that began with this key."""
    connection.execute(f"UPDATE keys SET ended = {database.now} WHERE id = ?", (id,))


def bearer(keys: dict[str, Key], header: str | None) -> Key:
    """Return the key of an Authorization header, or raise 401."""
    scheme, _, text = (header or "").partition(" ")
    match = _KEY.fullmatch(text.strip()) if scheme.lower() == "bearer" else None
    known = keys.get(match[1]) if match else None
    # Always compared, in constant time.
    same = hmac.compare_digest(_hash(match[2] if match else ""), known.hash if known else "0" * 64)
    if known is None or not same or not known.valid:
        raise ServiceError(
            "Authorization must be 'Bearer dk_…' with a key of this service; no valid key came. "
            "Make one with discreet keys create.",
            status=401,
            code="unauthenticated",
        )
    return known


def permit(key: Key, scopes: Iterable[str]) -> None:
    """Refuse with 403 unless the key has one of the scopes; ``admin`` has all scopes."""
    allowed = set(scopes)
    if not key.scopes & (allowed | {"admin"}):
        raise ServiceError(
            f"key must have the scope {' or '.join(sorted(allowed) or ['admin'])}; "
            "this key does not. Use another key, or create one.",
            status=403,
            code="forbidden",
        )


def _hash(secret: str) -> str:
    # The secret has 256 random bits: a slow hash would add nothing.
    return hashlib.sha256(secret.encode()).hexdigest()


def begin_server(folder: Path) -> str:
    """Create the keys of a server and return the text of the first key, which is shown once."""
    database, vault = Sqlite(folder / DATABASE), Vault(folder / VAULT)
    if database.path.exists():
        raise StateClaimed(
            f"folder must be new for a new server; {database.path} exists. Serve it with discreet "
            f"serve --folder {folder}."
        )
    vault.create()
    with closing(database.connect()) as connection:
        create_tables(database, connection)
        with database.transaction(connection):
            text, _ = create(database, connection, [SERVER], "first key", known=(SERVER,))
    return text
