"""Reads what the pages show from the database: batches, documents, charges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from discreet.client.chain import Link
from discreet.client.documents import digest, verify
from discreet.errors import CorruptRelease
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import Composed, Event
from discreet.privacy.ledger import Ledger
from discreet.service.storage.batches import COLUMNS, BatchState
from discreet.service.storage.database import Connection


def batches(connection: Connection) -> list[BatchState]:
    """Return every batch that was ever opened, the oldest first."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM batches ORDER BY epoch, id").fetchall()
    return [BatchState(*row) for row in rows]


def bodies(connection: Connection) -> list[tuple[int, bytes]]:
    """Number and stored bytes of every document, even those that may not be shown yet."""
    rows = connection.execute("SELECT number, body FROM documents ORDER BY number").fetchall()
    return [(int(row[0]), bytes(row[1])) for row in rows]


@dataclass(frozen=True)
class Checked:
    """A stored document whose signature was checked; ``wrong`` says what is wrong."""

    number: int
    digest: str
    content: dict[str, Any]
    wrong: str = ""


def check(number: int, body: bytes, key: str, known: str) -> Checked:
    """Check the signature, and that the bytes have the published digest ``known``."""
    found, unreadable = digest(body), {"kind": "unreadable", "epoch": "–"}
    try:
        document = verify(body, key)
    except CorruptRelease as error:
        return Checked(number, found, unreadable, str(error))
    if known != found:  # unconfirmed bytes are not shown, even if signed
        return Checked(number, found, unreadable, "The bytes differ from those that are served.")
    return Checked(number, found, document)


@dataclass(frozen=True)
class ChargeLine:
    """A charge: its own cost, and the total cost for one unit so far."""

    partition: str
    mechanism: str
    cost: float
    spent: float


def _mechanism(event: Event) -> str:
    """Return the name of the noise; of several things that are published together, each once."""
    parts = event.events if isinstance(event, Composed) else (event,)
    return " and ".join(dict.fromkeys(type(part).__name__ for part in parts))


def charges(ledger: Ledger) -> list[ChargeLine]:
    """Return the ledger as a table."""
    lines = []
    for count, entry in enumerate(ledger.entries, start=1):
        so_far = replace(ledger, entries=ledger.entries[:count])
        cost = epsilon(entry.event, ledger.budget.delta)
        lines.append(
            ChargeLine(entry.partition, _mechanism(entry.event), cost, so_far.spent().epsilon)
        )
    return lines


DOCUMENT_KINDS = {
    "genesis": "start",
    "release": "release",
    "burn": "batch given up",
    "restore": "backup restored",
    "actions": "actions changed",
}


def document_names(links: Iterable[Link]) -> dict[int, str]:
    """Return the names by number; a document between two releases names the release before it."""
    found, count = {}, 0
    for link in links:
        if link.release is not None:
            count = link.release.number
            found[link.number] = f"release {count}"
        else:
            after = f" after release {count}" if count else ""
            found[link.number] = DOCUMENT_KINDS.get(link.kind, link.kind) + after
    return found


def release_counts(links: Iterable[Link]) -> dict[int, int]:
    """Return the count of releases up to each document, by number."""
    found, count = {}, 0
    for link in links:
        count = link.release.number if link.release is not None else count
        found[link.number] = count
    return found
