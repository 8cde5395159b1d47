"""A thread that commits the writes of one database, or of many that share a process.

Decisions of different experiments lie in different files, so each file has a transaction of its
own. What can be shared is the rest: one thread is woken for all of them, one call lets all files
reach the disk, and the event loop is woken once for all answers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from discreet.service.storage.database import PATIENCE, Bulk
from discreet.service.storage.file_sync import FileSync

LARGEST = 256
"""The most writes that are taken at once: limits how long the first of them waits."""
STILL = 0.005
"""Seconds for which an event loop stands still at most, while several databases commit."""
AGAIN = 0.005
"""Seconds between two attempts to write to a database that another program holds."""


class Work(NamedTuple):
    """``bulk`` is None for an operation outside any transaction; ``loop`` for a waiting thread."""

    bulk: Bulk | None
    item: Any
    done: Any
    loop: asyncio.AbstractEventLoop | None


Answers = list[tuple[Work, Any, Exception | None]]


class BusyError(Exception):
    """Another program holds the database; nothing was written."""


class Writer(Protocol):
    """The writes of one database."""

    def commit(self, works: list[Work], *, patient: bool) -> Answers:
        """Do these; ``patient`` if BusyError may be raised, and all of them tried again later."""

    def unsynced(self) -> int | None:
        """The open file that must reach the disk before anybody is answered, if any must."""

    def not_synced(self, answers: Answers, error: OSError) -> Answers:
        """What to answer where that failed."""


class CommitThread:
    """Takes the writes of all its writers, commits them, and answers once they are durable."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Writer, list[Work]] | None] = SimpleQueue()
        self._disk = FileSync()
        self._waiting: dict[Writer, list[Work]] = {}
        self._held: dict[Writer, float] = {}
        """Until when to wait for another program that writes to this database."""
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="writer", daemon=True)
        self._thread.start()

    def put(self, writer: Writer, works: list[Work]) -> None:
        """Commit these; a writer's works are done in the order in which they came."""
        self._queue.put((writer, works))

    def close(self) -> None:
        """End after everything that was put."""
        self._queue.put(None)
        self._thread.join()
        self._disk.close()

    def _loop(self) -> None:
        while not self._closed or self._waiting:
            self._take()
            asked, self._waiting = self._waiting, {}
            with _undisturbed(asked):
                tried = [(each, self._committed(each, works)) for each, works in asked.items()]
            committed = [(writer, answers) for writer, answers in tried if answers is not None]
            deliver(self._durable(committed))

    def _take(self) -> None:
        """Wait for something to do, and take all that is queued."""
        count = 0
        while count < LARGEST:
            try:
                if count:
                    more = self._queue.get_nowait()
                else:
                    more = self._queue.get(timeout=AGAIN if self._held else None)
            except Empty:
                return
            if more is None:
                self._closed = True
                return
            self._waiting.setdefault(more[0], []).extend(more[1])
            count += len(more[1])

    def _committed(self, writer: Writer, works: list[Work]) -> Answers | None:
        """What became of them; None if they must wait for another program."""
        now = time.monotonic()
        until = self._held.pop(writer, now + PATIENCE)
        try:
            return writer.commit(works, patient=now < until)
        except BusyError:  # the others do not wait for it
            self._waiting[writer], self._held[writer] = works, until
            return None
        except Exception as error:  # nor for a fault that nobody thought of
            return [(work, None, error) for work in works]

    def _durable(self, committed: list[tuple[Writer, Answers]]) -> Answers:
        """What to answer, now that it has reached the disk."""
        files = {writer: writer.unsynced() for writer, _ in committed}
        asked = [file for file in files.values() if file is not None]
        errors: dict[int | None, OSError | None] = {}
        errors.update(zip(asked, self._disk.sync(asked), strict=True))
        found: Answers = []
        for writer, answers in committed:
            error = errors.get(files[writer])
            found += answers if error is None else writer.not_synced(answers, error)
        return found


@contextmanager
def _undisturbed(asked: dict[Writer, list[Work]]) -> Iterator[None]:
    """Let the event loop stand still while several databases commit, which takes a millisecond.

    SQLite gives the interpreter up in every call and takes it again. Each time it would wait for a
    turn of the loop, and a commit would take ten times as long. [docs/performance.md, "Load on a
    service"]
    """
    loops = {work.loop for works in asked.values() for work in works if work.loop is not None}
    if len(asked) < 2 or len(loops) != 1:
        yield
        return
    stands, go = threading.Lock(), threading.Lock()
    stands.acquire()
    go.acquire()
    with suppress(RuntimeError):  # the loop is closed
        loops.pop().call_soon_threadsafe(_stand_still, stands, go)
        stands.acquire(timeout=STILL)
    try:
        yield
    finally:
        go.release()


def _stand_still(stands: threading.Lock, go: threading.Lock) -> None:
    stands.release()
    go.acquire(timeout=STILL)


def deliver(answers: Answers) -> None:
    """Hand over results; each event loop is woken once."""
    loops: dict[Any, list[tuple[Any, Any, Exception | None]]] = {}
    for work, result, error in answers:
        if work.loop is None:
            _settle(work.done, result, error)
        else:
            loops.setdefault(work.loop, []).append((work.done, result, error))
    for loop, settled in loops.items():
        try:
            loop.call_soon_threadsafe(_settle_all, settled)
        except RuntimeError:  # the loop is closed: nobody waits
            continue


def _settle_all(settled: list[tuple[Any, Any, Exception | None]]) -> None:
    for done, result, error in settled:
        if not done.done():  # its request may have been cancelled
            _settle(done, result, error)


def _settle(done: Any, result: Any, error: Exception | None) -> None:
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
