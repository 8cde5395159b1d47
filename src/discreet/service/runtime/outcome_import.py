"""Outcomes that arrive in bulk, written straight into the database of an experiment.

The rules are those of ``observe``: an id carries its MAC, the first loss of a slot stays, and
nothing is stored after the window of its batch, by the clock of the database.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, closing
from itertools import groupby
from multiprocessing import get_context, parent_process
from threading import Thread

from discreet.batches.batch_slots import batch_over
from discreet.client import reported_outcomes as outcomes
from discreet.client.reported_outcomes import Row, RowResults
from discreet.errors import DecisionClosed, InvalidInput, UnknownDecision
from discreet.service.runtime.lifecycle import check_stored
from discreet.service.secrets import sealing
from discreet.service.secrets.sealing import BARE_LENGTH, DecisionIds, Sealer
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.database import Connection, step, storage_errors
from discreet.service.storage.idempotency import RequestNames
from discreet.service.storage.journal import KEPT, EarlierItem, Journal, ObservationItem
from discreet.service.storage.locations import anchor_of, open_database

SLICE = 4096
"""Rows per statement: databases limit the values that one may have."""
WITHOUT_CONTEXT = "a ticket needs context and action"
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
        if len(items) < len(rows):
            done = {row for row, _ in items}
            rows = [each for each in rows if each[0] not in done]
        else:
            rows = []
        for row, decision, value, *rails in rows:
            if value is None:
                results.append((row, outcomes.EMPTY))
                continue
            try:
                given = outcomes.by_name(self._guardrails, rails)
                item = self._item(decision, value, given)
            except UnknownDecision:
                results.append((row, outcomes.UNKNOWN))
            except DecisionClosed:
                results.append((row, outcomes.LATE))
            except InvalidInput as error:
                results.append((row, str(error)))
            else:
                if item is None:
                    results.append((row, outcomes.UNSTORED))
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
        self, decision: object, value: object, guardrails: dict[str, float]
    ) -> ObservationItem | None:
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
    stored = 0
    for start in range(0, len(items), SLICE):
        part = items[start : start + SLICE]
        written = journal.observe(connection, [item for _, item in part])
        kept = written.count(KEPT)
        stored += kept
        if kept < len(part):
            others = [pair for pair in zip(part, written, strict=True) if pair[1] is not KEPT]
            results += [(row, _result(sealer, item, found)) for (row, item), found in others]
    return RowResults.of(results, stored)


def _result(sealer: OutcomeSealer, item: ObservationItem, found: object) -> str:
    """Return the result of an item whose batch is over, or whose slot has an outcome."""
    cipher = sealer.cipher(item.epoch, item.batch)
    if cipher is None or not isinstance(found, EarlierItem):
        return outcomes.LATE
    before, now = (cipher.open(item.kind, item.slot, each.payload) for each in (found, item))
    return outcomes.AGAIN if before == now else outcomes.CONFLICT
