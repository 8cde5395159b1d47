"""Rows in bulk: import of a private log, import of outcomes, export of decisions.

Privacy: a log is released in the same way as decisions: its rows are encrypted under the key of
their batch, counted in the table of people, fitted once by the child, verified and charged. Of
outcomes the rules are those of ``observe``: an id carries its MAC, the first loss of a slot stays,
and nothing is stored after the window of its batch, by the clock of the database. Exported
decisions are rows of people, without noise. They are readable only while the keys of their batches
exist, so that nothing of a batch can be exported after its release.
[docs/privacy/service.md, "What is stored, and for how long"]
"""

from __future__ import annotations

import gc
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, closing
from itertools import groupby
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

import numpy as np

from discreet.batches.batch_slots import batch_over
from discreet.batches.log_import import LoggedRows
from discreet.batches.users import keyed_hash
from discreet.client import reported_outcomes as outcomes
from discreet.client.reported_outcomes import Row, RowResults
from discreet.design.action_names import action_name
from discreet.errors import DecisionClosed, InvalidInput, StateClaimed, UnknownDecision
from discreet.features.joint import feature_names
from discreet.service.runtime.lifecycle import awaits_log, check_stored
from discreet.service.secrets import sealing
from discreet.service.secrets.sealing import (
    BARE_LENGTH,
    DecisionIds,
    DecisionRow,
    Sealer,
    pack_losses,
    unpack_losses,
)
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.batches import LOG_EPOCH, under_way
from discreet.service.storage.database import Connection, Database, step, storage_errors
from discreet.service.storage.document_table import note_change
from discreet.service.storage.idempotency import RequestNames
from discreet.service.storage.journal import (
    KEPT,
    EarlierItem,
    Journal,
    ObservationItem,
    OwnedSlot,
    People,
)
from discreet.service.storage.locations import anchor_of, open_database

SLICE = 4096
"""Rows per statement: databases limit the values that one may have."""
WITHOUT_CONTEXT = "a ticket needs context and action"
NOTE = (
    "PRIVATE: rows of people, without noise. No guarantee of differential privacy covers this "
    "file, and no release erases it. Do not publish it or anything computed from it."
)


def import_log(settings: Settings, rows: LoggedRows) -> int:
    """Store a log before the first start, in one transaction; return its number of batches.

    The next start of the service releases them, before the first decision takes a slot.
    """
    wanted, given = settings.plan.imported, len(rows.actions)
    if given != wanted:
        raise InvalidInput(
            f"log must have the rows that plan.imported announces, {wanted or 'no'} rows; got "
            f"{given:,}. Import as many; or, since a plan never changes, write imported = {given} "
            "and begin a new experiment with another database."
        )
    schedule = settings.plan.schedule
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    with database.guard(), closing(database.connect()) as connection:
        check_stored(settings, database, connection, anchor_of(settings))
        with database.transaction(connection):
            # Other imports and leases wait for this row, and then see these batches.
            connection.execute(f"SELECT 1 FROM experiment {database.lock}").fetchone()
            if not awaits_log(settings, connection):
                raise StateClaimed(
                    "log must be imported once, before the first decision; this experiment holds "
                    "batches, or was restored. A second import would add noise a second time to "
                    "the same rows: continue with discreet serve, or begin a new experiment."
                )
            for number, one in enumerate(rows.batches(schedule), start=1):
                _store_logged(database, connection, vault, settings, number, one)
                step("import:batch")
            connection.execute(f"UPDATE experiment SET clock = {database.later}")
            step("import:before-commit")
        step("import:committed")
    return schedule.imported_batches


def _store_logged(
    database: Database,
    connection: Connection,
    vault: Vault,
    settings: Settings,
    batch: int,
    rows: LoggedRows,
) -> None:
    """Store one batch with all its slots taken, whose window is over."""
    size, often = len(rows.actions), settings.plan.participation
    vault.make(LOG_EPOCH, batch)
    key = vault.batch(LOG_EPOCH, batch)
    assert key is not None
    sealer = Sealer(key, LOG_EPOCH, batch)
    silent = [math.nan] * len(settings.plan.guardrails or ())  # a log has no guardrails
    connection.execute(
        f"""INSERT INTO batches
                (epoch, id, size, taken, state, release, opened, sealed, closes, due)
            SELECT ?, ?, ?, ?, 'sealed', 0, clock.at, clock.at, clock.at, clock.at
            FROM (SELECT {database.now} AS at) AS clock""",
        (LOG_EPOCH, batch, size, size),
    )
    people = None if often is None else People(database, often)
    hashed = keyed_hash(vault.people)
    for start in range(0, size, SLICE):
        slots = range(start, min(start + SLICE, size))
        values: list[object] = []
        for slot in slots:
            row = DecisionRow(rows.features[slot], int(rows.actions[slot])).pack()
            packed = row + pack_losses([float(rows.losses[slot]), *silent])
            sealed = sealer.seal(sealing.WHOLE, slot, packed)
            values += (LOG_EPOCH, batch, slot, sealing.WHOLE, sealed)
        marks = ", ".join(["(?, ?, ?, ?, ?)"] * len(slots))
        connection.execute(f"INSERT INTO answers VALUES {marks}", values)
        if people:
            # Privacy: a log uses one of a person's M batches, and k of their rows in it count; a
            # row without an owner is void. [docs/privacy/users.md, "Counts must not be forgotten"]
            slots_of_people = [
                OwnedSlot(LOG_EPOCH, batch, slot, hashed(user))
                for slot in slots
                if (user := rows.users[slot]) is not None
            ]
            people.record_slots(connection, slots_of_people)


Sealed = tuple[list[tuple[int, ObservationItem]], list[tuple[int, str]]]
"""PRIVATE: rows to store, and rows that cannot be stored with their results."""
Plain = tuple[list[tuple[int, int, int, int, int, bytes, bytes]], list[tuple[int, str]]]
"""PRIVATE: the same with plain tuples, which travel between processes in a third of the time."""


class OutcomeSealer:
    """Reads ids and encrypts outcomes; it needs the vault and no database."""

    def __init__(self, settings: Settings, guardrails: Sequence[str] = ()) -> None:
        self.vault, self._plan = Vault(settings.place(settings.vault)), settings.plan
        self._guardrails = guardrails
        self._ids = DecisionIds(self.vault.mac)
        self._ciphers: dict[tuple[int, int], Sealer] = {}

    def seal(self, rows: Sequence[Row]) -> Sealed:
        """Return encrypted outcomes, and the results of rows that cannot be stored."""
        items, results = self._usual(rows), []
        done = {row for row, _ in items}
        for row, decision, value, *rails in rows if len(done) < len(rows) else ():
            if row in done:
                continue
            try:
                item = None if value is None else self._item(decision, value, rails)
            except UnknownDecision:
                results.append((row, outcomes.UNKNOWN))
            except DecisionClosed:
                results.append((row, outcomes.LATE))
            except InvalidInput as error:
                results.append((row, str(error)))
            else:
                if item is None:
                    results.append((row, outcomes.EMPTY if value is None else outcomes.UNSTORED))
                else:
                    items.append((row, item))
        return items, results

    def _usual(self, rows: Sequence[Row]) -> list[tuple[int, ObservationItem]]:
        """Encrypt all rows that are as most are, in a fraction of the time: decisions whose row is
        stored, and values in their range. Others are left out, or all if a value is wrong, or if
        the plan has guardrails."""
        if self._plan.guardrails:
            return []
        usual = [
            (row, id, value)
            for row, id, value, *_ in rows
            if type(id) is str and len(id) == BARE_LENGTH and type(value) is float
        ]
        try:
            values = [value for _, _, value in usual]
            losses = self._plan.outcome.losses_of(values, (len(usual),))
        except InvalidInput:
            return []
        ids = self._ids.read_bare([id for _, id, _ in usual])
        known = [
            (row, id, loss)
            for (row, _, _), id, loss in zip(usual, ids, losses.tolist(), strict=True)
            if id is not None and id.kind == sealing.WRITTEN
        ]
        items: list[tuple[int, ObservationItem]] = []
        for (epoch, batch), together in groupby(known, lambda each: each[1][1:3]):
            if (cipher := self.cipher(epoch, batch)) is None:
                continue
            run = [*together]
            sealed = cipher.seal_losses([(id.slot, loss) for _, id, loss in run])
            items += [
                (row, ObservationItem(epoch, batch, id.slot, sealing.LOSS, payload, id.lease))
                for (row, id, _), payload in zip(run, sealed, strict=True)
            ]
        return items

    def _item(
        self, decision: object, value: object, rails: Sequence[float | None]
    ) -> ObservationItem | None:
        guardrails = outcomes.by_name(self._guardrails, rails)
        id, losses = self._ids.read(str(decision)), self._plan.reported_losses(value, guardrails)
        if id.kind == sealing.UNSTORED:
            return None
        if id.kind == sealing.TICKET:
            raise InvalidInput(WITHOUT_CONTEXT)
        cipher = self.cipher(id.epoch, id.batch)
        if cipher is None:
            raise batch_over()
        kind, packed = cipher.outcome(id, losses)
        payload = cipher.seal(kind, id.slot, packed)
        return ObservationItem(id.epoch, id.batch, id.slot, kind, payload, id.lease)

    def cipher(self, epoch: int, batch: int) -> Sealer | None:
        """Return the cipher of a batch; None if its key was destroyed."""
        found = self._ciphers.get((epoch, batch))
        if found is None and (key := self.vault.batch(epoch, batch)) is not None:
            found = self._ciphers[epoch, batch] = Sealer(key, epoch, batch)
        return found


def import_outcomes(
    settings: Settings,
    chunks: Iterable[list[Row]],
    *,
    helpers: int = 0,
    guardrails: Sequence[str] = (),
) -> Iterator[RowResults]:
    """Store outcomes, and ``guardrails`` where rows have them, one transaction per chunk; yield its
    results once it is durable.

    A SQLite database must not be served meanwhile; one of PostgreSQL may be. ``helpers`` processes
    read ids and encrypt while this one writes.
    """
    database, sealer = open_database(settings), OutcomeSealer(settings, guardrails)
    with ExitStack() as stack:
        if gc.isenabled():  # rows are many tuples without cycles, which it would visit in vain
            gc.disable()
            stack.callback(gc.enable)
        stack.enter_context(storage_errors(database))
        stack.enter_context(database.guard())
        stack.enter_context(sealer.vault.served())
        connection = stack.enter_context(closing(database.connect()))
        check_stored(settings, database, connection, anchor_of(settings))
        journal = Journal(database, RequestNames(database, sealer.vault, settings.remember))
        for sealed in _sealed(settings, sealer, chunks, helpers, guardrails):
            with database.transaction(connection):
                results = _written(journal, connection, sealer, sealed)
                step("outcomes:before-commit")
            step("outcomes:committed")
            yield results


def _sealed(
    settings: Settings,
    sealer: OutcomeSealer,
    chunks: Iterable[list[Row]],
    helpers: int,
    guardrails: Sequence[str],
) -> Iterator[Sealed]:
    """Encrypt chunks, in this process or ahead of it in others."""
    if not helpers:
        yield from map(sealer.seal, chunks)
        return
    spawned = get_context("spawn")  # a fork would copy threads of the reader
    with ProcessPoolExecutor(helpers, spawned, _begin, (settings, guardrails)) as pool:
        waiting: deque[Future[Plain]] = deque()
        for chunk in chunks:
            waiting.append(pool.submit(_seal, chunk))
            if len(waiting) > helpers + 1:
                yield _opened(waiting.popleft().result())
        while waiting:
            yield _opened(waiting.popleft().result())


_helper: list[OutcomeSealer] = []
"""The sealer of a helper process."""


def _begin(settings: Settings, guardrails: Sequence[str]) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()
    _helper.append(OutcomeSealer(settings, guardrails))


def _end_with_parent() -> None:
    """End this process, which holds keys, with the one that began it, even if that was killed."""
    if (parent := parent_process()) is not None:
        parent.join()
    os._exit(1)


def _seal(chunk: list[Row]) -> Plain:
    items, results = _helper[0].seal(chunk)
    return [(row, *item) for row, item in items], results


def _opened(plain: Plain) -> Sealed:
    return [(each[0], ObservationItem(*each[1:])) for each in plain[0]], plain[1]


def _written(
    journal: Journal, connection: Connection, sealer: OutcomeSealer, sealed: Sealed
) -> RowResults:
    items, results = sealed[0], list(sealed[1])
    written: list[object] = []
    for start in range(0, len(items), SLICE):
        part = [item for _, item in items[start : start + SLICE]]
        written += journal.observe(connection, part)
    for (row, item), found in zip(items, written, strict=True):
        if found is KEPT:
            continue
        cipher, result = sealer.cipher(item.epoch, item.batch), outcomes.LATE
        if cipher is not None and isinstance(found, EarlierItem):  # else its batch is over
            same = cipher.open(item.kind, item.slot, found.payload) == cipher.open(
                item.kind, item.slot, item.payload
            )
            result = outcomes.AGAIN if same else outcomes.CONFLICT
        results.append((row, result))
    return RowResults.of(results, written.count(KEPT))


def decision_columns(settings: Settings) -> dict[str, np.ndarray[Any, Any]]:
    """Return the decisions of all batches under way as columns, and record the export.

    The place of a decision is in its id: epoch, batch and slot. Items of a catalogue have no
    column, since only their features are stored.
    """
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    plan, rails = settings.plan, settings.plan.guardrails or ()
    places, rows, losses = [], [], []
    with storage_errors(database), closing(database.connect()) as connection:
        for batch in under_way(connection):
            if (key := vault.batch(batch.epoch, batch.id)) is None:
                continue
            place = (batch.epoch, batch.id)
            made, known = _decisions(connection, Sealer(key, *place), place, len(rails))
            for slot in sorted(made):
                places.append((*place, slot, batch.release))
                rows.append(made[slot])
                losses.append(known.get(slot, [np.nan] * (1 + len(rails))))
        with database.transaction(connection):
            note_change(database, connection, "decisions exported")
    numbers = np.asarray(places, dtype=np.int64).reshape(-1, 4)
    columns: dict[str, np.ndarray[Any, Any]] = dict(
        zip(("epoch", "batch", "slot", "release"), numbers.T, strict=True)
    )
    if plan.catalogue is None:
        names = [action_name(plan, row.action) for row in rows]
        columns["action"] = np.asarray(names, dtype=None if plan.actions is None else object)
    columns["deferred"] = np.asarray([row.deferred for row in rows], dtype=bool)
    values = np.asarray(losses, dtype=np.float64).reshape(len(rows), 1 + len(rails))
    columns[plan.outcome.word] = plan.outcome.value_of(values[:, 0])
    for number, each in enumerate(rails, start=1):
        columns[f"guardrail {each.name}"] = each.outcome.value_of(values[:, number])
    features = np.asarray([row.features for row in rows]).reshape(len(rows), plan.features.p)
    for name, values in zip(feature_names(plan.features), features.T, strict=True):
        columns[f"feature {name}"] = np.ascontiguousarray(values)
    return columns


def _decisions(
    connection: Connection, sealer: Sealer, place: tuple[int, int], guardrails: int
) -> tuple[dict[int, DecisionRow], dict[int, list[float]]]:
    """Return the rows of a batch by slot, and losses and guardrails by slot."""
    made, losses = dict[int, DecisionRow](), dict[int, list[float]]()
    query = """SELECT slot, ?, payload FROM records WHERE epoch = ? AND batch = ? UNION ALL
               SELECT slot, kind, payload FROM answers WHERE epoch = ? AND batch = ?"""
    for slot, kind, payload in connection.execute(query, (sealing.ROW, *place, *place)).fetchall():
        packed = sealer.open(kind, slot, bytes(payload))
        if packed is None or kind not in (sealing.ROW, sealing.LOSS, sealing.WHOLE):
            continue
        if kind != sealing.ROW:
            packed, losses[slot] = unpack_losses(packed, guardrails)
        if kind != sealing.LOSS:
            made[slot] = DecisionRow.unpack(packed)
    return made, losses
