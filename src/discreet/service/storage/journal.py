"""Tables of encrypted decisions and observations: bulk writes, and deletion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

from discreet.service.storage.batches import HAS_HEAD, UNDER_WAY, Head, Leased, refuse_set_back
from discreet.service.storage.database import Connection, Database, step
from discreet.service.storage.idempotency import RequestNames, remember
from discreet.service.storage.people_table import OwnedSlot, People

ROWS_OF_PEOPLE = ("records", "answers", "replies", "handed")
"""The tables whose rows are deleted after a release, by a burn or by a restore."""
AnswerPlace = tuple[int, int, int, int]
"""Epoch, batch, slot and kind of an observation."""
SLICE = 1024
"""Slots per transaction when rows are deleted: limits how long decisions wait."""


class RequestName(NamedTuple):
    """Request with an Idempotency-Key: its text, and the hash that finds its reply."""

    request: bytes
    name: bytes


class DecisionItem(NamedTuple):
    """Decision to write, with its encrypted row. A request with an Idempotency-Key also has its
    name, the encrypted reply, and the hash that identifies it after the end of its batch. If the
    unit of privacy is a user, ``person`` is the keyed hash of their id."""

    epoch: int
    batch: int
    slot: int
    row: bytes | None
    lease: bytes = b""
    named: RequestName | None = None
    reply: bytes | None = None
    later: bytes | None = None
    person: bytes | None = None
    control: bool = False

    @property
    def leased(self) -> Leased:
        """The lease that assigned the slot."""
        return self.epoch, self.batch, self.lease


class ObservationItem(NamedTuple):
    """Observation to write; ``kind`` is an activation, a loss or a whole record."""

    epoch: int
    batch: int
    slot: int
    kind: int
    payload: bytes
    lease: bytes = b""

    @property
    def leased(self) -> Leased:
        """The lease that assigned the slot."""
        return self.epoch, self.batch, self.lease


class WriteState(Enum):
    """Result of a write that needs no content: the item was ``KEPT``; the batch accepts no more
    content (``OVER``); the request took a slot of a batch that is over (``USED``)."""

    OVER = auto()
    KEPT = auto()
    USED = auto()


class EarlierItem(NamedTuple):
    """Item that was written earlier to the same slot, and stays."""

    epoch: int
    batch: int
    slot: int
    payload: bytes


OVER, KEPT, USED = WriteState.OVER, WriteState.KEPT, WriteState.USED
WriteResult = WriteState | EarlierItem


def accepting(
    database: Database, connection: Connection, leases: set[Leased], head: Head | None = None
) -> set[Leased]:
    """Return the leases that accept content until this transaction ends."""
    marks = ", ".join("?" for _ in leases)
    held = "" if head is None else f"AND EXISTS ({HAS_HEAD})"
    rows = connection.execute(
        f"""SELECT leases.epoch, leases.batch, leases.nonce FROM leases
            JOIN batches ON batches.epoch = leases.epoch AND batches.id = leases.batch
            WHERE leases.nonce IN ({marks})
            AND {UNDER_WAY} AND (closes IS NULL OR closes > {database.now}) {held}
            {database.share}""",
        [*(nonce for _, _, nonce in leases), *(head or ())],
    ).fetchall()
    found = leases & {(row[0], row[1], bytes(row[2])) for row in rows}
    if found != leases:
        refuse_set_back(connection, head)
    return found


class Journal:
    """Bulk writes of decisions and observations, with many items per statement."""

    def __init__(
        self,
        database: Database,
        names: RequestNames,
        people: People | None = None,
        head: Callable[[], Head | None] = lambda: None,
    ) -> None:
        self._database, self._names, self._people, self._head = database, names, people, head

    def decide(self, connection: Connection, items: list[DecisionItem]) -> list[WriteResult]:
        """Write decisions; a known request name returns the earlier reply and takes no slot."""
        leased = {item.leased for item in items}
        live = accepting(self._database, connection, leased, self._head())
        outcomes: dict[int, WriteResult] = {
            place: OVER for place, item in enumerate(items) if item.leased not in live
        }
        step("decide:before-write")
        named = {
            item.named: place
            for place, item in reversed(list(enumerate(items)))
            if item.named is not None and place not in outcomes
        }
        if named:
            outcomes |= self._replies(connection, items, named)
        kept = [item for place, item in enumerate(items) if place not in outcomes]
        if self._people is not None:
            slots = [
                OwnedSlot(*item[:3], item.person, item.control)
                for item in kept
                if item.person is not None
            ]
            self._people.record_slots(connection, slots)
        rows = [(*item[:3], item.row) for item in kept if item.row is not None]
        if rows:
            # A conflict is the same row again, after a COMMIT whose answer was lost.
            connection.execute(
                f"INSERT INTO records VALUES {_marks(rows)} ON CONFLICT DO NOTHING", _flat(rows)
            )
        step("decide:written")
        return [outcomes.get(place, KEPT) for place in range(len(items))]

    def _replies(
        self, connection: Connection, items: list[DecisionItem], named: dict[RequestName, int]
    ) -> dict[int, WriteResult]:
        """Store replies; return the results of requests that were answered before.

        Replies must be read before names: a release that has deleted a reply has stored its name.
        """
        rows = [
            (each.name, *items[place][:3], items[place].reply, items[place].later)
            for each, place in named.items()
        ]
        connection.execute(
            f"INSERT INTO replies VALUES {_marks(rows)} ON CONFLICT DO NOTHING", _flat(rows)
        )
        known = _replies(connection, [each.name for each in named])
        used = self._names.used(connection, [each.request for each in named])
        outcomes: dict[int, WriteResult] = {}
        for place, item in enumerate(items):
            if item.named not in named:  # no name, or its batch is over
                continue
            before = known.get(item.named.name)
            if item.named.request in used:
                outcomes[place] = USED
            elif before is not None and before[:3] != item[:3]:
                outcomes[place] = before
        if used:
            spent = [each.name for each in named if each.request in used]
            connection.execute(f"DELETE FROM replies WHERE name IN ({_list(spent)})", spent)
        return outcomes

    def find(self, named: RequestName, connection: Connection) -> WriteResult | None:
        """Return the earlier result of this request; None if it took no slot."""
        if known := _replies(connection, [named.name]).get(named.name):
            return known
        return USED if self._names.used(connection, [named.request]) else None

    def observe(self, connection: Connection, items: list[ObservationItem]) -> list[WriteResult]:
        """Write observations; the first of each kind for a slot stays, and later ones return it."""
        leased = {item.leased for item in items}
        live = accepting(self._database, connection, leased, self._head())
        step("observe:before-write")
        first: dict[AnswerPlace, ObservationItem] = {}
        for item in items:
            if item.leased in live:
                first.setdefault(item[:4], item)
        before: dict[AnswerPlace, bytes] = {}
        if first:
            rows = [item[:5] for item in first.values()]
            answer = connection.execute(
                f"INSERT INTO answers VALUES {_marks(rows)} ON CONFLICT DO NOTHING", _flat(rows)
            )
            step("observe:written")
            if answer.rowcount < len(rows):  # what is there and differs was there before
                found = self._stored(connection, first).items()
                before = {place: each for place, each in found if each != first[place].payload}
            elif len(rows) == len(items):
                return [KEPT] * len(items)
        outcomes: list[WriteResult] = []
        for item in items:
            place = item[:4]
            if item.leased not in live:
                outcomes.append(OVER)
            elif place in before:
                outcomes.append(EarlierItem(*item[:3], before[place]))
            elif first[place] is item:
                outcomes.append(KEPT)
            else:
                outcomes.append(EarlierItem(*item[:3], first[place].payload))
        return outcomes

    def _stored(
        self, connection: Connection, places: Iterable[AnswerPlace]
    ) -> dict[AnswerPlace, bytes]:
        places = [*places]
        rows = connection.execute(
            f"""SELECT epoch, batch, slot, kind, payload FROM answers
                WHERE (epoch, batch, slot, kind) IN (VALUES {_marks(places)})""",
            _flat(places),
        ).fetchall()
        return {tuple(row[:4]): bytes(row[4]) for row in rows}


def _replies(connection: Connection, names: list[bytes]) -> dict[bytes, EarlierItem]:
    rows = connection.execute(
        f"SELECT name, epoch, batch, slot, payload FROM replies WHERE name IN ({_list(names)})",
        names,
    ).fetchall()
    return {bytes(row[0]): EarlierItem(row[1], row[2], row[3], bytes(row[4])) for row in rows}


def forget(connection: Connection, epoch: int, batch: int) -> None:
    """Delete every row of a batch; the names of its requests are remembered for a while."""
    remember(connection, (epoch, batch))
    for table in (*ROWS_OF_PEOPLE, "leases", "returned"):
        connection.execute(f"DELETE FROM {table} WHERE epoch = ? AND batch = ?", (epoch, batch))


def forget_slots(connection: Connection, epoch: int, batch: int, slots: range) -> None:
    """Delete the rows of some slots of a batch; the names of their requests are remembered."""
    remember(connection, (epoch, batch), slots)
    for table in ROWS_OF_PEOPLE:
        connection.execute(
            f"DELETE FROM {table} WHERE epoch = ? AND batch = ? AND slot >= ? AND slot < ?",
            (epoch, batch, slots.start, slots.stop),
        )


def left_over(connection: Connection) -> tuple[int, int, int] | None:
    """Return epoch, number and size of the oldest batch that is over and still has rows."""
    for table in (*ROWS_OF_PEOPLE, "leases"):
        found = connection.execute(
            f"""SELECT batches.epoch, batches.id, batches.size FROM batches
                JOIN (SELECT epoch, batch FROM {table} ORDER BY epoch, batch LIMIT 1) AS oldest
                ON batches.epoch = oldest.epoch AND batches.id = oldest.batch
                WHERE NOT {UNDER_WAY}"""
        ).fetchone()
        if found is not None:
            return int(found[0]), int(found[1]), int(found[2])
    return None


def _marks(rows: Sequence[Sequence[object]]) -> str:
    one = f"({', '.join('?' for _ in rows[0])})"
    return ", ".join([one] * len(rows))


def _list(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)


def _flat(rows: Iterable[Iterable[object]]) -> list[object]:
    return [value for row in rows for value in row]
