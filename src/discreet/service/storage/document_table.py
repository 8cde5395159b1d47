"""Writes published documents and charges to the database, and reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from discreet.billboard.documents import digest, sign
from discreet.privacy.ledger import Ledger
from discreet.releases.canonical import canonical
from discreet.service.settings import Settings
from discreet.service.storage.anchor import Mark
from discreet.service.storage.database import Connection


def append(
    connection: Connection, document: Mapping[str, Any], key: bytes, batch: int | None = None
) -> Mark:
    """Sign a document and insert it; each number and each batch can be used once.

    Before the commit, the anchor must hold the returned mark as an intent.
    """
    body = sign(dict(document), key)
    mark = Mark(document["epoch"], document["number"], digest(body), batch)
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)",
        (mark.number, document["kind"], mark.epoch, batch, mark.digest, body),
    )
    return mark


def newest(connection: Connection) -> bytes:
    """The bytes of the newest document."""
    row = connection.execute("SELECT body FROM documents ORDER BY number DESC LIMIT 1").fetchone()
    return bytes(row[0])


def after(connection: Connection, number: int) -> list[bytes]:
    """The bytes of all documents after a number, in order."""
    rows = connection.execute(
        "SELECT body FROM documents WHERE number > ? ORDER BY number", (number,)
    ).fetchall()
    return [bytes(row[0]) for row in rows]


def body(connection: Connection, number: int) -> bytes | None:
    """The bytes of a document; None if there is none."""
    row = connection.execute("SELECT body FROM documents WHERE number = ?", (number,)).fetchone()
    return row and bytes(row[0])


def committed(connection: Connection) -> list[tuple[int, str]]:
    """Number and digest of every document, in order."""
    rows = connection.execute("SELECT number, digest FROM documents ORDER BY number").fetchall()
    return [(int(row[0]), str(row[1])) for row in rows]


def part(epoch: int, batch: int) -> str:
    """The partition of the ledger that pays for a batch."""
    return f"batch {batch} of epoch {epoch}"


def entry_of(ledger: Ledger) -> Mapping[str, Any]:
    """The newest entry of a ledger, as it is stored."""
    (entry,) = replace(ledger, entries=ledger.entries[-1:]).to_json()["entries"]
    return dict(entry)


def charge(connection: Connection, number: int, entry: Mapping[str, Any]) -> None:
    """Insert the charge of document ``number``."""
    connection.execute("INSERT INTO charges VALUES (?, ?)", (number, canonical(entry).decode()))


def ledger_of(connection: Connection, settings: Settings, until: int = 2**53) -> Ledger:
    """Everything that was charged, up to a document."""
    rows = connection.execute(
        "SELECT entry FROM charges WHERE number <= ? ORDER BY number", (until,)
    ).fetchall()
    plan = settings.plan
    empty = Ledger(plan.budget, unit=plan.unit, participation=plan.participation)
    document = empty.to_json() | {"entries": [json.loads(row[0]) for row in rows]}
    return Ledger.from_json(document)
