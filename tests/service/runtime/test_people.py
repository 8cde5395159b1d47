"""People who return: at most k records in each of at most M batches, whoever asks and restarts."""

import asyncio
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from discreet.audit.finding import HOLDS
from discreet.audit.people import installed, one_row_each
from discreet.audit.subjects import DEFAULT_PLAN, subjects
from discreet.batches.users import PeopleCounts
from discreet.errors import InvalidInput, LossConflict
from discreet.privacy.budget import Participation
from discreet.service.runtime import fit_process
from discreet.service.runtime.service import Service
from discreet.service.secrets.sealing import Sealer
from discreet.service.storage.database import create_tables
from discreet.service.storage.journal import OwnedSlot, People, slots_of_people
from discreet.service.storage.locations import open_database
from discreet.service.storage.sealed_batch import read_batch
from discreet.service.storage.sqlite import Sqlite
from service.conftest import running

HERE = [0.3, -0.2]


def users(batches=2, records=1, **rest):
    often = {"unit": "user", "batches_per_user": batches, "records_per_batch": records}
    return often | {"waiting": "pipeline", "window": 60.0} | rest


async def learned(service):
    """Which rows of each batch under way a fit would learn from, the oldest batch first."""
    state = service.state
    await state.refresh()

    def read(connection, batch):
        sealer = Sealer(state.vault.batch(batch.epoch, batch.id), batch.epoch, batch.id)
        place = (batch.epoch, batch.id, batch.size)
        return read_batch(connection, service.settings.plan, sealer, *place)

    found = [await state.read(partial(read, batch=each)) for each in state.live]
    return [each.observed.any(axis=1).tolist() for each in found]


async def ask(service, *people, loss=0.5, **options):
    """Decide for these people, one after the other, and answer."""
    made = [await service.decisions.decide("caller", HERE, user=each, **options) for each in people]
    for each in made:
        assert each.stored
        if loss is not None:
            await service.decisions.observe(each.decision, loss)
    return made


def registry(settings):
    """What is on the disk, read by somebody else."""
    with closing(open_database(settings).connect()) as connection:
        rows = connection.execute("SELECT person, entered, last, records FROM people").fetchall()
    return {bytes(row[0]): tuple(row[1:]) for row in rows}


def test_the_audit_uses_the_tables_of_the_service():
    assert installed()
    assert one_row_each(subjects([DEFAULT_PLAN], [2.0])[0]).verdict == HOLDS


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_k_records_in_each_of_m_batches(settings, play, journal):
    async def scenario(service):
        await ask(service, "ann", "ann", "bob", "ann")
        await ask(service, *["ann"] * 4, *["cid"] * 4)
        await ask(service, "ann", "bob", *[f"person {n}" for n in range(14)])
        return await learned(service)

    one, two, three = play(settings(**users(records=2, journal=journal)), scenario)
    assert one == [True, True, True, False]
    assert two == [True, True, False, False] * 2
    assert three == [False] + [True] * 15  # her third batch, his second


@pytest.mark.parametrize("database", ["discreet.db"])
def test_the_release_learns_of_slots_that_count_alone(settings, play, released, monkeypatch):
    seen, honest = [], fit_process.release_batch

    def spy(plan, noise, batch, *rest):
        seen.append(batch.observed.any(axis=1).tolist())
        return honest(plan, noise, batch, *rest)

    monkeypatch.setattr(fit_process, "release_batch", spy)

    async def scenario(service):
        for people in ("aab", "aabbccd"):
            await ask(service, *people, "e")
            await released(service)
        return await service.ledger()

    ledger = play(settings(**users(1, waiting="gap")), scenario)
    assert seen == [[True, False, True, True], [False] * 4 + [True, False, True, False]]
    assert ledger["participation"] == {"batches": 1, "records": 1}
    assert (ledger["spent"]["unit"], len(ledger["entries"][0]["charges"])) == ("user", 2)
    assert float(ledger["spent"]["epsilon"]) <= 1.0


@pytest.mark.parametrize("database", ["discreet.db"])
def test_k_is_counted_by_batch_and_not_by_day(settings, play):
    """One batch for a person, with two records: the second batch of the same day is void."""

    async def scenario(service):
        await ask(service, "ann", *"xyz", "ann", *"xyz")
        return await learned(service)

    seen = play(settings(**users(1, 2)), scenario)
    assert [each[0] for each in seen] == [True, False]


@pytest.mark.parametrize("database", ["discreet.db"])
def test_a_new_batch_allows_new_records(settings, play):
    async def scenario(service):
        await ask(service, *["ann"] * 12)
        return await learned(service)

    assert [sum(each) for each in play(settings(**users(2, 2)), scenario)] == [2, 2]


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_a_slot_counts_whether_or_not_it_is_answered(settings, play, journal):
    async def scenario(service):
        await ask(service, *["ann"] * 4, loss=None)
        await ask(service, "ann", *"tuvwxyz")
        return await learned(service)

    one, two = play(settings(**users(1, journal=journal)), scenario)
    assert one == [False] * 4
    assert two == [False] + [True] * 7, "silence was free"


def test_a_missing_loss_counts_within_the_bound_only(settings, play):
    async def scenario(service):
        await ask(service, *["ann"] * 4, loss=None)
        return await learned(service)

    chosen = settings(**users(), plan={"missing_loss": 1.0})
    assert play(chosen, scenario) == [[True, False, False, False]]


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_counts_outlive_the_process(settings, play, journal):
    chosen = settings(**users(1, journal=journal))

    async def again(service):
        await ask(service, "ann", "bob", "cid")
        return await learned(service)

    play(chosen, lambda service: ask(service, "ann"))
    seen = play(chosen, again)
    assert sum(map(sum, seen)) == 3, "somebody was new again after a restart"


@pytest.mark.parametrize("kind", ["decide", "observe", "ticket"])
def test_the_count_is_on_the_disk_when_the_reply_is_there(settings, play, kind):
    chosen = settings(**users(journal=kind if kind != "ticket" else "decide"))

    async def scenario(service):
        if kind == "ticket":
            await service.decisions.ticket("ann")
        else:
            await service.decisions.decide("caller", HERE, user="ann")
        # In this very turn of the loop: nothing that was put off can have happened.
        return registry(chosen), service.decisions.owners.owner("ann").person

    found, person = play(chosen, scenario)
    assert found == {person: (1, 1 << 32 | 1, 1)}


def test_workers_share_the_counts(settings):
    """Two workers of one database hand out slots of their own leases to the same person."""
    if not (chosen := settings(**users(1), lease=2)).postgres:
        return  # a file is served by one process

    async def scenario():
        async with running(chosen, workers=2) as one, running(chosen, workers=2) as other:
            requested = [
                each.decisions.decide("caller", HERE, user=name)
                for each in (one, other)
                for name in ("ann", "bob")
            ]
            for reply in await asyncio.gather(*requested):
                await one.decisions.observe(reply.decision, 0.5)
            return await learned(one)

    assert sum(map(sum, asyncio.run(scenario()))) == 2


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_replies_are_the_same_for_void_slots(settings, play, journal):
    async def scenario(service):
        reported = []
        for name in ("ann", "ann", "bob"):
            key = {"idempotency": f"request {len(reported)}"}
            reply = await service.decisions.decide("caller", HERE, user=name, **key)
            again = await service.decisions.decide("caller", HERE, user=name, **key)
            assert again == reply
            received = [await service.decisions.observe(reply.decision, 0.25) for _ in range(2)]
            with pytest.raises(LossConflict) as conflict:
                await service.decisions.observe(reply.decision, 0.75)
            reported.append(
                (reply.stored, reply.release, len(reply.decision), received, str(conflict))
            )
        return reported, await service.decisions.activate(reply.decision)

    reported, _ = play(settings(**users(1, journal=journal), plan={"first_batch": 64}), scenario)
    assert reported[0][:4] == reported[1][:4] == reported[2][:4]
    assert reported[0][0] is True


def test_a_request_that_is_sent_again_counts_once(settings, play):
    async def scenario(service):
        for _ in range(3):
            await ask(service, "ann", idempotency="the same")
        await ask(service, "ann", "ann", "bob")
        return await learned(service)

    assert play(settings(**users(1, 2)), scenario) == [[True, True, False, True]]


def test_a_ticket_counts_when_it_is_issued(settings, play):
    async def scenario(service):
        decisions = service.decisions
        tickets = [await decisions.ticket(name) for name in ("ann", "ann", "bob", "cid")]
        assert len({(each.stored, each.release, len(each.ticket)) for each in tickets}) == 1
        for each in tickets[:3]:
            await decisions.observe(each.ticket, 0.5, context=HERE, action=1)
        with pytest.raises(InvalidInput, match="user must be given"):
            await decisions.ticket()
        return await learned(service)

    chosen = settings(**users(1))
    assert play(chosen, scenario) == [[True, False, True, False]]
    assert sorted(each[0] for each in registry(chosen).values()) == [1, 1, 1]


def test_a_burned_batch_counts(settings, play):
    async def scenario(service):
        await ask(service, "ann")
        await service.burn(1)
        await ask(service, "ann", "bob", "cid", "dan")
        return await learned(service)

    assert play(settings(**users(1)), scenario) == [[False, True, True, True]]


@pytest.mark.parametrize("before", [(), ("ann",)])
def test_erased_means_used_up(settings, play, before):
    async def scenario(service):
        await ask(service, *before)
        await service.erase("ann")
        await ask(service, *["ann"] * (12 - len(before)))
        return await learned(service)

    seen = play(settings(**users(5, 3)), scenario)
    # What waited in a batch stays there until its release.
    assert [sum(each) for each in seen] == [len(before), 0]


BAD = [None, "ann"]


@pytest.mark.parametrize("user", BAD)
def test_a_user_who_is_missing_or_not_wanted(settings, play, user):
    """Nothing is stored, nothing counted, no slot is taken."""
    chosen = settings(**users()) if user is None else settings()

    async def scenario(service):
        with pytest.raises(InvalidInput, match="user must be given with the unit"):
            await service.decisions.decide("caller", HERE, user=user)
        with pytest.raises(InvalidInput, match="user must be given with the unit"):
            await service.decisions.ticket(user)
        if user is not None:
            with pytest.raises(InvalidInput, match="left out with the unit"):
                await service.erase(user)
        assert (await service.status())["batches"] == []

    play(chosen, scenario)
    assert registry(chosen) == {}


def test_the_status_has_the_bound_on_participation(settings, play):
    reported = play(settings(**users(3, 2)), Service.status)
    assert reported["participation"] == {
        "batches": 3,
        "records": 2,
        "missed": 0,
        "text": "at most 2 records in each of at most 3 batches",
    }
    assert "One user counts with at most 2 records in each of at most 3 batches" in reported["text"]
    assert "entered" not in reported["text"]


# The table against the rule that it shares with a learner.


def memory():
    database = Sqlite(Path())
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("discreet_now", 0, lambda: 0.0)
    create_tables(database, connection)
    connection.execute("INSERT INTO experiment VALUES (1, '', '', 1, '', 0, 0, 0, 0)")
    return database, connection


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.lists(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=6), max_size=6),
)
@effort(max_examples=60, deadline=None)
def test_the_table_is_the_rule(batches, records, groups):
    """Whatever shares a transaction, and with batches out of order: counted twice by hand."""
    often, (database, connection) = Participation(batches, records), memory()
    table, rule, expected, slots = People(database, often), PeopleCounts(often), {}, {}
    with closing(connection):
        for group in groups:
            handed = []
            for batch, who in group:
                slot = slots[batch] = slots.get(batch, -1) + 1
                handed.append(OwnedSlot(1, batch, slot, b"%d" % who))
                expected[batch, slot] = bool(rule.hand_out([who], batch)[0]), who
            table.record_slots(connection, handed)
            table.record_slots(connection, handed)  # after a COMMIT whose answer was lost
        for batch in slots:
            counted = {slot for (at, slot), (counts, _) in expected.items() if at == batch * counts}
            assert slots_of_people(connection, "counts", 1, batch) == counted
    entered = {}
    for (batch, _), (counts, who) in expected.items():
        if counts:
            entered.setdefault(who, []).append(batch)
    for each in entered.values():
        assert len(set(each)) <= batches
        assert max(map(each.count, each)) <= records
