"""Batches and their slots: leases for workers, open and sealed batches.

Slots are assigned by count at decision time. Later events can only change the content of a slot, so
batches are disjoint sets, and a person who does not answer moves no other person to another slot.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from discreet.design.control import Control, control_slots
from discreet.design.schedule import Schedule, may_open, tick
from discreet.service.secrets.vault import Vault
from discreet.service.settings import STORING
from discreet.service.storage.anchor import behind
from discreet.service.storage.database import Connection, Database, insert, step
from discreet.types import NumpyArray

COLUMNS = "epoch, id, size, taken, state, release, opened, sealed, closes, due"
UNDER_WAY = "state IN ('open', 'sealed')"
LOG_EPOCH = 1
"""Epoch of imported logs: a log is imported before anything was published, so before any restore.
Its batches are the first of this epoch."""
Head = tuple[int, str]
"""Number and digest of the newest document that a process knows."""
HAS_HEAD = "SELECT 1 FROM documents WHERE number = ? AND digest = ?"
LeasePlace = tuple[int, int, bytes]
"""Epoch, batch and nonce of a lease."""
ACCEPTING = f"""SELECT leases.epoch, leases.batch, leases.nonce FROM leases
    JOIN batches ON batches.epoch = leases.epoch AND batches.id = leases.batch
    WHERE leases.nonce {{nonces}}
    AND {UNDER_WAY} AND (closes IS NULL OR closes > {{now}}) {{held}}"""
HELD = f"AND EXISTS ({HAS_HEAD})"
INSERTED = {
    "records": ("epoch", "batch", "slot", "payload"),
    "answers": ("epoch", "batch", "slot", "kind", "payload"),
}
"""Columns of the tables of content."""


@dataclass(frozen=True)
class BatchState:
    """Public facts of a batch. Its release has as many records as slots are ``taken``."""

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

    @property
    def by_clock(self) -> bool:
        """True if the clock ended the batch before all its slots were taken."""
        return self.state != "open" and self.taken < self.size


@dataclass
class Lease:
    """Slots of one batch that this process may assign, and the release that decides them.

    Decision ids contain the nonce, which the database stores with the lease: a database that was
    set back assigns the same slots again, and must refuse content for earlier ids.
    """

    epoch: int
    batch: int
    release: int
    free: list[int]
    nonce: bytes = b""


class SlotRequest(NamedTuple):
    """Number of slots that a process requests, and number of requests that wait for one."""

    slots: int
    waiting: int = 1


@dataclass(frozen=True)
class BatchRules:
    """Settings that concern batches."""

    schedule: Schedule
    waiting: str
    window: float
    settle: float
    workers: int


class Slots:
    """Leases of slots; a lease opens a batch if none is open, and seals a full one.

    A slot is taken when it is leased, whether or not a request uses it. A clock that closes a batch
    counts leases, and does not need to know which slots a process has assigned.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        terms: BatchRules,
        head: Callable[[], Head | None] = lambda: None,
    ) -> None:
        self._database, self._vault, self._terms = database, vault, terms
        self._every, self._head = terms.schedule.seconds, head

    def lease(self, connection: Connection, requests: list[SlotRequest]) -> list[Lease | None]:
        """Return one lease per request; None while no batch is open."""
        refuse_set_back(connection, self._head())
        leases = [self._one(connection, wanted) for wanted in requests]
        step("lease:before-commit")
        return leases

    def _one(self, connection: Connection, wanted: SlotRequest) -> Lease | None:
        database, terms = self._database, self._terms
        # One worker at a time: the row of the experiment is the lock.
        epoch, mode = connection.execute(
            f"SELECT epoch, mode FROM experiment {database.lock}"
        ).fetchone()
        now = self._read_clock(connection)
        if mode not in STORING:
            return None
        batch = self._open(connection, epoch, now)
        if batch is None:
            return None
        # Leases become shorter towards the end, so that no worker keeps the last slots of a batch;
        # but each covers all requests that wait.
        left = batch.size - batch.taken
        shared = max(wanted.waiting, left // (4 * terms.workers))
        given = self._given_back(connection, epoch, batch.id)
        count = min(wanted.slots, shared, left) if not given else 0
        taken = batch.taken + count
        _change(connection, epoch, batch.id, "taken", taken)
        if taken == batch.size:
            self._seal(connection, batch)
        nonce = secrets.token_bytes(8)
        connection.execute("INSERT INTO leases VALUES (?, ?, ?)", (nonce, epoch, batch.id))
        # Reversed, since slots are taken from the end of the list.
        free = given or list(range(taken - 1, batch.taken - 1, -1))
        return Lease(epoch, batch.id, batch.release, free, nonce)

    def _given_back(self, connection: Connection, epoch: int, batch: int) -> list[int]:
        """Return and delete the unused slots that processes gave back; they are leased first."""
        rows = connection.execute(
            "DELETE FROM returned WHERE epoch = ? AND batch = ? RETURNING slot",
            (epoch, batch),
        ).fetchall()
        return sorted((row[0] for row in rows), reverse=True)

    def give_back(self, connection: Connection, lease: Lease) -> None:
        """Take back slots that no request received, unless their batch is sealed.

        Privacy: this reads no row, and a sealed batch keeps its size and its time of release. A
        later lease of a slot has another nonce. [docs/privacy/service.md, "Slots do not move"]
        """
        connection.execute(f"SELECT 1 FROM experiment {self._database.lock}").fetchone()
        place = (lease.epoch, lease.batch)
        row = connection.execute(
            "SELECT taken FROM batches WHERE epoch = ? AND id = ? AND state = 'open'", place
        ).fetchone()
        if row is None:
            return
        (taken,) = row
        back = {*lease.free, *self._given_back(connection, *place)}
        while taken - 1 in back:  # the end of what is taken is not taken any more
            taken -= 1
            back.remove(taken)
        _change(connection, *place, "taken", taken)
        if back:
            insert(connection, "returned", [(*place, slot) for slot in back])
        step("return:before-commit")

    def _seal(self, connection: Connection, batch: BatchState) -> None:
        window, settle = self._terms.window, self._terms.settle
        connection.execute(
            f"""UPDATE batches SET state = 'sealed', sealed = clock.at,
                closes = clock.at + ?, due = clock.at + ?
                FROM (SELECT {self._database.now} AS at) AS clock WHERE epoch = ? AND id = ?""",
            (window, window + settle, batch.epoch, batch.id),
        )

    def _read_clock(self, connection: Connection) -> float:
        """Return the time by which batches open and close, and lock the row of the experiment."""
        answer = connection.execute(
            f"UPDATE experiment SET clock = {self._database.later} RETURNING clock"
        )
        return float(answer.fetchone()[0])

    def clock_ticked(self, connection: Connection) -> bool:
        """Return whether the clock of an open batch has ticked, without a lock."""
        if self._every is None:
            return False
        ticked = f"state = 'open' AND opened + ? <= {self._database.now}"
        found = connection.execute(f"SELECT 1 FROM batches WHERE {ticked}", (self._every,))
        return found.fetchone() is not None

    def seal_by_clock(self, connection: Connection) -> None:
        """Seal the open batch if its time is over, without a request for a slot."""
        now = self._read_clock(connection)
        for batch in under_way(connection):
            if batch.state == "open":
                self._ended(connection, batch, now)
        step("clock:before-commit")

    def _ended(self, connection: Connection, batch: BatchState, now: float) -> bool:
        """Seal an open batch whose time is over; return whether it was sealed.

        Privacy: leases and the clock decide; no row is read. [docs/privacy/service.md, "A
        clock that closes batches"]
        """
        if self._every is None:
            return False
        opened, closed = tick(self._every, batch.opened, batch.taken, now)
        if closed:
            self._seal(connection, batch)
            step("clock:sealed")
        elif opened != batch.opened:  # nothing is taken: its clock runs from the newest tick
            _change(connection, batch.epoch, batch.id, "opened", opened)
        return closed

    def _open(self, connection: Connection, epoch: int, now: float) -> BatchState | None:
        """Return the open batch, or a new one if schedule and batches under way allow it."""
        live = under_way(connection)
        for batch in live:
            if batch.state == "open" and not self._ended(connection, batch, now):
                return batch
        if not may_open(self._terms.waiting, len(live)) or log_waits(self._terms.schedule, live):
            return None
        if (size := self._next_size(connection)) == 0:
            return None
        number, newest = connection.execute(
            """SELECT (SELECT coalesce(max(id), 0) + 1 FROM batches WHERE epoch = ?),
               (SELECT max(number) FROM documents)""",
            (epoch,),
        ).fetchone()
        self._vault.make(epoch, number)
        connection.execute(
            """INSERT INTO batches (epoch, id, size, taken, state, release, opened)
               VALUES (?, ?, ?, 0, 'open', ?, ?)""",
            (epoch, number, size, newest, now),
        )
        return BatchState(epoch, number, size, 0, "open", newest, now, None, None, None)

    def _next_size(self, connection: Connection) -> int:
        kept = connection.execute("SELECT count(*) FROM batches WHERE state <> 'burned'")
        return self.size(kept.fetchone()[0] + 1)

    def ended(self, connection: Connection) -> bool:
        """Return whether no batch is open and the plan has no further one."""
        opened = any(batch.state == "open" for batch in under_way(connection))
        return not opened and self._next_size(connection) == 0

    def size(self, number: int) -> int:
        """Return the slots of a batch by its place in the schedule; 0 after the last."""
        schedule = self._terms.schedule
        return schedule.length(number) if schedule.fitted(number) else 0


def _change(connection: Connection, epoch: int, batch: int, column: str, value: float) -> None:
    place = value, epoch, batch
    connection.execute(f"UPDATE batches SET {column} = ? WHERE epoch = ? AND id = ?", place)


def opened_after(connection: Connection, epoch: int, batch: int) -> int:
    """Return the document after which a batch opened, which fixes its policy and actions."""
    found = connection.execute(
        "SELECT release FROM batches WHERE epoch = ? AND id = ?", (epoch, batch)
    )
    return int(found.fetchone()[0])


def of_log(schedule: Schedule, epoch: int, batch: int) -> bool:
    """Return whether a batch holds rows of an imported log: a public fact."""
    return epoch == LOG_EPOCH and batch <= schedule.imported_batches


def log_waits(schedule: Schedule, live: list[BatchState]) -> bool:
    """Return whether batches of the log wait for their release: no other one opens until then."""
    return any(of_log(schedule, each.epoch, each.id) for each in live)


def under_way(connection: Connection) -> list[BatchState]:
    """Return the batches that are open or wait for losses, the oldest first."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM batches WHERE {UNDER_WAY} ORDER BY epoch, id"
    ).fetchall()
    return [BatchState(*row) for row in rows]


def refuse_set_back(connection: Connection, head: Head | None) -> None:
    """Refuse a database without the newest document that this process knows: it was set back, and
    rows that it stored would be burned."""
    if head is not None and connection.execute(HAS_HEAD, head).fetchone() is None:
        raise behind()


def control_positions(control: Control, epoch: int, batch: int, size: int) -> NumpyArray:
    """Return which of the first ``size`` slots of a batch are in the control: (size,) bool.

    A public rule of epoch, batch and slot, the same in every process. Epoch and number of a batch
    never change, while its place in the schedule changes when an earlier batch is burned. Without
    burns and restores these are the positions that a learner has.
    """
    return control_slots(control.share, (epoch - 1) << 32 | batch, size)


def slot_in_control(control: Control, epoch: int, batch: int, slot: int) -> bool:
    """Return whether one slot is in the control; the size of its batch makes no difference."""
    # Positions are kept for 2^10 slots at least, then for twice as many.
    return bool(control_positions(control, epoch, batch, 1 << max(10, slot.bit_length()))[slot])
