"""A public clock ends batches of the service: slots and time count, never who answered."""

import asyncio
import math
from contextlib import closing

import pytest

from discreet.service.runtime import fit_process, requests
from discreet.service.storage.locations import open_database
from service.conftest import running, time_passes

WEEK = 7 * 86_400.0
CONTEXT = [0.5, 0.5]
ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""What one database shows: the statements are those of the other tests."""


@pytest.fixture(autouse=True)
def slow_traffic(monkeypatch):
    """Requests come so rarely that a worker leases one slot at a time."""
    monkeypatch.setattr(requests, "LASTS", -1.0)


@pytest.fixture
def burst(monkeypatch):
    """``await burst(service)``: requests so fast that a worker leases more than it uses."""

    async def made(service):
        with monkeypatch.context() as patched:
            patched.setattr(requests, "LASTS", math.inf)
            await decide(service, 3)
        assert len(service.decisions._slots._lease.free) == 3  # leases of 2 and of 4 slots
        return 6

    return made


@pytest.fixture
def weekly(settings):
    """``weekly(…)``: an experiment whose batches end after a week at the latest."""

    def made(plan=None, **changes):
        words = {"close_every": "7d", "first_batch": 64, "growth": 2.0} | (plan or {})
        return settings(plan=words, **{"waiting": "pipeline", "window": 3600.0} | changes)

    return made


def run_sql(settings, sql, *values):
    with closing(open_database(settings).connect()) as connection:
        rows = connection.execute(sql, values)
        return rows.fetchall() if sql.startswith("SELECT") else []


def batches(settings):
    """Batch, slots taken, slots and state."""
    rows = run_sql(settings, "SELECT id, taken, size, state FROM batches ORDER BY id")
    return [tuple(row) for row in rows]


async def decide(service, count=1):
    return [await service.decisions.decide("caller", CONTEXT) for _ in range(count)]


def test_upkeep_ends_a_batch_without_requests_and_releases_it(weekly, play):
    chosen = weekly()

    async def scenario(service):
        await decide(service, 3)
        time_passes(chosen, WEEK - 60)
        assert not await service.upkeep.once()
        assert batches(chosen) == [(1, 3, 64, "open")]
        time_passes(chosen, 60)
        await service.upkeep.once()
        assert batches(chosen) == [(1, 3, 64, "sealed")]
        time_passes(chosen, 3600)
        assert await service.upkeep.once()
        latest = service.state.serving.at(service.state.serving.newest).latest
        assert (latest.number, latest.records) == (1, 3)
        await decide(service)
        assert batches(chosen)[1] == (2, 1, 128, "open")  # its place in the schedule is as before

    play(chosen, scenario)


def test_the_next_decision_after_the_tick_is_in_the_next_batch(weekly, play):
    chosen = weekly()

    async def scenario(service):
        await decide(service, 2)
        time_passes(chosen, WEEK)
        assert (await decide(service))[0].stored
        assert batches(chosen) == [(1, 2, 64, "sealed"), (2, 1, 128, "open")]

    play(chosen, scenario)


def test_leased_slots_are_taken_and_not_assigned_after_the_clock(weekly, play, burst):
    """A burst leases more than it uses: the rest counts as taken, is void, and stays unused."""
    chosen = weekly()

    async def scenario(service):
        taken = await burst(service)
        time_passes(chosen, WEEK)
        await service.upkeep.once()
        assert batches(chosen) == [(1, taken, 64, "sealed")]
        await decide(service)
        assert batches(chosen)[1][:2] == (2, 1)
        time_passes(chosen, 3600)
        assert await service.upkeep.once()
        assert service.state.serving.at(service.state.serving.newest).latest.records == taken

    play(chosen, scenario)


def test_a_slot_that_another_process_closed_is_filled_or_fails_cleanly(weekly, play, burst):
    """Until its worker hears of the seal, a leased slot is filled: n counts it. After the window
    the decision goes to the next batch, and the answer says so."""
    chosen = weekly()

    async def scenario(service):
        taken = await burst(service)
        time_passes(chosen, WEEK)
        await service.state.write(service.state.slots.seal_by_clock)  # no refresh
        assert (await decide(service))[0].stored
        assert batches(chosen) == [(1, taken, 64, "sealed")]
        time_passes(chosen, 3600)
        late = (await decide(service))[0]
        assert late.stored
        assert batches(chosen)[1][:2] == (2, 1)
        assert await service.decisions.observe(late.decision, 0.5)

    play(chosen, scenario)


@pytest.mark.parametrize("missing", [None, 1.0])
def test_untaken_and_unused_slots_have_no_loss(weekly, play, missing, monkeypatch):
    fitted, honest = [], fit_process.read_batch

    def read_batch(*words):
        fitted.append(honest(*words))
        return fitted[-1]

    monkeypatch.setattr(fit_process, "read_batch", read_batch)
    chosen = weekly({} if missing is None else {"missing_loss": missing})

    async def scenario(service):
        first, _ = await decide(service, 2)
        await service.decisions._slots.take()  # a slot that no request uses
        await service.decisions.observe(first.decision, 0.5)
        time_passes(chosen, WEEK)
        await service.upkeep.once()
        time_passes(chosen, 3600)
        assert await service.upkeep.once()

    play(chosen, scenario)
    (batch,) = fitted
    assert batch.records == 3
    received = batch.losses[batch.observed].tolist()
    assert sorted(received) == ([0.5] if missing is None else [0.5, 1.0])


def test_an_empty_batch_goes_on_to_the_next_tick(weekly, play):
    """A batch opens with its first slot, so none is empty; if one were, nothing is released."""
    chosen = weekly()

    async def scenario(service):
        await decide(service)
        run_sql(chosen, "UPDATE batches SET taken = 0")
        (before,) = run_sql(chosen, "SELECT opened FROM batches")
        time_passes(chosen, 2.5 * WEEK)
        for _ in range(2):
            assert not await service.upkeep.once()
        assert batches(chosen) == [(1, 0, 64, "open")]
        (after,) = run_sql(chosen, "SELECT opened FROM batches")
        assert after[0] - before[0] == pytest.approx(-0.5 * WEEK, abs=1e-3)

    play(chosen, scenario)


def history(settings, answers):
    """What is public of three weeks in which people answer, or do not."""

    async def run():
        seen = []
        async with running(settings) as service:
            for count in (3, 2, 1):
                for made in await decide(service, count):
                    if answers:
                        await service.decisions.observe(made.decision, 1.0)
                time_passes(settings, WEEK)
                await service.upkeep.once()
                seen.append(batches(settings))
        return seen

    return asyncio.run(run())


@pytest.mark.parametrize("answers", [True, False])
def test_answers_move_no_slot_and_no_close(weekly, answers):
    chosen = weekly(window=300 * 86_400.0)
    sizes = [(1, 3, 64, "sealed"), (2, 2, 128, "sealed"), (3, 1, 256, "sealed")]
    assert history(chosen, answers) == [sizes[:1], sizes[:2], sizes]


def test_the_clock_of_the_experiment_never_goes_back(weekly, play):
    """A moment that was seen stays: a batch that opens later does not close early."""
    chosen, ahead = weekly(), 10 * WEEK

    async def scenario(service):
        run_sql(chosen, "UPDATE experiment SET clock = clock + ?", ahead)
        (clock,) = run_sql(chosen, "SELECT clock FROM experiment")
        await decide(service)
        assert run_sql(chosen, "SELECT opened FROM batches") == [clock]
        assert run_sql(chosen, "SELECT clock FROM experiment") == [clock]
        await service.upkeep.once()
        assert batches(chosen)[0][3] == "open"

    play(chosen, scenario)


@ON_SQLITE
def test_the_clock_ticks_while_the_experiment_is_frozen(weekly, play):
    chosen = weekly()

    async def scenario(service):
        await decide(service)
        await service.set_mode("frozen")
        time_passes(chosen, WEEK)
        await service.upkeep.once()
        assert batches(chosen) == [(1, 1, 64, "sealed")]

    play(chosen, scenario)


@ON_SQLITE
def test_the_status_has_the_time_at_which_a_batch_closes(weekly, play):
    chosen = weekly(window=300 * 86_400.0)

    async def scenario(service):
        await decide(service)
        time_passes(chosen, 5 * 86_400.0)
        status = await service.status()
        (batch,) = status["batches"]
        assert status["close_every"] == WEEK
        assert batch["ticks"] == pytest.approx(batch["opened"] + WEEK)
        assert "1 of 64 decisions so far; it closes in 48 h, full or not." in status["text"]
        time_passes(chosen, 2 * 86_400.0)
        await service.upkeep.once()
        status = await service.status()
        assert status["batches"][0]["ticks"] is None
        assert "Batch 1 is closed at its time limit and waits for losses" in status["text"]
        await decide(service)
        time_passes(chosen, WEEK)
        await service.upkeep.once()
        text = (await service.status())["text"]
        assert "2 batches, 1 to 2, are closed and wait" in text

    play(chosen, scenario)
