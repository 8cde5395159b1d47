"""A request that is sent again counts once, also after its batch is over, for a declared time."""

import asyncio
import os
from contextlib import closing

import numpy as np
import pytest

from discreet.errors import ServiceError
from discreet.service.runtime import fit_process, lifecycle
from discreet.service.runtime.service import Service
from discreet.service.secrets.vault import NAMES, Vault
from discreet.service.settings import Settings
from discreet.service.storage import idempotency, journal
from discreet.service.storage.locations import open_database
from service.conftest import dump, set_back
from service.served import Server
from waiting import until

ANN, OTHERS = [0.61, -0.37], [0.1, 0.2]
"""The context of the one who asks twice, and of everybody else."""
MEMORY = 3600.0


@pytest.fixture
def fitted(monkeypatch):
    """How often Ann's record was in a fit; a list that grows with each release."""
    counts, read = [], fit_process.read_batch

    def spying(connection, plan, *rest):
        batch = read(connection, plan, *rest)
        hers = np.isclose(batch.features[:, :2], plan.features.map([ANN])[0][:2]).all(axis=1)
        counts.append(int((hers & batch.observed.any(axis=1)).sum()))
        return batch

    monkeypatch.setattr(fit_process, "read_batch", spying)
    return counts


async def ask(service, key="ann", context=ANN):
    return await service.decisions.decide("caller", context, idempotency=key)


async def refused(service, key="ann"):
    with pytest.raises(ServiceError) as refusal:
        await ask(service, key)
    assert (refusal.value.status, refusal.value.code) == (409, "idempotency_key_used")


async def fill(service):
    """Others take what is left of the batch, and all answer."""
    while (each := await service.decisions.decide("caller", OTHERS)).stored:
        await service.decisions.observe(each.decision, 0.5)


async def first_batch(service, released):
    """A batch with Ann in it, up to its release."""
    decision = await ask(service)
    assert decision.stored
    assert await ask(service) == decision
    if service.settings.journal == "observe":
        await service.decisions.observe(decision.decision, 0.5)
    await fill(service)
    await released(service)


def later(chosen, seconds):
    """Let time pass: everything that ended did so this much earlier."""
    with closing(open_database(chosen).connect()) as connection:
        connection.execute(f"UPDATE batches SET ended = ended - {seconds}")
        connection.execute(f"UPDATE experiment SET restored = restored - {seconds}")


def rows(chosen, table="names"):
    with closing(open_database(chosen).connect()) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def keys(chosen):
    return Vault(chosen.place(chosen.vault)).batches(NAMES)


SILENT = {"plan": {"missing_loss": 1.0}}


@pytest.mark.parametrize("words", [SILENT, {"journal": "observe"}], ids=["decide", "observe"])
def test_after_the_release_it_is_refused_and_counts_once(settings, play, released, fitted, words):
    async def scenario(service):
        await first_batch(service, released)
        await refused(service)
        await refused(service)
        assert (await service.decisions.decide("another", OTHERS, idempotency="ann")).stored
        await fill(service)
        await refused(service)  # while the second batch waits, too
        await released(service)
        await refused(service)

    play(settings(remember=MEMORY, **words), scenario)
    assert fitted == [1, 0]


def test_it_is_remembered_across_a_restart(settings, play, released, fitted):
    chosen = settings(remember=MEMORY, **SILENT)
    play(chosen, lambda service: first_batch(service, released))
    later(chosen, MEMORY - 60)

    async def again(service):
        await refused(service)
        await fill(service)
        await released(service)

    play(chosen, again)
    assert fitted == [1, 0]


def test_after_the_declared_time_it_is_new_and_nothing_is_left_of_it(
    settings, play, released, fitted
):
    chosen = settings(remember=MEMORY, **SILENT)
    play(chosen, lambda service: first_batch(service, released))
    assert (rows(chosen), rows(chosen, "replies"), keys(chosen)) == (1, 0, [(1, 1)])
    later(chosen, MEMORY)

    async def again(service):
        await service.upkeep.once()
        assert (rows(chosen), keys(chosen)) == (0, [])
        assert not service.state.names._keys  # nor in memory
        assert (await ask(service)).stored
        await fill(service)
        await released(service)

    play(chosen, again)
    assert fitted == [1, 1]


@pytest.mark.parametrize("mode", ["online", "frozen"])
def test_expired_names_are_not_known_even_before_they_are_deleted(settings, play, released, mode):
    chosen = settings(remember=MEMORY, **SILENT)

    async def scenario(service):
        await first_batch(service, released)
        await service.set_mode(mode)
        later(chosen, MEMORY)
        assert (await ask(service)).stored == (mode == "online")

    play(chosen, scenario)


def test_a_large_batch_is_forgotten_in_slices(settings, play, released, monkeypatch):
    monkeypatch.setattr(idempotency, "SLICE", 3)
    monkeypatch.setattr(idempotency, "AT_ONCE", 5)
    chosen = settings(remember=MEMORY, plan={"first_batch": 8})

    async def scenario(service):
        requested = [f"request {number}" for number in range(8)]
        assert all([(await ask(service, each)).stored for each in requested])
        await released(service)
        tries = await asyncio.gather(
            *(ask(service, key) for key in requested), return_exceptions=True
        )
        assert [each.code for each in tries] == ["idempotency_key_used"] * 8
        later(chosen, MEMORY)
        left = []
        for _ in range(3):
            await service.upkeep.once()
            left.append(rows(chosen))
            assert (1, 1) not in keys(chosen)  # it goes first: the rest cannot be read
        return left

    assert play(chosen, scenario) == [5, 2, 0]


def test_a_burned_batch_is_remembered_too(settings, play):
    async def scenario(service):
        await ask(service)
        await service.burn(1)
        await refused(service)
        assert (await service.decisions.decide("caller", OTHERS)).stored

    play(settings(remember=MEMORY, window=60), scenario)


@pytest.mark.parametrize("why", ["frozen", "over"])
def test_it_is_refused_where_no_slot_would_be_taken(settings, play, released, why):
    words = {"horizon": 10} if why == "over" else {}  # one batch is fitted, and then no more

    async def scenario(service):
        await first_batch(service, released)
        if why == "frozen":
            await service.set_mode("frozen")
        await refused(service)
        new = await ask(service, "new")
        assert not new.stored
        assert await ask(service, "new") == new

    play(settings(remember=MEMORY, plan={"missing_loss": 1.0, **words}), scenario)


def test_a_new_mac_key_forgets_nothing_of_batches_that_are_over(settings, play, released):
    """As docs/operations.md has it: what is under way is burned, then the key is replaced."""
    chosen = settings(remember=MEMORY, **SILENT)

    async def scenario(service):
        await first_batch(service, released)
        await ask(service, "burned")
        await service.burn(2)

    play(chosen, scenario)
    (chosen.place(chosen.vault) / "mac.key").write_bytes(os.urandom(32))

    async def again(service):
        await refused(service)
        await refused(service, "burned")

    play(chosen, again)


def test_a_decision_that_took_no_slot_may_take_one_later(settings, play, released, fitted):
    """Once: what was not stored is in no release."""
    chosen = settings(remember=MEMORY, **SILENT)

    async def first(service):
        await fill(service)
        assert not (await ask(service)).stored
        await released(service)
        assert not (await ask(service)).stored  # this process remembers what it said

    async def restarted(service):
        assert (await ask(service)).stored
        await fill(service)
        await released(service)
        await refused(service)

    play(chosen, first)
    play(chosen, restarted)
    assert fitted == [0, 1]


def test_a_refused_request_gives_its_slot_back(settings, play, released):
    async def scenario(service):
        await first_batch(service, released)
        for _ in range(20):
            await refused(service)
        stored = [(await service.decisions.decide("caller", OTHERS)).stored for _ in range(9)]
        assert stored == [True] * 8 + [False]

    play(settings(remember=MEMORY), scenario)


# Several workers


def test_a_worker_behind_a_release_refuses_a_repeated_request(settings, play, released, fitted):
    chosen = settings(remember=MEMORY, **SILENT)
    if not chosen.postgres:
        return  # one process serves a file

    async def scenario(stale):
        async def other(service):
            await first_batch(service, released)

        await asyncio.to_thread(play, chosen, other)
        assert stale.state.serving.newest == 0
        await refused(stale)

    play(chosen, scenario)
    assert fitted == [1]


def test_a_release_between_two_statements_lets_no_request_through(
    settings, play, released, monkeypatch
):
    """The reply is still there when ours is written, and gone when it is looked for."""
    chosen = settings(remember=MEMORY, waiting="pipeline", **SILENT)
    if not chosen.postgres:
        return
    find = journal._replies

    async def scenario(service):
        await ask(service)
        assert all([(await service.decisions.decide("caller", OTHERS)).stored for _ in range(3)])
        other = Service(chosen)
        await other.start(upkeep=False)
        loop = asyncio.get_running_loop()

        def racing(connection, sought):
            monkeypatch.setattr(journal, "_replies", find)
            asyncio.run_coroutine_threadsafe(released(other), loop).result(30)
            return find(connection, sought)

        try:
            monkeypatch.setattr(journal, "_replies", racing)
            await refused(service)
        finally:
            await other.stop()

    play(chosen, scenario)


# Backups


def test_after_a_restore_no_request_of_a_lost_release_counts_again(
    settings, play, released, fitted
):
    """Names since the backup are lost with it, so none with a key takes a slot for a while."""
    chosen = settings(remember=MEMORY, **SILENT)
    kept = []

    async def before(service):
        await ask(service, "early", OTHERS)
        kept.append(await asyncio.to_thread(dump, chosen))
        await first_batch(service, released)  # Ann is in the release that will be lost

    play(chosen, before)
    set_back(chosen, kept[0])
    assert lifecycle.restore(chosen).burned == [1]

    async def after(service):
        await refused(service, "early")
        assert not (await ask(service)).stored
        assert "restored" in (await service.status())["text"]
        await fill(service)  # requests without a key
        await released(service)

    play(chosen, after)
    assert fitted == [1, 0]
    later(chosen, MEMORY)

    async def in_time(service):
        assert (await ask(service)).stored
        assert "restored" not in (await service.status())["text"]
        await service.upkeep.once()
        assert (await ask(service, "early")).stored

    play(chosen, in_time)


# Power cuts


@pytest.mark.parametrize("step", ["names:key-destroyed", "names:before-commit"])
def test_a_purge_that_is_cut_short_goes_on(written, server, step):
    folder, key = written(remember=MEMORY)
    chosen = Settings.read(folder / "experiment.toml")
    running = server(folder)
    for number in range(4):
        headers = {"Idempotency-Key": str(number)}
        assert running.call("POST", "/v1/decide", {"context": ANN}, key, headers)[0] == 200
    running.windows_end()
    until(lambda: rows(chosen) == 4)
    status, answer, _ = running.call("POST", "/v1/decide", {"context": ANN}, key, headers)
    assert (status, answer["error"]["code"]) == (409, "idempotency_key_used")
    running.stop()
    later(chosen, MEMORY)
    cut = Server(folder, environment={"DISCREET_STEP": step})
    assert cut.ended() == -9
    assert rows(chosen) == 4
    server(folder)
    until(lambda: (rows(chosen), keys(chosen)) == (0, [(1, 2)]))
