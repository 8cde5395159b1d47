"""Slots that a process leased and no request received: given back at a stop, lost in a crash."""

import pytest

from discreet.service.runtime.leased_slots import LeasedSlots
from discreet.service.runtime.service import Service


async def fill(service, count):
    return [await service.decisions.decide("caller", [0.3, -0.2]) for _ in range(count)]


async def crash(_):
    """A process that is killed gives nothing back."""


def test_slots_lost_with_a_process_are_void_and_never_used_again(settings, play, monkeypatch):
    chosen = settings(plan={"first_batch": 64}, window=60, lease=16)
    monkeypatch.setattr(LeasedSlots, "give_back", crash)

    async def first(service):
        return [each.decision for each in await fill(service, 3)]

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
        made = [each.decision for each in await fill(service, 2)]
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
        await fill(one, 2)
        await fill(other, 3)
        both = [one, other]
        await both[first].decisions.stop()
        state, taken = one.state, "SELECT taken FROM batches"
        assert not (await both[first].decisions.decide("caller", [0.1, 0.2])).stored
        await both[1 - first].decisions.stop()
        assert (await state.read(lambda c: c.execute(taken).fetchone()[0])) == 8 + 3
        await other.stop()

    async def rest(service):
        assert all(each.stored for each in await fill(service, 64 - 5))
        assert await slots_of(service) == list(range(64))

    play(chosen, scenario)
    play(chosen, rest)


def test_what_is_sealed_gets_no_slot_back(settings, play):
    chosen = settings(window=60, lease=4)

    async def scenario(service):
        assert all(each.stored for each in await fill(service, 1))
        lease = service.decisions._slots._lease
        lease.free.extend([3])
        await service.state.write(
            lambda c: c.execute("UPDATE batches SET state = 'sealed', taken = 4") and None
        )

    play(chosen, scenario)
    status = play(chosen, lambda service: service.status())
    assert status["batches"][0]["taken"] == 4
