"""Hands out slots by count at decision time: leases for workers, open and sealed batches.

Later events can only change what is *in* a slot. So batches are disjoint sets, and the silence of
one person moves nobody else to another slot.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import NamedTuple

from discreet.schedule import Schedule
from discreet.service.kill_points import step
from discreet.service.secrets.vault import Vault
from discreet.service.storage.database import Connection, Database
from discreet.window import may_open

NONCE = 8
"""Bytes of the nonce of a lease."""
COLUMNS = "epoch, id, size, taken, state, release, opened, sealed, closes, due"
UNDER_WAY = "state IN ('open', 'sealed')"
Leased = tuple[int, int, bytes]
"""Epoch, batch and nonce of a lease."""


@dataclass(frozen=True)
class BatchState:
    """The public facts of a batch."""

    epoch: int
    id: int
    size: int
    taken: int
    state: str
    release: int
    opened: float
    sealed: float | None
    closes: float | None
    due: float | None


@dataclass
class Lease:
    """Slots of one batch that this process may hand out, and the release that decides them.

    Decision ids contain the nonce, which the database stores with the lease: a database that was
    set back hands out the same slots again, and must refuse content for ids from before.
    """

    epoch: int
    batch: int
    release: int
    free: list[int]
    nonce: bytes = b""


class Wanted(NamedTuple):
    """How many slots a process asks for, and how many requests wait for one."""

    slots: int
    waiting: int = 1


@dataclass(frozen=True)
class Terms:
    """What the settings say about batches."""

    schedule: Schedule
    waiting: str
    window: float
    settle: float
    workers: int


class Slots:
    """The bulk operation that leases slots; it opens a batch if none is open, and seals it."""

    def __init__(self, database: Database, vault: Vault, terms: Terms) -> None:
        self._database, self._vault, self._terms = database, vault, terms

    def lease(self, connection: Connection, asked: list[Wanted]) -> list[Lease | None]:
        """One lease per request; None while no batch is open."""
        leases = [self._one(connection, wanted) for wanted in asked]
        step("lease:before-commit")
        return leases

    def _one(self, connection: Connection, wanted: Wanted) -> Lease | None:
        database, terms = self._database, self._terms
        # One worker at a time: the row of the experiment is the lock.
        epoch, mode = connection.execute(
            f"SELECT epoch, mode FROM experiment {database.lock}"
        ).fetchone()
        connection.execute(f"UPDATE experiment SET clock = {database.now}")
        if mode == "frozen":
            return None
        batch = self._open(connection, epoch)
        if batch is None:
            return None
        # Leases become shorter towards the end, so that no worker keeps the last slots of a batch;
        # but each covers all requests that wait.
        left = batch.size - batch.taken
        shared = max(wanted.waiting, left // (4 * terms.workers))
        count = min(wanted.slots, shared, left)
        taken = batch.taken + count
        connection.execute(
            "UPDATE batches SET taken = ? WHERE epoch = ? AND id = ?", (taken, epoch, batch.id)
        )
        if taken == batch.size:
            connection.execute(
                f"""UPDATE batches SET state = 'sealed', sealed = clock.at,
                    closes = clock.at + ?, due = clock.at + ?
                    FROM (SELECT {database.now} AS at) AS clock WHERE epoch = ? AND id = ?""",
                (terms.window, terms.window + terms.settle, epoch, batch.id),
            )
        nonce = secrets.token_bytes(NONCE)
        connection.execute("INSERT INTO leases VALUES (?, ?, ?)", (nonce, epoch, batch.id))
        # Reversed, since slots are taken from the end of the list.
        free = list(range(taken - 1, batch.taken - 1, -1))
        return Lease(epoch, batch.id, batch.release, free, nonce)

    def _open(self, connection: Connection, epoch: int) -> BatchState | None:
        """The open batch, or a new one if schedule and batches under way allow it."""
        live = under_way(connection)
        for batch in live:
            if batch.state == "open":
                return batch
        if not may_open(self._terms.waiting, len(live)):
            return None
        highest = connection.execute(
            "SELECT coalesce(max(id), 0) FROM batches WHERE epoch = ?", (epoch,)
        ).fetchone()[0]
        kept = connection.execute(
            "SELECT count(*) FROM batches WHERE state <> 'burned'"
        ).fetchone()[0]
        size = self.size(kept + 1)
        if size == 0:
            return None
        number = highest + 1
        newest = connection.execute("SELECT max(number) FROM documents").fetchone()[0]
        self._vault.make(epoch, number)
        connection.execute(
            f"""INSERT INTO batches (epoch, id, size, taken, state, release, opened)
                VALUES (?, ?, ?, 0, 'open', ?, {self._database.now})""",
            (epoch, number, size, newest),
        )
        return BatchState(epoch, number, size, 0, "open", newest, 0.0, None, None, None)

    def size(self, number: int) -> int:
        """Slots of a batch, by its place in the schedule; 0 after the last."""
        schedule = self._terms.schedule
        return schedule.length(number) if schedule.fitted(number) else 0


def under_way(connection: Connection) -> list[BatchState]:
    """Batches that are open or wait for losses, the oldest first."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM batches WHERE {UNDER_WAY} ORDER BY epoch, id"
    ).fetchall()
    return [BatchState(*row) for row in rows]


def accepting(database: Database, connection: Connection, leases: set[Leased]) -> set[Leased]:
    """The leases that still accept content, and will until this transaction ends."""
    marks = ", ".join("?" for _ in leases)
    rows = connection.execute(
        f"""SELECT leases.epoch, leases.batch, leases.nonce FROM leases
            JOIN batches ON batches.epoch = leases.epoch AND batches.id = leases.batch
            WHERE leases.nonce IN ({marks})
            AND {UNDER_WAY} AND (closes IS NULL OR closes > {database.now}) {database.share}""",
        [nonce for _, _, nonce in leases],
    ).fetchall()
    return leases & {(row[0], row[1], bytes(row[2])) for row in rows}
