"""Writes share a transaction and none spoils another."""

import asyncio
import threading
from contextlib import closing

import pytest

from discreet.errors import NotReady
from discreet.service.storage.group_commit import Writer
from discreet.service.storage.locations import open_database


@pytest.fixture
def database(settings):
    made = open_database(settings(begin=False))
    with closing(made.connect()) as connection:
        connection.execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY)")
    return made


@pytest.fixture
def settings(request, tmp_path):
    """Settings on SQLite and on PostgreSQL, without an experiment."""
    from discreet.service.settings import Settings

    def made(*, begin):
        assert not begin
        kind = request.node.callspec.params["kind"]
        name = "plain.db" if kind == "sqlite" else request.getfixturevalue("fresh_schema")
        plan = {
            "n_actions": 2,
            "features": {"kind": "UnitBall", "dimension": 1},
            "budget": {"epsilon": 1.0, "delta": 1e-6},
        }
        document = {"experiment": "test", "database": name, "plan": plan}
        return Settings.from_config(document, tmp_path)

    return made


both = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


def values(database):
    with closing(database.connect()) as connection:
        rows = connection.execute("SELECT value FROM numbers ORDER BY value").fetchall()
    return [row[0] for row in rows]


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


@both
def test_writes_that_wait_are_committed_together_and_answered_in_order(database, kind):  # noqa: ARG001
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


@both
def test_one_that_fails_spoils_no_other(database, kind):  # noqa: ARG001
    insert = Insert()

    async def scenario(writer):
        go = blocked(writer)
        waiting = [writer.write(insert, number) for number in (1, 2, 2, 3)]
        go.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    with closing(Writer(database)) as writer:
        outcomes = asyncio.run(scenario(writer))
    assert [outcomes[0], outcomes[1], outcomes[3]] == [10, 20, 30]
    assert isinstance(outcomes[2], database.lost)
    assert values(database) == [1, 2, 3]


@both
def test_an_operation_that_raises_leaves_nothing(database, kind):  # noqa: ARG001
    def half(connection):
        connection.execute("INSERT INTO numbers VALUES (1)")
        raise ValueError("half way")

    with closing(Writer(database)) as writer, pytest.raises(ValueError, match="half way"):
        writer.run(half)
    assert values(database) == []


@both
def test_what_was_asked_before_the_end_is_done_and_nothing_after(database, kind):  # noqa: ARG001
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
