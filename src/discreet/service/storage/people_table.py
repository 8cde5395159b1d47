"""Counts of the slots of people, shared by all workers.

People are keyed hashes of their ids; the key is in the vault. A slot and the count of its owner are
written in one transaction, so a restored database that lacks a count lacks the content as well. It
cannot know releases that were published after the backup: these count as entered by all people.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from discreet.batches.users import Count, PeopleCounts
from discreet.privacy.budget import Participation
from discreet.service.storage.database import Connection, Database

UPSERT = """ON CONFLICT (person) DO UPDATE SET
    entered = excluded.entered, last = excluded.last, records = excluded.records"""


class OwnedSlot(NamedTuple):
    """Slot with the keyed hash of its person, and whether they are in the control."""

    epoch: int
    batch: int
    slot: int
    person: bytes
    control: bool = False

    @property
    def number(self) -> int:
        """Number of the batch over all epochs: later batches have higher numbers."""
        return self.epoch << 32 | self.batch


class People:
    """Counts of one experiment; every method runs in a transaction of its caller."""

    def __init__(self, database: Database, participation: Participation) -> None:
        self._database, self._most = database, participation

    def record_slots(self, connection: Connection, slots: Iterable[OwnedSlot]) -> None:
        """Record which of these slots count, and count them; known slots stay as they are.

        Privacy: the count is committed with the slot, before the reply, and the same
        statements write slots that count and slots that are void. [docs/privacy/service.md,
        "Users"]
        """
        new = self._unknown(connection, list(slots))
        if not new:
            return
        held = self._locked(connection, sorted({each.person for each in new}))
        # Privacy: a restored table may lack this many batches of any person, known to it or not.
        # [docs/privacy/users.md, "Counts must not be forgotten"]
        missed = connection.execute("SELECT missed FROM experiment").fetchone()[0]
        known = ((each, count._replace(entered=count.entered + missed)) for each, count in held)
        counts = PeopleCounts(self._most, known)
        rows = [
            (*each[:3], int(counts.hand_out([each.person], each.number)[0]), int(each.control))
            for each in new
        ]
        _insert(connection, "handed", rows)
        totals = [
            (person, count.entered - missed, count.last, count.records)
            for person, count in counts.held.items()
        ]
        _insert(connection, "people", totals, UPSERT)

    def use_up(self, connection: Connection, person: bytes) -> None:
        """Exclude all later slots of a person, whether or not they are known."""
        _insert(connection, "people", [(person, *Count(self._most.batches))], UPSERT)

    def _unknown(self, connection: Connection, slots: list[OwnedSlot]) -> list[OwnedSlot]:
        """Return the slots that are not written yet: a lost COMMIT is made twice."""
        if not slots:
            return []
        marks = ", ".join("(?, ?, ?)" for _ in slots)
        rows = connection.execute(
            f"""SELECT epoch, batch, slot FROM handed
                WHERE (epoch, batch, slot) IN (VALUES {marks})""",
            [value for each in slots for value in each[:3]],
        ).fetchall()
        known = {tuple(row) for row in rows}
        return [each for each in slots if each[:3] not in known]

    def _locked(self, connection: Connection, people: list[bytes]) -> list[tuple[bytes, Count]]:
        """Return the counts of some people, locked until this transaction ends.

        All processes lock them in the same order, which prevents deadlocks.
        """
        blank = [(person, *Count()) for person in people]
        _insert(connection, "people", blank, "ON CONFLICT DO NOTHING")
        rows = connection.execute(
            f"""SELECT person, entered, last, records FROM people
                WHERE person IN ({", ".join("?" for _ in people)})
                ORDER BY person {self._database.lock}""",
            people,
        ).fetchall()
        return [(bytes(row[0]), Count(*row[1:])) for row in rows]


def slots_that_count(connection: Connection, epoch: int, batch: int) -> set[int]:
    """Return the slots of a batch that are within the bounds of their owners."""
    return _handed(connection, "counts", epoch, batch)


def slots_of_control(connection: Connection, epoch: int, batch: int) -> set[int]:
    """Return the slots of a batch whose owners are in the control."""
    return _handed(connection, "control", epoch, batch)


def _handed(connection: Connection, column: str, epoch: int, batch: int) -> set[int]:
    rows = connection.execute(
        f"SELECT slot FROM handed WHERE epoch = ? AND batch = ? AND {column} = 1", (epoch, batch)
    ).fetchall()
    return {int(row[0]) for row in rows}


def _insert(connection: Connection, table: str, rows: list[Any], conflict: str = "") -> None:
    marks = ", ".join([f"({', '.join('?' for _ in rows[0])})"] * len(rows))
    values = [value for row in rows for value in row]
    connection.execute(f"INSERT INTO {table} VALUES {marks} {conflict}", values)
