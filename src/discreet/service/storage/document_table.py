"""Tables of published documents and of charges to the budget."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from discreet.client.documents import digest, sign
from discreet.privacy.ledger import Entry, Ledger, batch_of_partition, entries_of
from discreet.releases.canonical import canonical
from discreet.service.settings import Settings
from discreet.service.storage.anchor import AnchorMark
from discreet.service.storage.database import Connection, Database

HOUR = 3600
LIMIT = 500
"""The most changes that are read at once, the newest first."""


def append(
    connection: Connection, document: Mapping[str, Any], key: bytes, batch: int | None = None
) -> AnchorMark:
    """Sign a document and insert it; each number and each batch can be used once.

    Before the commit, the anchor must hold the returned mark as an intent.
    """
    body = sign(dict(document), key)
    mark = AnchorMark(document["epoch"], document["number"], digest(body), batch)
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)",
        (mark.number, document["kind"], mark.epoch, batch, mark.digest, body),
    )
    return mark


def newest(connection: Connection) -> bytes:
    """Return the bytes of the newest document."""
    found = connection.execute("SELECT body FROM documents ORDER BY number DESC LIMIT 1")
    return bytes(found.fetchone()[0])


def after(connection: Connection, number: int) -> list[bytes]:
    """Return the bytes of all documents after a number, in order."""
    found = connection.execute(
        "SELECT body FROM documents WHERE number > ? ORDER BY number", (number,)
    )
    return [row[0] for row in found.fetchall()]


def body(connection: Connection, number: int) -> bytes | None:
    """Return the bytes of a document; None if there is none."""
    row = connection.execute("SELECT body FROM documents WHERE number = ?", (number,)).fetchone()
    return row and bytes(row[0])


def digest_of(connection: Connection, number: int) -> str | None:
    """Return the digest of a document; None if there is none."""
    row = connection.execute("SELECT digest FROM documents WHERE number = ?", (number,)).fetchone()
    return row and str(row[0])


def committed(connection: Connection) -> list[tuple[int, str]]:
    """Return number and digest of every document, in order."""
    return connection.execute("SELECT number, digest FROM documents ORDER BY number").fetchall()


def part(epoch: int, batch: int) -> str:
    """Return the name of the ledger's partition for a batch."""
    return f"batch {batch} of epoch {epoch}"


def entry_of(ledger: Ledger, part: str) -> Mapping[str, object]:
    """Return the charges of a ledger for one batch as they are stored."""
    own = tuple(each for each in ledger.entries if batch_of_partition(each.partition) == part)
    (entry,) = replace(ledger, entries=own).to_json()["entries"]
    return dict(entry)


def charge(connection: Connection, number: int, entry: Mapping[str, object]) -> None:
    """Insert the charges of document ``number``."""
    connection.execute("INSERT INTO charges VALUES (?, ?)", (number, canonical(entry).decode()))


def ledger_of(
    connection: Connection,
    settings: Settings,
    until: int = 2**53,
    confirmed: Iterable[AnchorMark] = (),
) -> Ledger:
    """Return the ledger of all documents up to a number, and of every ``confirmed`` one.

    Privacy: a database that was set back lacks charges of releases that were published; the anchor
    has them. [docs/privacy/service.md, "One fit for each batch"]
    """
    rows = connection.execute("SELECT number, entry FROM charges WHERE number <= ?", (until,))
    paid = dict(rows.fetchall())
    for mark in confirmed:
        if mark.charge and mark.number not in paid:
            paid[mark.number] = canonical(mark.charge).decode()
    entries = tuple(entry for number in sorted(paid) for entry in _entries(paid[number]))
    return replace(settings.plan.empty_ledger(), entries=entries)


@lru_cache(maxsize=4096)
def _entries(charges: str) -> tuple[Entry, ...]:
    """Parse the charges of one document; a release reads those of all before it."""
    return entries_of(json.loads(charges))


@dataclass(frozen=True)
class Change:
    """One change; ``by`` is the id of an API key or a member and ``label`` the label or the name;
    both are empty for a command on the machine and for releases."""

    at: float
    what: str
    by: str
    label: str
    document: int | None
    """The number of the document that publishes it, if one does."""
    details: dict[str, Any]


def note_change(
    database: Database,
    connection: Connection,
    what: str,
    by: str = "",
    *,
    document: int | None = None,
    **details: object,
) -> None:
    """Record a change in the transaction that makes it; it contains no row of people."""
    connection.execute(
        f"INSERT INTO changes VALUES ({database.now}, ?, ?, ?, ?)",
        (what, by, document, canonical(details).decode()),
    )


def list_changes(connection: Connection, newest: int, limit: int = LIMIT) -> list[Change]:
    """Return the latest changes, the newest first; documents after ``newest`` are not confirmed yet
    and are left out."""
    rows = connection.execute(
        """SELECT changes.at, changes.what, changes.who, keys.label, changes.document,
           changes.details FROM changes LEFT JOIN keys ON keys.id = changes.who
           WHERE coalesce(changes.document, 0) <= ? ORDER BY changes.at DESC LIMIT ?""",
        (newest, limit),
    ).fetchall()
    return [
        Change(at, what, by, label or name, document, json.loads(details))
        for at, what, who, label, document, details in rows
        for by, _, name in [who.partition(" ")]  # a member is stored with the name
    ]


def count_decisions(database: Database, connection: Connection, decisions: int) -> None:
    """Add decisions that one worker has answered to the current hour of the database."""
    now = float(connection.execute(f"SELECT {database.now}").fetchone()[0])
    connection.execute(
        """INSERT INTO traffic VALUES (?, ?, ?) ON CONFLICT (hour) DO UPDATE
           SET decisions = traffic.decisions + excluded.decisions, latest = excluded.latest""",
        (int(now // HOUR) * HOUR, decisions, now),
    )


def decisions_by_hour(connection: Connection) -> dict[int, int]:
    """Return the first second of each hour with decisions, and their number: a public fact."""
    found = connection.execute("SELECT hour, decisions FROM traffic ORDER BY hour")
    return dict(found.fetchall())


def last_decision(connection: Connection) -> float | None:
    """Return the time of the latest decision, to some seconds; None if it is not known."""
    return connection.execute("SELECT max(latest) FROM traffic").fetchone()[0]  # type: ignore[no-any-return]


def release_times(connection: Connection) -> dict[int, float]:
    """Return the time of each release by the number of its document."""
    found = connection.execute(
        "SELECT document, min(at) FROM changes WHERE what = 'released' GROUP BY document"
    )
    return dict(found.fetchall())
