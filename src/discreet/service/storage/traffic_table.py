"""How many decisions were asked for in each hour: a public fact, counted for all workers."""

from __future__ import annotations

from discreet.service.storage.database import Connection, Database

HOUR = 3600


def add(database: Database, connection: Connection, decisions: int) -> None:
    """Add what one worker has answered since it last did so, to the hour of the database."""
    now = float(connection.execute(f"SELECT {database.now}").fetchone()[0])
    connection.execute(
        """INSERT INTO traffic VALUES (?, ?)
           ON CONFLICT (hour) DO UPDATE SET decisions = traffic.decisions + excluded.decisions""",
        (int(now // HOUR) * HOUR, decisions),
    )


def by_hour(connection: Connection) -> dict[int, int]:
    """The first second of each hour with decisions, and how many there were."""
    rows = connection.execute("SELECT hour, decisions FROM traffic ORDER BY hour").fetchall()
    return {int(hour): int(decisions) for hour, decisions in rows}
