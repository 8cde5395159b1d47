"""Tables of encrypted decisions and observations, and of the slots of people.

People are keyed hashes of their ids; the key is in the vault. A slot and the count of its owner are
written in one transaction, so a restored database that lacks a count lacks the content as well. It
cannot know releases that were published after the backup: these count as entered by all people.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum, auto
from itertools import chain
from typing import Any, NamedTuple

from discreet.batches.users import Count, PeopleCounts
from discreet.privacy.budget import Participation
from discreet.service.storage.batches import (
    ACCEPTING,
    HELD,
    INSERTED,
    UNDER_WAY,
    Head,
    LeasePlace,
    refuse_set_back,
)
from discreet.service.storage.database import Connection, Database, insert, marks, step
from discreet.service.storage.idempotency import RequestNames, remember

ROWS_OF_PEOPLE = ("records", "answers", "replies", "handed")
"""The tables whose rows are deleted after a release, by a burn or by a restore."""
AnswerPlace = tuple[int, int, int, int]
"""Epoch, batch, slot and kind of an observation."""
UPSERT = """ON CONFLICT (person) DO UPDATE SET
    entered = excluded.entered, last = excluded.last, records = excluded.records"""
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


class ObservationItem(NamedTuple):
    """Observation to write; ``kind`` is an activation, a loss or a whole record."""

    epoch: int
    batch: int
    slot: int
    kind: int
    payload: bytes
    lease: bytes = b""


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
    database: Database,
    connection: Connection,
    items: Collection[DecisionItem | ObservationItem],
    head: Head | None,
) -> list[bool]:
    """Return for each item whether its lease accepts content until this transaction ends."""
    leases = {(item.epoch, item.batch, item.lease) for item in items}
    held, nonces = "" if head is None else HELD, f"IN {marks([[*leases]])}"
    rows = connection.execute(
        f"{ACCEPTING.format(nonces=nonces, now=database.now, held=held)} {database.share}",
        [*(nonce for _, _, nonce in leases), *(head or ())],
    ).fetchall()
    found = leases & {*rows}
    return _live(connection, items, found, head)


def _live(
    connection: Connection,
    items: Collection[DecisionItem | ObservationItem],
    found: set[LeasePlace],
    head: Head | None,
) -> list[bool]:
    live = [(item.epoch, item.batch, item.lease) in found for item in items]
    if not all(live):
        refuse_set_back(connection, head)
    return live


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

    def record_slots(self, connection: Connection, slots: Collection[OwnedSlot]) -> None:
        """Record which of these slots count, and count them; known slots stay as they are.

        Privacy: the count is committed with the slot, before the reply, and the same
        statements write slots that count and slots that are void. [docs/privacy/service.md,
        "Users"]
        """
        known = _at_places(connection, "handed", "slot", [each[:3] for each in slots])
        new = [each for each in slots if each[:3] not in known]  # a lost COMMIT is made twice
        if not new:
            return
        held = self._locked(connection, sorted({each.person for each in new}))
        # Privacy: a restored table may lack this many batches of any person, known to it or not.
        # [docs/privacy/users.md, "Counts must not be forgotten"]
        missed = connection.execute("SELECT missed FROM experiment").fetchone()[0]
        before = ((each, count._replace(entered=count.entered + missed)) for each, count in held)
        counts = PeopleCounts(self._most, before)
        rows = [
            (*each[:3], int(counts.hand_out([each.person], each.number)[0]), int(each.control))
            for each in new
        ]
        insert(connection, "handed", rows)
        totals = [
            (person, count.entered - missed, count.last, count.records)
            for person, count in counts.held.items()
        ]
        insert(connection, "people", totals, UPSERT)

    def use_up(self, connection: Connection, person: bytes) -> None:
        """Exclude all later slots of a person, whether or not they are known."""
        insert(connection, "people", [(person, *Count(self._most.batches))], UPSERT)

    def _locked(self, connection: Connection, people: list[bytes]) -> list[tuple[bytes, Count]]:
        """Return the counts of some people, locked until this transaction ends.

        All processes lock them in the same order, which prevents deadlocks.
        """
        blank = [(person, *Count()) for person in people]
        insert(connection, "people", blank, "ON CONFLICT DO NOTHING")
        rows = connection.execute(
            f"""SELECT person, entered, last, records FROM people WHERE person IN {marks([people])}
                ORDER BY person {self._database.lock}""",
            people,
        ).fetchall()
        return [(row[0], Count(*row[1:])) for row in rows]


def slots_of_people(connection: Connection, column: str, epoch: int, batch: int) -> set[int]:
    """Return the slots of a batch that ``counts``, within the bounds of their owners, or whose
    owners are in the ``control``."""
    rows = connection.execute(
        f"SELECT slot FROM handed WHERE epoch = ? AND batch = ? AND {column} = 1", (epoch, batch)
    ).fetchall()
    return {row[0] for row in rows}


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
        step("decide:before-write")
        written = None
        if self._people is None and all(item.named is None for item in items):
            written = self._inserted(connection, "records", items)
        if written is not None:
            outcomes: dict[int, WriteResult] = {
                place: OVER for place, good in enumerate(written[0]) if not good
            }
        else:
            outcomes = self._decide(connection, items)
        step("decide:written")
        return [outcomes.get(place, KEPT) for place in range(len(items))]

    def _inserted(
        self,
        connection: Connection,
        table: str,
        items: Sequence[DecisionItem | ObservationItem],
    ) -> tuple[list[bool], int] | None:
        """Insert items at once; return whether the lease of each accepts content, and how many are
        new; None if the database takes several statements."""
        head = self._head()
        rows = [item[: len(INSERTED[table]) + 1] for item in items]
        done = self._database.insert_accepted(connection, table, rows, head)
        return None if done is None else (_live(connection, items, done[0], head), done[1])

    def _decide(self, connection: Connection, items: list[DecisionItem]) -> dict[int, WriteResult]:
        """Write decisions in several statements; return the results of those that are not kept."""
        live = accepting(self._database, connection, items, self._head())
        outcomes: dict[int, WriteResult] = {
            place: OVER for place, good in enumerate(live) if not good
        }
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
        if rows:  # a conflict is the same row again, after a COMMIT whose answer was lost
            insert(connection, "records", rows, "ON CONFLICT DO NOTHING")
        return outcomes

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
        insert(connection, "replies", rows, "ON CONFLICT DO NOTHING")
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
            connection.execute(f"DELETE FROM replies WHERE name IN {marks([spent])}", spent)
        return outcomes

    def find(self, named: RequestName, connection: Connection) -> WriteResult | None:
        """Return the earlier result of this request; None if it took no slot."""
        if known := _replies(connection, [named.name]).get(named.name):
            return known
        return USED if self._names.used(connection, [named.request]) else None

    def observe(self, connection: Connection, items: list[ObservationItem]) -> list[WriteResult]:
        """Write observations; the first of each kind for a slot stays, and later ones return it."""
        step("observe:before-write")
        written = self._inserted(connection, "answers", items)
        if written is None:
            live = accepting(self._database, connection, items, self._head())
        else:
            live, new = written
        first: dict[AnswerPlace, ObservationItem] = {}
        for item, good in zip(items, live, strict=True):
            if good:
                first.setdefault(item[:4], item)
        before: dict[AnswerPlace, bytes] = {}
        if first:
            if written is None:
                rows = [item[:5] for item in first.values()]
                new = insert(connection, "answers", rows, "ON CONFLICT DO NOTHING").rowcount
            step("observe:written")
            if new < len(first):  # what is there and differs was there before
                found = self._stored(connection, first).items()
                before = {place: each for place, each in found if each != first[place].payload}
            elif len(first) == len(items):
                return [KEPT] * len(items)
        outcomes: list[WriteResult] = []
        for item, good in zip(items, live, strict=True):
            place = item[:4]
            if not good:
                outcomes.append(OVER)
            elif first[place] is item and place not in before:
                outcomes.append(KEPT)
            else:
                kept = before.get(place, first[place].payload)
                outcomes.append(EarlierItem(*item[:3], kept))
        return outcomes

    def _stored(
        self, connection: Connection, places: Iterable[AnswerPlace]
    ) -> dict[AnswerPlace, bytes]:
        return _at_places(connection, "answers", "slot, kind", [*places], "payload")


def _at_places(
    connection: Connection,
    table: str,
    columns: str,
    places: Collection[tuple[int, ...]],
    content: str = "NULL",
) -> dict[Any, Any]:
    """Return the content of the rows of a table at these places."""
    if not places:
        return {}
    rows = connection.execute(
        f"""SELECT epoch, batch, {columns}, {content} FROM {table}
            WHERE (epoch, batch, {columns}) IN (VALUES {marks([*places])})""",
        [*chain.from_iterable(places)],
    ).fetchall()
    return {row[:-1]: row[-1] for row in rows}


def _replies(connection: Connection, names: list[bytes]) -> dict[bytes, EarlierItem]:
    rows = connection.execute(
        f"SELECT name, epoch, batch, slot, payload FROM replies WHERE name IN {marks([names])}",
        names,
    ).fetchall()
    return {row[0]: EarlierItem(*row[1:]) for row in rows}


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
            return found  # type: ignore[no-any-return]
    return None
