"""Group commit: shared transactions, one thread for many databases, synchronisation of files."""

import asyncio
import errno
import os
import platform
import sys
import threading
from contextlib import closing, contextmanager

import pytest

from discreet.errors import NotReady
from discreet.service.storage import group_commit, sqlite
from discreet.service.storage.group_commit import CommitThread, Writer
from discreet.service.storage.sqlite import FileSync, Sqlite
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
def test_no_write_is_answered_before_its_file_is_synced(made, monkeypatch, count):
    databases = [made(number) for number in range(count)]
    reached, requested, go = [], threading.Event(), threading.Event()

    def slow(_, files):
        requested.set()
        go.wait()
        reached.extend(os.fstat(file).st_ino for file in files)
        return [None] * len(files)

    monkeypatch.setattr(FileSync, "sync", slow)

    async def scenario(opened):
        waiting = [writer.write(insert, 1) for writer in opened]
        # Committed, and seen by readers: some at least, since those that come later wait.
        while not any(values(each) for each in databases):
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(requested.wait, PATIENCE)
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


def test_after_a_failed_sync_everything_is_written_again(made, monkeypatch):
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


def test_an_unexpected_error_does_not_end_the_thread(made, monkeypatch):
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


TOGETHER = sys.platform == "linux" and platform.machine() in sqlite._NUMBERS


@pytest.fixture
def files(tmp_path):
    opened = [os.open(tmp_path / str(number), os.O_CREAT | os.O_RDWR) for number in range(600)]
    for file in opened:
        os.write(file, b"written")
    yield opened
    for file in opened:
        os.close(file)


@pytest.fixture(params=[True, False], ids=["together", "one by one"])
def disk(request):
    made = FileSync(together=request.param)
    yield made
    made.close()


@pytest.mark.parametrize("count", [0, 1, 2, 256, 257, 600])
def test_every_file_is_answered(disk, files, count):
    for _ in range(2):
        assert disk.sync(files[:count]) == [None] * count


def test_each_file_has_its_own_error(disk, files):
    reads, writes = os.pipe()  # a pipe cannot be synced
    closed = os.dup(files[0])
    os.close(closed)
    found = disk.sync([files[0], reads, files[1], closed, files[2]])
    os.close(reads)
    os.close(writes)
    assert [each and each.errno for each in found] == [None, errno.EINVAL, None, errno.EBADF, None]
    assert disk.sync(files[:3]) == [None] * 3


@pytest.mark.parametrize("machine", [platform.machine(), "pdp11"])
def test_several_files_are_one_call_where_there_is_one(files, monkeypatch, machine):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    disk, alone = FileSync(), []
    monkeypatch.setattr(sqlite, "_to_disk", alone.append)
    assert disk.sync(files[:40]) == [None] * 40
    assert alone == ([] if TOGETHER and machine != "pdp11" else files[:40])
    disk.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, made):
    """A database with a table of numbers, of either kind."""
    if request.param == "sqlite":
        return made("plain")
    postgres = pytest.importorskip("discreet.service.storage.postgres")
    found = postgres.Postgres(request.getfixturevalue("fresh_schema"))
    with closing(found.connect()) as connection:
        connection.execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY)")
    return found


class Insert:
    """A bulk operation that notes how many items came together."""

    def __init__(self):
        self.groups = []

    def __call__(self, connection, items):
        self.groups.append(len(items))
        for item in items:
            connection.execute("INSERT INTO numbers VALUES (?)", (item,))
        return [item * 10 for item in items]


def blocked(writer):
    """Keep the writing thread busy until the returned event is set."""
    begun, go = threading.Event(), threading.Event()

    def wait(_):
        begun.set()
        go.wait()

    threading.Thread(target=writer.alone, args=(wait,)).start()
    begun.wait()
    return go


def test_writes_that_wait_are_committed_together_and_answered_in_order(database):
    insert = Insert()

    async def scenario(writer):
        go = blocked(writer)
        waiting = [writer.write(insert, number) for number in range(20)]
        assert values(database) == []
        go.set()
        assert await asyncio.gather(*waiting) == [number * 10 for number in range(20)]
        assert values(database) == list(range(20))  # durable when answered

    with closing(Writer(database)) as writer:
        asyncio.run(scenario(writer))
    assert insert.groups == [20]


def test_one_that_fails_spoils_no_other(database):
    insert = Insert()

    def half(connection):
        connection.execute("INSERT INTO numbers VALUES (4)")
        raise ValueError("half way")

    async def scenario(writer):
        go = blocked(writer)
        waiting = [writer.write(insert, number) for number in (1, 2, 2, 3)]
        go.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    with closing(Writer(database)) as writer:
        outcomes = asyncio.run(scenario(writer))
        with pytest.raises(ValueError, match="half way"):
            writer.run(half)
    assert [outcomes[0], outcomes[1], outcomes[3]] == [10, 20, 30]
    assert isinstance(outcomes[2], database.lost)
    assert values(database) == [1, 2, 3]


def test_writes_before_the_end_are_done_and_none_after(database):
    writer = Writer(database)
    insert = Insert()

    async def scenario():
        go = blocked(writer)
        done = writer.write(insert, 7)
        closing_ = asyncio.create_task(asyncio.to_thread(writer.close))
        await asyncio.sleep(0.05)
        go.set()
        await closing_
        return await done

    assert asyncio.run(scenario()) == 70
    assert values(database) == [7]
    with pytest.raises(NotReady):
        writer.run(lambda connection: connection)
