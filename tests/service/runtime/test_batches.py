"""Batches under way: slots, leases, policy, window and order of release."""

import asyncio

import pytest

from discreet.service.runtime import fit_process
from discreet.service.runtime import upkeep as upkeep_module
from discreet.service.runtime.requests import LeasedSlots
from discreet.service.runtime.service import Service
from discreet.service.storage.batches import SlotRequest
from service.conftest import windows_end
from waiting import PATIENCE

HERE = [0.3, -0.2]
PIPELINE = {"waiting": "pipeline", "plan": {"growth": 1.1}}


def sizes(settings, count):
    return [settings.plan.schedule.length(number) for number in range(1, count + 1)]


async def fill(service, batches, **words):
    """Take every slot of the next batches; answer every second decision."""
    first = 1 + len(await states(service))
    made = []
    for size in sizes(service.settings, first + batches - 1)[first - 1 :]:
        for _ in range(size):
            made.append(await service.decisions.decide("caller", HERE, **words))
            if len(made) % 2:
                await service.decisions.observe(made[-1].decision, 0.5)
    await service.state.refresh()
    return made


async def states(service):
    """The state of every batch, and the document that decides it."""
    rows = "SELECT id, state, release FROM batches ORDER BY epoch, id"
    found = await service.state.read(lambda c: c.execute(rows).fetchall())
    return {id: (state, release) for id, state, release in found}


async def release_all(service):
    """Everything that is under way, full and due."""
    while any(batch.state == "sealed" for batch in service.state.live):
        await service.upkeep.once()
        await asyncio.sleep(0.01)
    return service.state.serving.chain.deciding


def test_ten_overdue_batches_are_released_one_by_one_after_a_restart(settings, play, monkeypatch):
    chosen, fitted, honest = settings(**PIPELINE), [], fit_process.release_batch

    def spy(plan, noise, rows, released, ledger, part):
        fitted.append((len(released.items), len(rows.features), len(ledger.entries)))
        return honest(plan, noise, rows, released, ledger, part)

    async def before(service):
        made = await fill(service, 10)
        assert all(each.stored and each.release == 0 for each in made)
        await windows_end(service)

    async def after(service):
        found = await states(service)
        assert set(found.values()) == {("sealed", 0)}
        assert "10 batches, 1 to 10, are full" in (await service.status())["text"]
        steps = [await service.upkeep.once() for _ in range(11)]
        assert steps == [True] * 10 + [False], "one release a step"
        released = service.state.serving.chain.deciding
        assert [each.records for each in released.items] == sizes(chosen, 10)
        assert set((await states(service)).values()) == {("released", 0)}
        assert service.state.vault.batches() == []
        assert len((await service.state.ledger()).entries) == 10

    play(chosen, before)
    monkeypatch.setattr(fit_process, "release_batch", spy)
    play(chosen, after)
    expected = [(number, size, number) for number, size in enumerate(sizes(chosen, 10))]
    assert fitted == expected, "each is fitted on all releases before it"


def test_a_running_service_does_not_pause_between_overdue_batches(settings, play, monkeypatch):
    """Else a backlog would grow with every batch that fills faster than the pause."""
    chosen = settings(**PIPELINE)
    rests = []

    async def rest():
        rests.append(1)

    async def scenario(service):
        await fill(service, 4)
        await windows_end(service)
        upkeep, done = service.upkeep, []
        monkeypatch.setattr(upkeep, "_rest", rest)

        async def duty():
            done.append((await upkeep.once(), len(rests)))
            if len(done) == 5:
                upkeep._stopping.set()
            return done[-1][0]

        await upkeep._repeat(duty)
        assert done == [(True, 0)] * 4 + [(False, 0)]
        assert len(rests) == 1

    play(chosen, scenario)


def test_a_service_that_stops_does_not_wait_for_its_next_look(settings, play, monkeypatch):
    monkeypatch.setattr(upkeep_module, "TICK", 1e6)

    async def scenario(service):
        upkeep, rests = service.upkeep, []
        honest = upkeep._rest

        async def rest():
            rests.append(1)
            await honest()

        monkeypatch.setattr(upkeep, "_rest", rest)
        upkeep.start()
        while len(rests) < len(upkeep._tasks):  # until all duties are done, and rest
            await asyncio.sleep(0.01)
        await asyncio.wait_for(upkeep.stop(), PATIENCE)

    play(settings(), scenario)


def test_a_batch_keeps_its_policy_while_others_are_released(settings, play, released):
    async def scenario(service):
        await fill(service, 1)
        begun = await service.decisions.decide("caller", HERE)  # opens batch 2
        await released(service)
        rest = [await service.decisions.decide("caller", HERE) for _ in range(4)]
        assert {each.release for each in [begun, *rest]} == {0}
        assert (await service.decisions.decide("caller", HERE)).release == 1
        assert await states(service) == {1: ("released", 0), 2: ("sealed", 0), 3: ("open", 1)}

    play(settings(**PIPELINE), scenario)


def test_slots_of_a_lease_stay_in_their_batch_and_end_with_it(settings, play, released):
    """Another worker fills the batch of our lease and opens the next ones."""

    async def other(service):
        wanted = SlotRequest(99, 99)
        return await service.state.writer.write(service.state.slots.lease, wanted)

    async def scenario(service):
        lease = service.decisions._slots
        await service.decisions.decide("caller", HERE)
        kept = len(lease._lease.free)
        assert kept > 0
        assert (await other(service)).batch == 1
        assert (await other(service)).batch == 2
        await service.state.refresh()
        ours = await service.decisions.decide("caller", HERE)
        assert (ours.stored, ours.release, len(lease._lease.free)) == (True, 0, kept - 1)
        assert (await states(service)).keys() == {1, 2}, "our slot was in a sealed batch"
        await released(service)
        moved = await service.decisions.decide("caller", HERE)
        assert (moved.stored, moved.release) == (True, 1)
        assert lease._lease.batch == 3, "what was left of the lease is void"

    play(settings(lease=2, **{**PIPELINE, "plan": {"first_batch": 32}}), scenario)


def test_one_of_many_is_burned(settings, play):
    async def scenario(service):
        made = await fill(service, 4)
        await service.burn(2)
        first, _, third, fourth = sizes(service.settings, 4)
        # An answer after the burn reaches its own slot, in another batch.
        assert await service.decisions.observe(made[-1].decision, 0.25)
        await windows_end(service)
        released = await release_all(service)
        assert [each.records for each in released.items] == [first, third, fourth]
        kinds = [link.kind for link in service.state.serving.chain.links]
        assert kinds == ["genesis", "burn", *["release"] * 3]
        assert len((await service.state.ledger()).entries) == 3
        await service.decisions.decide("caller", HERE)
        [opened] = (await service.status())["batches"]
        assert (opened["batch"], opened["slots"]) == (5, fourth), "its place is free"

    play(settings(**PIPELINE), scenario)


def test_what_waits_is_released_while_the_experiment_is_frozen(settings, play):
    async def scenario(service):
        made = await fill(service, 3)
        await service.set_mode("frozen")
        assert not (await service.decisions.decide("caller", HERE)).stored
        assert await service.decisions.observe(made[-2].decision, 0.25)
        await windows_end(service)
        assert len((await release_all(service)).items) == 3
        await service.set_mode("online")
        again = await service.decisions.decide("caller", HERE)
        assert (again.stored, again.release) == (True, 3)

    play(settings(**PIPELINE), scenario)


async def take_slots(service, count):
    return [await service.decisions.decide("caller", [0.3, -0.2]) for _ in range(count)]


async def crash(_):
    """A process that is killed gives nothing back."""


def test_slots_lost_with_a_process_are_void_and_never_used_again(settings, play, monkeypatch):
    chosen = settings(plan={"first_batch": 64}, window=60, lease=16)
    monkeypatch.setattr(LeasedSlots, "give_back", crash)

    async def first(service):
        return [each.decision for each in await take_slots(service, 3)]

    before = play(chosen, first)
    later = play(chosen, first)
    assert not set(before) & set(later)
    taken = play(chosen, lambda service: service.status())["batches"][0]["taken"]
    assert taken == 16 + 12  # two leases, the second from what was left


def slots_of(service):
    state = service.state
    return state.read(
        lambda c: [row[0] for row in c.execute("SELECT slot FROM records ORDER BY slot").fetchall()]
    )


def test_a_clean_stop_gives_slots_back_and_each_is_used_once(settings, play):
    chosen = settings(plan={"first_batch": 64}, window=60, lease=16)

    async def two(service):
        made = [each.decision for each in await take_slots(service, 2)]
        assert (await service.status())["batches"][0]["taken"] > len(await slots_of(service))
        return made

    made = play(chosen, two) + play(chosen, two)
    assert len(set(made)) == 4

    async def later(service):
        assert (await service.status())["batches"][0]["taken"] == 4
        assert await slots_of(service) == [0, 1, 2, 3]
        assert all([await service.decisions.observe(each, 0.5) for each in made])

    play(chosen, later)


@pytest.mark.parametrize("first", [0, 1])
def test_workers_give_back_in_any_order(settings, play, first):
    chosen = settings(plan={"first_batch": 64}, window=60, lease=8)
    if not chosen.postgres:
        return  # one process serves a file

    async def scenario(one):
        other = Service(chosen)
        await other.start(upkeep=False)
        await take_slots(one, 2)
        await take_slots(other, 3)
        both = [one, other]
        await both[first].decisions.stop()
        state, taken = one.state, "SELECT taken FROM batches"
        assert not (await both[first].decisions.decide("caller", [0.1, 0.2])).stored
        await both[1 - first].decisions.stop()
        assert (await state.read(lambda c: c.execute(taken).fetchone()[0])) == 8 + 3
        await other.stop()

    async def rest(service):
        assert all(each.stored for each in await take_slots(service, 64 - 5))
        assert await slots_of(service) == list(range(64))

    play(chosen, scenario)
    play(chosen, rest)


def test_what_is_sealed_gets_no_slot_back(settings, play):
    chosen = settings(window=60, lease=4)

    async def scenario(service):
        assert all(each.stored for each in await take_slots(service, 1))
        lease = service.decisions._slots._lease
        lease.free.extend([3])
        await service.state.write(
            lambda c: c.execute("UPDATE batches SET state = 'sealed', taken = 4") and None
        )

    play(chosen, scenario)
    status = play(chosen, lambda service: service.status())
    assert status["batches"][0]["taken"] == 4
