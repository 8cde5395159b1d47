"""State of a worker: database, secrets, and a view of the shared state."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from discreet.client.chain import Chain
from discreet.client.documents import digest, public_key
from discreet.errors import DiscreetError, StateClaimed
from discreet.privacy.ledger import Ledger
from discreet.service.logs import Log
from discreet.service.runtime.lifecycle import ExperimentFile, check
from discreet.service.runtime.policy_versions import PolicyVersions
from discreet.service.secrets.vault import Vault
from discreet.service.settings import STORING, Settings
from discreet.service.storage import api_keys, document_table
from discreet.service.storage.anchor import AnchorContent, AnchorMark, behind
from discreet.service.storage.batches import (
    BatchRules,
    BatchState,
    Slots,
    refuse_set_back,
    under_way,
)
from discreet.service.storage.database import Connection, FileReplaced, safe_name, step
from discreet.service.storage.group_commit import CommitThread, Writer
from discreet.service.storage.idempotency import RequestNames
from discreet.service.storage.journal import Journal, People
from discreet.service.storage.locations import anchor_of, in_same_folder, open_database

T = TypeVar("T")
STALE = 10.0
"""Seconds after which a worker that has not read the database is not ready."""
PROBED = 5.0
"""Seconds between two checks that a row can be stored."""


class WorkerState:
    """Database, secrets and shared state, refreshed a few times a second."""

    epoch: int
    mode: str
    file: ExperimentFile | None = None
    """The file that the service was started from, if any."""
    refused: str | None = None
    """Reason why the last fit was refused, in one public word; None if it was not."""
    last_request = 0.0
    """Time of the last request, by ``time.perf_counter``."""
    asleep = False
    """Whether upkeep reads the database rarely, since there are no requests. [upkeep.py]"""
    whole = False
    """Whether every document that decides was read and verified."""
    decided = 0
    """Decisions and tickets that this worker answered and that are not in the table yet."""
    set_back: StateClaimed | None = None
    """Error if the database lacks published documents, or is another one; else None."""
    anchor_fault: str | None = None
    """Reason why the anchor cannot be used: the safe name of an error, or ``behind``."""

    def __init__(
        self, settings: Settings, *, workers: int = 1, commits: CommitThread | None = None
    ) -> None:
        self.settings = settings
        self.log = Log(settings.experiment)
        self.database = open_database(settings)
        self._commits = commits if self.database.embedded else None
        self.vault = Vault(settings.place(settings.vault))
        self.anchor = anchor_of(settings)
        self.anchor_in_folder = in_same_folder(settings, self.anchor.path)
        self._book = AnchorContent()
        self.serving = PolicyVersions(settings.plan, public_key(self.vault.signing))
        self.names = RequestNames(self.database, self.vault, settings.remember)
        plan, often, head = settings.plan, settings.plan.participation, self.serving.head
        self.people = None if often is None else People(self.database, often)
        self.journal = Journal(self.database, self.names, self.people, head)
        waits = settings.waiting, settings.window, settings.settle
        terms = BatchRules(plan.schedule, *waits, workers)
        self.slots = Slots(self.database, self.vault, terms, head)
        self.keys: dict[str, api_keys.Key] = {}
        self.used: set[str] = set()
        self.live: list[BatchState] = []
        self._live, self._last = set[tuple[int, int]](), (0, 0)
        self.on_change: Callable[[], None] = lambda: None
        self._started, self._fresh, self._probed = False, 0.0, 0.0
        self._unread: str | None = None
        self._vault_fault: str | None = None
        self._refreshing = asyncio.Lock()
        self._open = ExitStack()

    async def start(self) -> None:
        """Open the database; refuse one that is newer, was set back, or has another plan."""
        self._open.enter_context(self.database.guard())
        try:
            self._open.enter_context(self.vault.served())
            self.vault.check()
            self._reader = self.database.connect()
            self._open.callback(lambda: self._reader.close())
            check(self.settings, self.database, self._reader, self.anchor)
            self.writer = Writer(self.database, self._commits)
            self._open.callback(self.writer.close)
            self._reading = ThreadPoolExecutor(1, thread_name_prefix="reader")
            self._open.callback(self._reading.shutdown)
            await self.refresh()
        except BaseException:
            self._open.close()
            raise
        self._started = True

    async def stop(self) -> None:
        """Finish pending writes and close the database."""
        self._started = False
        await asyncio.to_thread(self._open.close)

    async def read(self, operation: Callable[[Connection], T]) -> T:
        """Run a read outside the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, self._read, operation)

    def _read(self, operation: Callable[[Connection], T]) -> T:
        try:
            return operation(self._reader)
        except self.database.lost:
            self._reader = self.database.revived(self._reader)
            return operation(self._reader)

    async def write(self, operation: Callable[[Connection], T]) -> T:
        """Run a rare write; it is durable when this returns."""
        return await asyncio.to_thread(self.writer.run, operation)

    def deciding(self) -> int:
        """Return the document that decides the next request: that of the open batch, if any."""
        opened = [each.release for each in self.live if each.state == "open"]
        return self.serving.served(opened[-1] if opened and self.mode in STORING else None)

    async def refresh(self) -> None:
        """Read changes. A document is served once it was read back, verified and confirmed."""
        try:
            async with self._refreshing:
                await self._refresh()
        except Exception as error:
            if isinstance(error, (*self.database.lost, OSError)):
                self._unread = safe_name(error)
            raise
        self._unread = None

    async def _refresh(self) -> None:
        known = self.serving.newest
        try:
            viewed = await self.read(lambda c: self._viewed(c, known))
        except StateClaimed as error:
            # Nothing of it is used, not even its keys: one may have been revoked since.
            self.set_back, self._fresh, self._unread = error, time.monotonic(), None
            raise
        row, last, live, keys, bodies = viewed
        self.set_back = None
        self.keys = {key.id: key for key in keys}  # even while the anchor cannot be reached
        if bodies:
            try:
                extended = await asyncio.to_thread(self._anchored, bodies)
            except DiscreetError:
                self.whole = False
                raise
            self.serving.adopt(extended)
            step("release:served")
        self.epoch, self.mode, self.serving.chosen = row
        self.live, self._last = live, tuple(last or (0, 0))
        self._live = {(each.epoch, each.id) for each in live}
        pinned = [each.release for each in live if each.state == "open"]
        self.whole = self.confirmed().keys() >= {*map(self.serving.served, [None, *pinned])}
        self._fresh = time.monotonic()
        self.on_change()

    def _viewed(self, connection: Connection, known: int) -> Any:
        self.database.refuse_replaced()
        # The anchor is read first: what it confirms by then was committed before.
        book = self._read_book()
        head = self.serving.head()
        heads = [(mark.number, mark.digest) for mark in book.confirmed[-1:]]
        heads += [] if head is None else [head]
        if not _committed(connection, book.pending):  # a restore follows documents that are lost
            refuse_set_back(connection, max(heads, default=None))
        self.names.look(connection)
        row = connection.execute("SELECT epoch, mode, serving FROM experiment").fetchone()
        newest = "SELECT epoch, id FROM batches ORDER BY epoch DESC, id DESC LIMIT 1"
        last = connection.execute(newest).fetchone()
        live, keys = under_way(connection), api_keys.listed(self.database, connection)
        return row, last, live, keys, document_table.after(connection, known)

    def _read_book(self) -> AnchorContent:
        """Return the content of the anchor; if it cannot be read or is too old, the last good one.

        Decisions continue without an anchor, since this process knows what it has published.
        """
        head = self.serving.head()
        try:
            book = self.anchor.read()
        except (OSError, StateClaimed) as error:
            self.anchor_fault = safe_name(error)
            return self._book
        if head is not None and not book.holds(*head):
            self.anchor_fault = "behind"
            return self._book
        self.anchor_fault, self._book = None, book
        return book

    def _anchored(self, bodies: list[bytes]) -> Chain:
        extended = self.serving.extended(bodies)
        self.anchor.confirm((link.number, link.digest) for link in extended.links)
        step("release:anchored")
        return extended

    async def store_key_use(self) -> None:
        """Store which keys were used since the last call.

        Privacy: keys that report losses are not stored: their last use would reveal whether
        somebody answered. [docs/privacy/service.md, "What is stored, and for how long"]
        """
        used, self.used = self.used, set()
        if used:
            await self.write(lambda c: api_keys.note_use(self.database, c, used))

    async def store_traffic(self) -> None:
        """Add the decisions since the last call to the current hour."""
        decided, self.decided = self.decided, 0
        if decided:
            await self.write(lambda c: document_table.count_decisions(self.database, c, decided))

    def confirmed(self) -> dict[int, str]:
        """Return number and digest of every document that may be shown."""
        return {link.number: link.digest for link in self.serving.chain.links}

    async def document(self, number: int) -> bytes | None:
        """Return the signed bytes of a document that may be shown; None if there is none."""
        known = self.confirmed().get(number)
        if known is None:
            return None
        body = await self.read(lambda c: document_table.body(c, number))
        if body is None or digest(body) != known:
            raise behind()
        return body

    async def ledger(self) -> Ledger:
        """Return the ledger of all documents that may be shown, also of lost ones."""
        newest, settings = self.serving.newest, self.settings

        def read(connection: Connection) -> Ledger:
            confirmed = self._read_book().confirmed
            return document_table.ledger_of(connection, settings, newest, confirmed)

        return await self.read(read)

    @property
    def unready(self) -> dict[str, str]:
        """Reasons why a decision would fail now: each fault and the safe name of its error.

        After a refused fit the last release decides."""
        if not self._started:
            return {"start": "not running"}
        stale = time.monotonic() - self._fresh >= STALE
        chain = None if self.whole else "incomplete"
        if self.set_back is not None:
            chain = "file replaced" if isinstance(self.set_back, FileReplaced) else "set back"
        found = {
            "database": self._unread or ("stale" if stale else None),
            "storage": self.writer.fault,
            "vault": self._vault_fault,
            "chain": chain,
        }
        return {name: fault for name, fault in found.items() if fault}

    async def probe(self) -> None:
        """Check secrets and disk, which the next decision needs."""
        await asyncio.to_thread(self._probe, [*self.live])

    def _probe(self, live: list[BatchState]) -> None:
        self._vault_fault = self.vault.fault(
            [(each.epoch, each.id) for each in live if each.state == "open"]
        )
        if self.writer.fault or time.monotonic() - self._probed > PROBED:
            self._probed = time.monotonic()
            with suppress(*self.database.lost, OSError, StateClaimed):  # reported elsewhere
                self.writer.probe()

    def over(self, epoch: int, batch: int) -> bool:
        """Return whether a batch is over; a batch that opened after the last refresh is not."""
        return (epoch, batch) not in self._live and (epoch, batch) <= self._last

    def assigns_slots(self, epoch: int, batch: int) -> bool:
        """Return whether slots of a batch may be assigned: it is neither over nor closed by the
        clock, so that every decision has a whole window for its loss."""
        ended = any((each.epoch, each.id) == (epoch, batch) and each.by_clock for each in self.live)
        return not ended and not self.over(epoch, batch)


def _committed(connection: Connection, mark: AnchorMark | None) -> bool:
    return mark is not None and document_table.digest_of(connection, mark.number) == mark.digest
