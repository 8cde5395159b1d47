"""One thread commits for many databases: nothing is answered early, and none waits for another."""

import asyncio
import errno
import os
import threading
from contextlib import closing, contextmanager

import pytest

from discreet.service.storage import group_commit
from discreet.service.storage.file_sync import FileSync
from discreet.service.storage.group_commit import CommitThread, Writer
from discreet.service.storage.sqlite import Sqlite
from waiting import PATIENCE

FULL, NORMAL = 2, 1
"""What PRAGMA synchronous says."""


@pytest.fixture
def made(tmp_path):
    """Databases with a table of numbers."""

    def one(name):
        database = Sqlite(tmp_path / f"{name}.db")
        with closing(database.connect()) as connection:
            connection.execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY)")
        return database

    return one


@contextmanager
def writers(*databases):
    """A writer for each, and one thread for all."""
    thread = CommitThread()
    opened = [Writer(database, thread) for database in databases]
    try:
        yield opened
    finally:
        for each in opened:
            each.close()
        thread.close()


def insert(connection, items):
    connection.execute("INSERT INTO numbers VALUES " + ", ".join(f"({item})" for item in items))
    return items


def values(database):
    with closing(database.connect()) as connection:
        rows = connection.execute("SELECT value FROM numbers ORDER BY value").fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize("count", [1, 2, 11])
def test_nobody_is_answered_before_their_file_has_reached_the_disk(made, monkeypatch, count):
    databases = [made(number) for number in range(count)]
    reached, asked, go = [], threading.Event(), threading.Event()

    def slow(_, files):
        asked.set()
        go.wait()
        reached.extend(os.fstat(file).st_ino for file in files)
        return [None] * len(files)

    monkeypatch.setattr(FileSync, "sync", slow)

    async def scenario(opened):
        waiting = [writer.write(insert, 1) for writer in opened]
        # Committed, and seen by readers: some at least, since those that come later wait.
        while not any(values(each) for each in databases):
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(asked.wait, PATIENCE)
        early = any(each.done() for each in waiting)
        go.set()
        assert await asyncio.gather(*waiting) == [1] * count
        assert not early

    with writers(*databases) as opened:
        asyncio.run(scenario(opened))
        logs = [os.stat(f"{each.path}-wal").st_ino for each in databases]
    assert sorted(reached) == sorted(logs)


def test_what_others_may_publish_is_durable_before_they_see_it(made):
    def level(connection, *_):
        return connection.execute("PRAGMA synchronous").fetchone()[0]

    def many(connection, items):
        return [level(connection)] * len(items)

    async def scenario(writer):
        return await writer.write(many, 0)

    with writers(made("one")) as (writer,):
        assert asyncio.run(scenario(writer)) == NORMAL
        assert writer.run(level) == FULL  # a release, a mode, a key
        assert asyncio.run(scenario(writer)) == NORMAL


def test_after_a_disk_that_failed_nothing_is_believed_until_all_is_written_anew(made, monkeypatch):
    database, other, well = made("one"), made("other"), FileSync.sync
    erased = []

    def broken(_, files):
        return [OSError(errno.EIO, "input/output error")] * len(files)

    def erase(connection):
        erased.append(connection)
        return Sqlite.erase(database, connection)

    monkeypatch.setattr(database, "erase", erase)

    async def scenario(writer, beside):
        monkeypatch.setattr(FileSync, "sync", broken)
        with pytest.raises(OSError, match="input/output"):
            await writer.write(insert, 1)
        assert writer.fault == "EIO"
        monkeypatch.setattr(FileSync, "sync", well)
        assert not erased
        assert await writer.write(insert, 2) == 2
        assert len(erased) == 1
        assert await writer.write(insert, 3) == 3
        assert len(erased) == 1
        assert await beside.write(insert, 4) == 4
        assert beside.fault is None

    with writers(database, other) as (writer, beside):
        asyncio.run(scenario(writer, beside))
    assert values(database) == [1, 2, 3]  # the first was never acknowledged, and may stay


def test_the_loop_stands_still_while_several_commit_but_not_for_long(made, monkeypatch):
    monkeypatch.setattr(group_commit, "STILL", 0.02)
    databases = [made(number) for number in range(3)]
    committed, go = threading.Event(), threading.Event()

    def slow(connection, items):
        committed.set()
        assert go.wait(PATIENCE)  # until the loop runs again
        return insert(connection, items)

    async def scenario(opened):
        waiting = [writer.write(slow, 1) for writer in opened]
        while not committed.is_set():
            await asyncio.sleep(0)
        go.set()  # nobody else would
        assert await asyncio.gather(*waiting) == [1] * 3

    with writers(*databases) as opened:
        asyncio.run(scenario(opened))


def test_a_database_that_another_program_holds_delays_no_other(made):
    held, free = made("held"), made("free")

    async def scenario(waits, goes):
        with closing(held.connect()) as program:
            program.execute("BEGIN IMMEDIATE")
            waiting = [waits.write(insert, number) for number in (1, 2)]
            assert [await goes.write(insert, number) for number in range(5)] == list(range(5))
            more = waits.write(insert, 3)
            assert await goes.write(insert, 5) == 5
            assert not any(each.done() for each in (*waiting, more))
            program.execute("COMMIT")
        assert await asyncio.gather(*waiting, more) == [1, 2, 3]

    with writers(held, free) as (waits, goes):
        asyncio.run(scenario(waits, goes))
    assert waits.fault is None
    assert values(held) == [1, 2, 3]


def test_patience_with_another_program_ends(made, monkeypatch):
    monkeypatch.setattr(group_commit, "PATIENCE", 0.1)
    held = made("held")

    async def scenario(writer):
        with closing(held.connect()) as program:
            program.execute("BEGIN IMMEDIATE")
            with pytest.raises(held.lost) as caught:
                await writer.write(insert, 1)
            program.execute("COMMIT")
        assert caught.value.sqlite_errorname == writer.fault == "SQLITE_BUSY"
        assert await writer.write(insert, 2) == 2

    with writers(held) as (writer,):
        asyncio.run(scenario(writer))
    assert values(held) == [2]


def test_a_fault_that_nobody_thought_of_ends_no_thread(made, monkeypatch):
    one, other = made("one"), made("other")

    async def scenario(broken, well):
        def revived(_):
            raise RuntimeError("unforeseen")

        monkeypatch.setattr(one, "revived", revived)
        with pytest.raises(RuntimeError, match="unforeseen"):
            await broken.write(insert, 1)
        assert await well.write(insert, 1) == 1

    with writers(one, other) as (broken, well):
        asyncio.run(scenario(broken, well))


def test_what_waits_for_another_program_is_done_before_the_end(made):
    held = made("held")
    program = held.connect()
    program.execute("BEGIN IMMEDIATE")

    async def scenario(writer, thread):
        done = writer.write(insert, 1)
        ended = asyncio.create_task(asyncio.to_thread(writer.close))
        while not thread._held:  # it has tried
            await asyncio.sleep(0.01)
        assert not ended.done()
        program.execute("COMMIT")
        await ended
        await asyncio.to_thread(thread.close)
        return await done

    thread = CommitThread()
    assert asyncio.run(scenario(Writer(held, thread), thread)) == 1
    program.close()
    assert values(held) == [1]
