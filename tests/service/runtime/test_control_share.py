"""A control share in a service: who plays it, and what a fit reads of both parts."""

import asyncio
import hashlib
import math
from collections import defaultdict

import numpy as np
import pytest

from discreet.design.control import people_in_control
from discreet.errors import InvalidInput
from discreet.plan.plan import Plan
from discreet.policies.one_row import by_arrays
from discreet.service.runtime import lifecycle
from discreet.service.runtime.policy_versions import PolicyVersions
from discreet.service.secrets.sealing import DecisionIds
from discreet.service.secrets.vault import Vault
from discreet.service.storage.journal import Journal
from service.conftest import PLAN, rows_of, running

HERE = [0.3, -0.2]
SHARE, ALONE = 0.3, 2
CONTROL = {"control": {"share": SHARE, "action": ALONE}, "first_batch": 10}
USERS = {"unit": "user", "batches_per_user": 3, "records_per_batch": 2}
BOTH = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def database(request):
    """A file, where a test does not ask for both kinds: the rule is not the database's."""
    on_server = getattr(request, "param", "sqlite") == "postgresql"
    return request.getfixturevalue("fresh_schema") if on_server else "discreet.db"


@pytest.fixture(autouse=True)
def fixed(monkeypatch):
    """The policy plays 0, always; the control plays ``ALONE``."""
    policy = type(Plan.from_config(PLAN).policy)
    monkeypatch.setattr(policy, "sample", lambda _, __, rows, ___: np.zeros(len(rows), dtype=int))
    monkeypatch.setattr(policy, "for_one_row", by_arrays)  # a single request too


def in_control(batch, slot, epoch=1):
    """The rule of docs/lift.md once more, by hand: one slot of each stretch of 1/share."""
    number, block = (epoch - 1) * 2**32 + batch, 0
    while math.ceil((block + 1) / SHARE) <= slot:
        block += 1
    first, after = math.ceil(block / SHARE), math.ceil((block + 1) / SHARE)
    digest = hashlib.sha256(f"discreet control {number} {block // 4}".encode()).digest()
    word = int.from_bytes(digest[8 * (block % 4) :][:8], "big")
    return slot == first + word % (after - first)


def place_of(service, reply):
    id = DecisionIds(service.state.vault.mac).read(getattr(reply, "decision", None) or reply.ticket)
    return id.epoch, id.batch, id.slot


async def decide(service, count, **words):
    return [await service.decisions.decide("caller", HERE, **words) for _ in range(count)]


def test_slots_of_the_control_play_its_action(settings, play):
    async def scenario(service):
        made = await decide(service, 30)
        assert {each.stored for each in made} == {True}
        for each in made:
            epoch, batch, slot = place_of(service, each)
            assert each.action == (ALONE if in_control(batch, slot, epoch) else 0)
        assert {place_of(service, each)[1] for each in made} == {1, 2}

    play(settings(plan=CONTROL, waiting="pipeline", window=60), scenario)


def test_a_request_that_is_sent_again_stays_where_it_was(settings, play):
    """With the same key the same slot; whatever was put back is still what its slot says."""

    async def scenario(service):
        names = [f"request {number}" for number in range(10)]
        first = [(await decide(service, 1, idempotency=name))[0] for name in names]
        again = [(await decide(service, 1, idempotency=name))[0] for name in names]
        assert first == again
        for each in first + await decide(service, 10):
            _, batch, slot = place_of(service, each)
            assert (each.action == ALONE) == in_control(batch, slot)

    play(settings(plan=CONTROL, waiting="pipeline", window=60), scenario)


def test_positions_stay_after_a_restart_a_burn_and_a_restore(settings):
    chosen = settings(plan=CONTROL, waiting="pipeline", window=60)
    seen = set()

    async def look(service, count):
        for each in await decide(service, count):
            epoch, batch, slot = place_of(service, each)
            assert (each.action == ALONE) == in_control(batch, slot, epoch)
            seen.add((epoch, batch))

    async def scenario():
        async with running(chosen) as service:
            await look(service, 12)
            mask = (await rows_of(service, 2)).control
            await service.burn(1)
            # What was the second batch is now the first of the schedule, and stays where it was.
            assert np.array_equal((await rows_of(service, 2)).control, mask)
            await look(service, 3)
        async with running(chosen) as service:
            assert np.array_equal((await rows_of(service, 2)).control, mask)
            await look(service, 4)
        lifecycle.restore(chosen)
        async with running(chosen) as service:
            await look(service, 5)

    asyncio.run(scenario())
    assert seen >= {(1, 1), (1, 2), (2, 1)}


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_a_fit_reads_each_slot_in_its_part(settings, play, journal):
    async def scenario(service):
        for each in await decide(service, 10):
            await service.decisions.observe(each.decision, 0.5)
        rows = await rows_of(service)
        assert rows.control.tolist() == [in_control(1, slot) for slot in range(10)]
        assert np.array_equal(rows.observed[:, ALONE], rows.control)
        assert np.array_equal(rows.observed[:, 0], ~rows.control)

    play(settings(plan=CONTROL, window=60, journal=journal), scenario)


def test_silence_follows_one_rule_in_both_parts(settings, play):
    async def scenario(service):
        await decide(service, 10)
        rows = await rows_of(service)
        assert rows.observed.sum(axis=1).tolist() == [1] * 10
        assert set(rows.losses[rows.observed].tolist()) == {0.75}
        assert 0 < rows.control.sum() < 10

    play(settings(plan=CONTROL | {"missing_loss": 0.75}, window=60), scenario)


def test_people_are_always_in_the_same_part(settings):
    """In whatever batch, worker and epoch they come, whether they count, and without a slot."""
    chosen = settings(plan=CONTROL, waiting="pipeline", window=60, **USERS)
    parts, people = defaultdict(set), [f"person {number}" for number in range(40)]

    async def look(service):
        for user in people:
            (reply,) = await decide(service, 1, user=user)
            parts[user].add(reply.action)
            ticket = await service.decisions.ticket(user=user)
            parts[user].add(0 if ticket.action is None else ticket.action)

    async def scenario():
        async with running(chosen) as service:
            await look(service)
            await look(service)
            await service.set_mode("frozen")
            await look(service)  # without a slot
            await service.set_mode("online")
        lifecycle.restore(chosen)
        async with running(chosen) as service:
            await look(service)

    asyncio.run(scenario())
    assert {len(each) for each in parts.values()} == {1}, "a person is in both parts"
    share = sum(each == {ALONE} for each in parts.values()) / len(people)
    assert 0.05 < share < 0.65, "40 people with a share of 0.3"


def test_only_the_vault_determines_the_control(settings):
    chosen = settings(plan=CONTROL, **USERS)
    people = [f"person {number}" for number in range(200)]
    vault = Vault(chosen.place(chosen.vault))
    mine = people_in_control(SHARE, vault.control, people)
    assert len({vault.control, vault.people, vault.mac, vault.signing}) == 4
    for other in (vault.people, vault.mac[:32]):
        assert not np.array_equal(mine, people_in_control(SHARE, other, people))


@BOTH
def test_a_fit_reads_people_in_their_part(settings, play):
    async def scenario(service):
        replies = []
        for number in range(10):
            replies += await decide(service, 1, user=f"person {number % 5}")
            await service.decisions.observe(replies[-1].decision, 0.5)
        rows = await rows_of(service)
        played = {place_of(service, each)[2]: each.action for each in replies}
        assert rows.control.tolist() == [played[slot] == ALONE for slot in range(10)]

    play(settings(plan=CONTROL, window=60, **USERS), scenario)


def test_replies_to_users_differ_in_the_action_alone(settings, play, monkeypatch):
    """The policy is asked, and the same statements are made, for both parts."""
    requested, written = [], []
    act, decide_rows = PolicyVersions._act, Journal.decide

    def counted(self, rows):
        requested.append(len(rows))
        return act(self, rows)

    def noted(self, connection, items):
        written.extend((len(each.row), each.person is not None) for each in items)
        return decide_rows(self, connection, items)

    monkeypatch.setattr(PolicyVersions, "_act", counted)
    monkeypatch.setattr(Journal, "decide", noted)

    async def scenario(service):
        made = [(await decide(service, 1, user=f"person {n}"))[0] for n in range(20)]
        assert {each.action for each in made} == {0, ALONE}
        shapes = {(len(each.decision), each.release, each.stored) for each in made}
        assert len(shapes) == 1
        assert requested == [1] * 20
        assert len(set(written)) == 1

    play(settings(plan=CONTROL | {"first_batch": 64}, window=60, **USERS), scenario)


def test_uniform_control_plays_every_action(settings, play):
    async def scenario(service):
        made = await decide(service, 200)
        slots = [(place_of(service, each), each.action) for each in made]
        control = [action for (_, batch, slot), action in slots if in_control(batch, slot)]
        assert set(control) == {0, 1, 2}
        assert {action for (_, b, slot), action in slots if not in_control(b, slot)} == {0}

    uniform = {"control": {"share": SHARE}, "first_batch": 256}
    play(settings(plan=uniform, window=60), scenario)


def test_a_ticket_of_the_control_names_its_action(settings, play):
    async def scenario(service):
        observe = service.decisions.observe
        tickets = [await service.decisions.ticket() for _ in range(10)]
        for each in tickets:
            _, batch, slot = place_of(service, each)
            assert each.action == (ALONE if in_control(batch, slot) else None)
            if each.action is None:
                assert await observe(each.ticket, 0.5, context=HERE, action=1)
                continue
            with pytest.raises(InvalidInput, match="the one that the ticket names"):
                await observe(each.ticket, 0.5, context=HERE, action=1)
            assert await observe(each.ticket, 0.5, context=HERE, action=each.action)
        rows = await rows_of(service)
        assert np.array_equal(rows.observed[:, ALONE], rows.control)
        assert np.array_equal(rows.observed[:, 1], ~rows.control)

    play(settings(plan=CONTROL, window=60), scenario)
