"""History of the experiment: changes by operators and by the clock, and decisions per hour."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from discreet.releases.canonical import canonical
from discreet.service.storage.database import Connection, Database

LIMIT = 500
"""The most changes that are read at once, the newest first."""


@dataclass(frozen=True)
class Change:
    """One change; ``by`` is the id of an API key and ``label`` its label; both are empty for a
    command on the machine and for releases."""

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
    **details: Any,
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
        Change(float(at), what, by, label or "", document, json.loads(details))
        for at, what, by, label, document, details in rows
    ]


HOUR = 3600


def count_decisions(database: Database, connection: Connection, decisions: int) -> None:
    """Add decisions that one worker has answered to the current hour of the database."""
    now = float(connection.execute(f"SELECT {database.now}").fetchone()[0])
    connection.execute(
        """INSERT INTO traffic VALUES (?, ?)
           ON CONFLICT (hour) DO UPDATE SET decisions = traffic.decisions + excluded.decisions""",
        (int(now // HOUR) * HOUR, decisions),
    )


def decisions_by_hour(connection: Connection) -> dict[int, int]:
    """Return the first second of each hour with decisions, and their number: a public fact."""
    rows = connection.execute("SELECT hour, decisions FROM traffic ORDER BY hour").fetchall()
    return {int(hour): int(decisions) for hour, decisions in rows}
