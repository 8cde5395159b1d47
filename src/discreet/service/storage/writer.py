"""One thread writes: many small writes share a transaction, and are answered after its commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from discreet.errors import NotReady
from discreet.service.event_loop import running_loop
from discreet.service.kill_points import step
from discreet.service.storage.database import Bulk, Connection, Database
from discreet.service.storage.faults import safe_name

T = TypeVar("T")
LARGEST = 256
"""The most writes per transaction: limits how long the first of them waits."""


class _Work(NamedTuple):
    """``bulk`` is None for an operation outside any transaction; ``loop`` for a waiting thread."""

    bulk: Bulk | None
    item: Any
    done: Any
    loop: asyncio.AbstractEventLoop | None


_Answers = list[tuple[_Work, Any, Exception | None]]


class Writer:
    """Group commit: a write is durable when its future is resolved."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.fault: str | None = None
        """The safe name of the error that a commit met, until ``probe`` could write again."""
        self._connection = database.connect()
        self._queue: SimpleQueue[list[_Work] | None] = SimpleQueue()
        self._gathered: list[_Work] = []
        self._asking, self._closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._loop, name="writer", daemon=True)
        self._thread.start()

    def write(self, bulk: Bulk, item: Any) -> asyncio.Future[Any]:
        """The result of ``bulk`` for this item, once it is committed."""
        loop = running_loop()
        done = loop.create_future()
        with self._asking:
            self._check()
            if not self._gathered:  # all writes of this turn of the loop wake the thread once
                loop.call_soon(self._flush)
            self._gathered.append(_Work(bulk, item, done, loop))
        return done

    def run(self, operation: Callable[[Connection], T]) -> T:
        """Run an operation in a transaction, possibly with others; blocks the calling thread."""
        done: Future[T] = Future()
        self._put(_Work(_each, operation, done, None))
        return done.result()

    def probe(self) -> None:
        """Find out whether a row can be stored. Other commits may have had nothing to write."""
        moment = f"UPDATE experiment SET clock = {self._database.later}"
        self.run(lambda connection: connection.execute(moment) and None)
        self.fault = None

    def alone(self, operation: Callable[[Connection], T]) -> T:
        """Run an operation on the writing thread outside any transaction; blocks the caller."""
        done: Future[T] = Future()
        self._put(_Work(None, operation, done, None))
        return done.result()

    def close(self) -> None:
        """Finish all pending writes; refuse new ones."""
        with self._asking:
            self._closed = True
            self._queue.put(self._gathered)
            self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _put(self, work: _Work) -> None:
        with self._asking:
            self._check()
            self._queue.put([work])

    def _check(self) -> None:
        if self._closed:
            raise NotReady("service must be running to write; it has stopped. Start it again.")

    def _flush(self) -> None:
        with self._asking:
            if not self._closed:
                self._queue.put(self._gathered)
                self._gathered = []

    def _loop(self) -> None:
        more: list[_Work] | None = self._queue.get()
        while more is not None:
            asked = more
            more = []
            while more is not None and len(asked) < LARGEST:
                try:
                    more = self._queue.get_nowait()
                except Empty:
                    break
                asked += more or ()
            _answer(self._commit([work for work in asked if work.bulk]))
            _answer([self._outside(work) for work in asked if not work.bulk])
            if more is not None:
                more = self._queue.get()

    def _outside(self, work: _Work) -> tuple[_Work, Any, Exception | None]:
        try:
            return work, work.item(self._connection), None
        except Exception as error:
            return work, None, error

    def _commit(self, works: list[_Work], *, again: bool = True) -> _Answers:
        """One transaction for all; if it fails, one for each, so that one error affects one write.

        After a broken connection nobody knows whether COMMIT succeeded. Then everything is written
        once more: rows that exist already stay as they are.
        """
        if not works or not self._revived():
            return [(work, None, _unreachable()) for work in works]
        try:
            groups: dict[Bulk, list[_Work]] = {}
            for work in works:
                groups.setdefault(work.bulk or _each, []).append(work)
            answers: _Answers = []
            with self._database.transaction(self._connection) as connection:
                # All processes take locks in one order: of people before that of the experiment.
                for bulk, members in sorted(groups.items(), key=_name):
                    results = bulk(connection, [work.item for work in members])
                    answers += [
                        (work, result, None) for work, result in zip(members, results, strict=True)
                    ]
                step("write:before-commit")
            step("write:committed")
            return answers
        except Exception as error:
            if isinstance(error, (*self._database.lost, OSError)):
                self.fault = safe_name(error)
            before = self._connection
            reached = self._revived()
            if reached and again and self._connection is not before:
                return self._commit(works, again=False)
            if reached and len(works) > 1:
                return [answer for work in works for answer in self._commit([work])]
            return [(work, None, error) for work in works]

    def _revived(self) -> bool:
        """Whether the database can be reached again."""
        try:
            self._connection = self._database.revived(self._connection)
        except self._database.lost as error:
            self.fault = safe_name(error)
            return False
        return True


def _name(group: tuple[Bulk, Any]) -> str:
    return getattr(group[0], "__qualname__", "")


def _unreachable() -> Exception:
    return OSError("the database cannot be reached")


def _each(connection: Connection, operations: list[Any]) -> list[Any]:
    return [operation(connection) for operation in operations]


def _answer(answers: _Answers) -> None:
    """Deliver results; each event loop is woken once."""
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
