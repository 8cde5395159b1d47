"""COMMIT happens and its answer does not come: nothing is lost, nothing is made twice."""

import asyncio
from contextlib import suppress

import pytest

from discreet.design.schedule import Schedule
from discreet.service.runtime import release_transaction
from discreet.service.runtime.service import Service
from discreet.service.storage import document_table, sqlite
from service.attack.harness import context, without_keys
from service.conftest import time_passes

sqlite3, psycopg = sqlite.sqlite3, pytest.importorskip("psycopg")


class Lossy:
    """A connection of which some answers to COMMIT are lost; a server's is broken then."""

    def __init__(self, connection, fate):
        self._connection, self._fate = connection, fate
        self.close = connection.close

    def execute(self, sql, parameters=()):
        answer = self._connection.execute(sql, parameters)
        if sql == "COMMIT" and self._fate.strikes():
            if hasattr(self._connection, "inner"):
                self._connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            raise sqlite3.OperationalError("disk I/O error")
        return answer


class Fate:
    """Whether the next answer is lost."""

    armed, losses = False, 0

    def strikes(self):
        struck, self.armed = self.armed, False
        self.losses += struck
        return struck


def unreliable(service, fate, monkeypatch):
    database = service.state.database
    honest_connect, honest_revived = database.connect, database.revived
    for name in ("connect", "connect_to_write"):
        monkeypatch.setattr(database, name, lambda: Lossy(honest_connect(), fate))

    def revived(connection):
        inner = connection._connection
        again = honest_revived(inner)
        return connection if again is inner else Lossy(again, fate)

    monkeypatch.setattr(database, "revived", revived)


async def release(service):
    """One batch to its release, and a look whether another one is made."""
    before = len(released(service))
    for number in range(service.settings.plan.schedule.length(before + 1)):
        decision = await service.decisions.decide("caller", context(number))
        assert decision.stored
        await service.decisions.observe(decision.decision, 0.5)
    time_passes(service.settings, service.settings.window)
    for _ in range(10):
        with suppress(*service.state.database.lost):  # as the loop of the service does
            await service.upkeep.once()
        if len(released(service)) > before:
            break
    with suppress(*service.state.database.lost):
        await service.upkeep.once()
    assert len(released(service)) == before + 1, "a release was lost or doubled"


def released(service):
    return service.state.serving.at(service.state.serving.newest).items


def play(settings, monkeypatch, batches):
    """Releases, of each of which the first COMMIT is not answered."""
    fate, honest, struck = Fate(), release_transaction.Publisher._write, set()

    def write(self, connection, batch, fitted):
        made = honest(self, connection, batch, fitted)
        fate.armed = made and batch.id not in struck
        struck.add(batch.id)
        return made

    async def run():
        service = Service(settings)
        unreliable(service, fate, monkeypatch)
        await service.start(upkeep=False)
        try:
            for _ in range(batches):
                await release(service)
                assert service.state.vault.batches() == [], "the key of a batch outlived it"
        finally:
            await service.stop()

    with monkeypatch.context() as patched:
        patched.setattr(release_transaction.Publisher, "_write", write)
        asyncio.run(run())
    return fate.losses


WORDS = {"first_batch": 2}


def test_no_second_release(begun, monkeypatch):
    assert play(begun(**WORDS), monkeypatch, 4) == 4


@pytest.mark.long
def test_no_second_release_50_times(begun, monkeypatch):
    losses = sum(play(begun(f"experiment-{k}", **WORDS), monkeypatch, 5) for k in range(10))
    assert losses == 50


def test_a_second_release_is_noticed(begun, monkeypatch):
    settings = begun(**WORDS)
    without_keys(settings)
    monkeypatch.setattr(release_transaction, "finish", lambda *_: None)
    monkeypatch.setattr(Schedule, "allows", lambda *_: True)  # the chain would refuse it too
    honest, charged = document_table.charge, []

    def charge(*given):
        charged.append(given)
        return honest(*given)

    # The ledger would refuse it too, were it not another part after each charge.
    monkeypatch.setattr(document_table, "charge", charge)
    monkeypatch.setattr(document_table, "part", lambda *_: f"batch {len(charged)}")
    with pytest.raises(AssertionError, match="doubled"):
        play(settings, monkeypatch, 1)
