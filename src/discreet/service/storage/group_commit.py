"""Group commit: many small writes share a transaction and are answered once it is durable.

One thread may commit for many databases. Each database is a file with its own transaction; they
share a wake-up of the thread, one call that syncs all files, and one wake-up of the event loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from discreet.errors import NotReady
from discreet.service.storage.database import PATIENCE, Bulk, Connection, Database, safe_name, step
from discreet.service.storage.sqlite import FileSync

LARGEST = 256
"""The most writes that are taken at once: limits how long the first of them waits."""
STILL = 0.005
"""Longest pause of the event loop, in seconds, while several databases commit."""
AGAIN = 0.005
"""Seconds between two attempts to write to a database that another program holds."""

_thread = threading.local()


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop without the system call that Python 3.11 makes each time."""
    loop: asyncio.AbstractEventLoop | None = getattr(_thread, "loop", None)
    if loop is None or not loop.is_running():
        loop = _thread.loop = asyncio.get_running_loop()
    return loop


class Work(NamedTuple):
    """One write. ``bulk`` is None outside any transaction; ``loop`` is None if a thread waits."""

    bulk: Bulk | None
    item: Any
    done: Any
    loop: asyncio.AbstractEventLoop | None


Results = list[tuple[Work, Any, Exception | None]]


class BusyError(Exception):
    """Another program holds the database; nothing was written."""


class CommitThread:
    """Thread that commits the writes of its writers and resolves their futures once durable."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Writer, list[Work]] | None] = SimpleQueue()
        self._disk = FileSync()
        self._waiting: dict[Writer, list[Work]] = {}
        self._held: dict[Writer, float] = {}
        """Time until which to wait for another program that writes to this database."""
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="writer", daemon=True)
        self._thread.start()

    def put(self, writer: Writer, works: list[Work]) -> None:
        """Queue writes; those of one writer are committed in order."""
        self._queue.put((writer, works))

    def close(self) -> None:
        """End the thread after all queued writes."""
        self._queue.put(None)
        self._thread.join()
        self._disk.close()

    def _loop(self) -> None:
        while not self._closed or self._waiting:
            self._take()
            taken, self._waiting = self._waiting, {}
            with _paused_loop(taken):
                tried = [(each, self._committed(each, works)) for each, works in taken.items()]
            committed = [(writer, answers) for writer, answers in tried if answers is not None]
            _deliver(self._durable(committed))

    def _take(self) -> None:
        """Wait for a write, and take all that are queued."""
        count = 0
        with suppress(Empty):
            while count < LARGEST:
                more = self._queue.get(not count, timeout=AGAIN if self._held else None)
                if more is None:
                    self._closed = True
                    return
                self._waiting.setdefault(more[0], []).extend(more[1])
                count += len(more[1])

    def _committed(self, writer: Writer, works: list[Work]) -> Results | None:
        """Commit writes and return their results; None if they must wait for another program."""
        now = time.monotonic()
        until = self._held.pop(writer, now + PATIENCE)
        try:
            return writer.commit(works, patient=now < until)
        except BusyError:  # the others do not wait for it
            self._waiting[writer], self._held[writer] = works, until
            return None
        except Exception as error:  # nor for an unexpected error
            return [(work, None, error) for work in works]

    def _durable(self, committed: list[tuple[Writer, Results]]) -> Results:
        """Sync the files to the disk; return the results."""
        files = {writer: writer.unsynced() for writer, _ in committed}
        unsynced = [file for file in files.values() if file is not None]
        errors = dict(zip(unsynced, self._disk.sync(unsynced), strict=True))
        found: Results = []
        for writer, answers in committed:
            file = files[writer]
            error = None if file is None else errors[file]
            found += answers if error is None else writer.not_synced(answers, error)
        return found


@contextmanager
def _paused_loop(taken: dict[Writer, list[Work]]) -> Iterator[None]:
    """Pause the event loop while several databases commit, which takes a millisecond.

    SQLite releases the interpreter lock in every call, and would wait each time for a turn of the
    loop: ten times as long. [docs/performance.md, "Load on a service"]
    """
    loops = {work.loop for works in taken.values() for work in works if work.loop is not None}
    if len(taken) < 2 or len(loops) != 1:
        yield
        return
    stands, go = threading.Lock(), threading.Lock()
    stands.acquire()
    go.acquire()
    with suppress(RuntimeError):  # the loop is closed
        loops.pop().call_soon_threadsafe(_pause_loop, stands, go)
        stands.acquire(timeout=STILL)
    try:
        yield
    finally:
        go.release()


def _pause_loop(stands: threading.Lock, go: threading.Lock) -> None:
    stands.release()
    go.acquire(timeout=STILL)


def _deliver(results: Results) -> None:
    """Resolve the futures; each event loop is woken once."""
    loops: dict[Any, Results] = {}
    for each in results:
        loops.setdefault(each[0].loop, []).append(each)
    _settle(loops.pop(None, []))
    for loop, settled in loops.items():
        with suppress(RuntimeError):  # the loop is closed: no request waits
            loop.call_soon_threadsafe(_settle, settled)


def _settle(results: Results) -> None:
    for work, result, error in results:
        if work.done.done():  # its request may have been cancelled
            continue
        if error is None:
            work.done.set_result(result)
        else:
            work.done.set_exception(error)


T = TypeVar("T")


class Writer:
    """Group commit: a write is durable when its future is resolved.

    Without a ``thread`` that commits for several databases, the writer starts one.
    """

    def __init__(self, database: Database, thread: CommitThread | None = None) -> None:
        self._database = database
        self.fault: str | None = None
        """The safe name of the error that a commit met, until ``probe`` could write again."""
        self._connection = database.connect_to_write()
        self._whole = True
        self._gathered: list[Work] = []
        self._lock, self._closed = threading.Lock(), False
        self._thread, self._shared = thread or CommitThread(), thread is not None

    def write(self, bulk: Bulk, item: Any) -> asyncio.Future[Any]:
        """Return a future for the result of ``bulk`` for this item, resolved once it is durable."""
        loop = running_loop()
        done = loop.create_future()
        with self._lock:
            self._check()
            if not self._gathered:  # all writes of this turn of the loop wake the thread once
                loop.call_soon(self._flush)
            self._gathered.append(Work(bulk, item, done, loop))
        return done

    def run(self, operation: Callable[[Connection], T]) -> T:
        """Run an operation in a transaction, possibly with others; blocks the calling thread.

        Its writes are visible to others only once they are durable.
        """
        return self._wait_for(_each, operation)

    def alone(self, operation: Callable[[Connection], T]) -> T:
        """Run an operation on the writing thread outside any transaction; blocks the caller."""
        return self._wait_for(None, operation)

    def probe(self) -> None:
        """Check that a row can be stored; other commits may have had nothing to write."""
        moment = f"UPDATE experiment SET clock = {self._database.later}"
        self.run(lambda connection: connection.execute(moment))
        self.fault = None

    def close(self) -> None:
        """Finish all pending writes; refuse new ones."""
        done: Future[None] = Future()
        with self._lock:
            self._closed = True
            last = Work(None, lambda _: None, done, None)
            self._thread.put(self, [*self._gathered, last])
        done.result()
        if not self._shared:
            self._thread.close()
        self._connection.close()

    def _wait_for(self, bulk: Bulk | None, operation: Callable[[Connection], T]) -> T:
        done: Future[T] = Future()
        with self._lock:
            self._check()
            self._thread.put(self, [Work(bulk, operation, done, None)])
        return done.result()

    def _check(self) -> None:
        if self._closed:
            raise NotReady("service must be running to write; it has stopped. Start it again.")

    def _flush(self) -> None:
        with self._lock:
            if not self._closed:
                self._thread.put(self, self._gathered)
                self._gathered = []

    def commit(self, works: list[Work], *, patient: bool) -> Results:
        """Commit writes; return their results, valid once the file of ``unsynced`` is synced.

        With ``patient`` this raises BusyError, without any effect, if another program holds the
        database.
        """
        answers = self._commit([work for work in works if work.bulk], patient=patient)
        for work in works:
            if not work.bulk:
                try:
                    answers.append((work, work.item(self._connection), None))
                except Exception as error:
                    answers.append((work, None, error))
        return answers

    def unsynced(self) -> int | None:
        """Return the open file that must reach the disk before futures are resolved, or None."""
        return self._database.unsynced(self._connection)

    def not_synced(self, answers: Results, error: OSError) -> Results:
        """Return the results if that file could not be synced."""
        # It is unknown which pages reached the disk, and a second sync would not report it. So
        # nothing is written until the database has written all pages again.
        self.fault, self._whole = safe_name(error), False
        return [(work, None, failed or error) for work, _, failed in answers]

    def _commit(self, works: list[Work], *, patient: bool, again: bool = True) -> Results:
        """Commit in one transaction; if it fails, in one for each: one error affects one write.

        After a broken connection it is unknown whether COMMIT succeeded. Then everything is written
        once more: existing rows stay as they are.
        """
        if not works:
            return []
        if not self._revived():
            unreachable = OSError("the database cannot be reached")
            return [(work, None, unreachable) for work in works]
        try:
            groups: dict[Bulk, list[Work]] = {}
            for work in works:
                groups.setdefault(work.bulk or _each, []).append(work)
            answers: Results = []
            with self._database.transaction(self._connection, synced=_each in groups) as connection:
                # All processes take locks in one order: of people before that of the experiment.
                for bulk in sorted(groups, key=lambda each: getattr(each, "__qualname__", "")):
                    results = bulk(connection, [work.item for work in groups[bulk]])
                    pairs = zip(groups[bulk], results, strict=True)
                    answers += [(work, result, None) for work, result in pairs]
                step("write:before-commit")
            step("write:committed")
            return answers
        except Exception as error:
            if patient and self._database.held_by_another(error):
                raise BusyError from error
            if isinstance(error, (*self._database.lost, OSError)):
                self.fault = safe_name(error)
            before = self._connection
            reached = self._revived()
            if reached and again and self._connection is not before:
                return self._commit(works, patient=False, again=False)
            if reached and len(works) > 1:
                return [answer for work in works for answer in self._commit([work], patient=False)]
            return [(work, None, error) for work in works]

    def _revived(self) -> bool:
        """Return whether the database can be reached and holds all committed writes."""
        try:
            self._connection = self._database.revived(self._connection)
            self._whole = self._whole or self._database.erase(self._connection)
        except self._database.lost as error:
            self.fault = safe_name(error)
            return False
        return self._whole


def _each(connection: Connection, operations: list[Any]) -> list[Any]:
    return [operation(connection) for operation in operations]
