"""Every event of a decision's life, on both databases."""

import asyncio
from dataclasses import replace

import pytest

from discreet.errors import DecisionClosed, InvalidInput, LossConflict, UnknownDecision
from discreet.service.runtime.status import PLAN_ENDED
from service.conftest import windows_end

HERE = [0.3, -0.2]


async def fill(service, count, **options):
    return [await service.decisions.decide("caller", HERE, **options) for _ in range(count)]


def test_a_batch_is_decided_observed_and_released_once(settings, play, released):
    async def scenario(service):
        decisions = await fill(service, 4)
        assert all(each.stored and each.release == 0 for each in decisions)
        assert len({each.decision for each in decisions}) == 4
        for each in decisions:
            assert await service.decisions.observe(each.decision, 0.5)
        made = await released(service)
        assert len(made.items) == 1
        assert made.latest.records == 4
        assert not await service.upkeep.once()
        later = await service.decisions.decide("caller", HERE)
        assert (later.stored, later.release) == (True, 1)
        return await service.ledger()

    ledger = play(settings(), scenario)
    assert 0.9 < float(ledger["spent"]["epsilon"]) <= 1.0
    assert len(ledger["entries"][0]["charges"]) == 1


def test_the_table_of_events(settings, play, released):
    async def scenario(service):
        decisions = service.decisions
        first, second, *_ = await fill(service, 4)
        with pytest.raises(InvalidInput):
            await decisions.observe(first.decision, 1.5)
        assert await decisions.observe(first.decision, 0.5)
        assert await decisions.observe(first.decision, 0.5)
        with pytest.raises(LossConflict):
            await decisions.observe(first.decision, 0.25)
        assert await decisions.observe(first.decision, 0.5)
        forged = ("A" if second.decision[0] != "A" else "B") + second.decision[1:]
        messages = set()
        for bad in (forged, "", "x", "é", second.decision[:-1], second.decision + "!"):
            with pytest.raises(UnknownDecision) as refusal:
                await decisions.observe(bad, 0.5)
            messages.add(str(refusal.value))
        assert len(messages) == 1
        await windows_end(service)
        with pytest.raises(DecisionClosed):  # the window is over, the release not yet made
            await decisions.observe(second.decision, 0.5)
        await released(service)
        with pytest.raises(DecisionClosed):
            await decisions.observe(second.decision, 0.5)

    play(settings(), scenario)


def test_answers_that_come_together_are_judged_one_by_one(settings, play):
    async def scenario(service):
        first, second, *_ = await fill(service, 4)
        requested = [(first, 0.5), (first, 0.5), (first, 0.75), (second, 1.0)]
        outcomes = await asyncio.gather(
            *(service.decisions.observe(each.decision, loss) for each, loss in requested),
            return_exceptions=True,
        )
        assert outcomes[0] is outcomes[1] is outcomes[3] is True
        assert isinstance(outcomes[2], LossConflict)

    play(settings(window=60), scenario)


def test_the_same_request_again_has_the_same_answer_and_one_slot(settings, play):
    async def scenario(service):
        decide = service.decisions.decide
        first = await decide("caller", HERE, idempotency="one")
        again = [decide("caller", HERE, idempotency="one") for _ in range(3)]
        assert [first] * 3 == await asyncio.gather(*again)
        other = await decide("another caller", HERE, idempotency="one")
        assert other.decision != first.decision
        rest = await fill(service, 2)
        assert all(each.stored for each in rest)  # 1 + 1 + 2 slots
        assert not (await fill(service, 1))[0].stored

    play(settings(window=60, waiting="gap"), scenario)


def test_in_the_gap_decisions_take_no_slot(settings, play):
    async def scenario(service):
        await fill(service, 4)
        waiting = await service.decisions.decide("caller", HERE, idempotency="again")
        assert not waiting.stored
        assert await service.decisions.decide("caller", HERE, idempotency="again") == waiting
        assert await service.decisions.observe(waiting.decision, 0.5) is False
        assert await service.decisions.activate(waiting.decision) is False
        return await service.status()

    status = play(settings(window=60, waiting="gap"), scenario)
    assert [each["state"] for each in status["batches"]] == ["sealed"]
    assert "waits for losses" in status["text"]
    assert "Until that release, decisions are served and not stored." in status["text"]


def test_batches_open_while_any_number_waits_each_with_the_policy_of_its_opening(
    settings, play, released
):
    async def scenario(service):
        early = await fill(service, 4 + 8 + 16 + 1)
        assert all(each.stored and each.release == 0 for each in early)
        status = await service.status()
        assert [each["state"] for each in status["batches"]] == ["sealed"] * 3 + ["open"]
        assert [each["slots"] for each in status["batches"]] == [4, 8, 16, 32]
        assert await service.decisions.observe(early[12].decision, 0.5)
        assert (await released(service)).latest.records == 4  # the oldest first
        rest = await fill(service, 31)  # the open batch stays with the document of its opening
        assert all(each.stored and each.release == 0 for each in rest)
        assert (await fill(service, 1))[0].release >= 1
        assert (await released(service)).latest.records == 8
        assert (await released(service)).latest.records == 16

    play(settings(waiting="pipeline"), scenario)


@pytest.mark.parametrize("journal", ["decide", "observe"])
def test_a_slot_without_an_answer_is_void(settings, play, released, journal, monkeypatch):
    seen = spy_on_fits(monkeypatch)

    async def scenario(service):
        decisions = await fill(service, 4)
        for each in decisions[:2]:
            await service.decisions.observe(each.decision, 1.0)
        await released(service)
        return [each.action for each in decisions]

    actions = play(settings(journal=journal), scenario)
    batch = seen[0]
    assert batch.observed.sum(axis=1).tolist() == [1, 1, 0, 0]
    assert all(batch.losses[slot, actions[slot]] == 1.0 for slot in (0, 1))


def test_a_declared_loss_stands_in_for_silence(settings, play, released, monkeypatch):
    seen = spy_on_fits(monkeypatch)

    async def scenario(service):
        shown, waiting, active, answered = [
            await service.decisions.decide("caller", HERE, deferred=place > 0) for place in range(4)
        ]
        await service.decisions.activate(active.decision)
        await service.decisions.activate(active.decision)
        await service.decisions.observe(answered.decision, 0.25)
        await released(service)
        return [each.action for each in (shown, waiting, active, answered)]

    actions = play(settings(plan={"missing_loss": 0.75}), scenario)
    batch = seen[0]
    assert batch.observed.sum(axis=1).tolist() == [1, 0, 1, 1]
    received = [batch.losses[slot, action] for slot, action in enumerate(actions)]
    assert (received[0], received[2], received[3]) == (0.75, 0.75, 0.25)


def test_a_ticket_brings_context_action_and_loss_together(settings, play, released, monkeypatch):
    seen = spy_on_fits(monkeypatch)

    async def scenario(service):
        decisions = service.decisions
        tickets = [await decisions.ticket() for _ in range(4)]
        assert all(each.stored and each.release == 0 for each in tickets)
        record = {"context": HERE, "action": 2}
        assert await decisions.observe(tickets[0].ticket, 0.5, **record)
        assert await decisions.observe(tickets[0].ticket, 0.5, **record)
        with pytest.raises(LossConflict):
            await decisions.observe(tickets[0].ticket, 0.5, context=HERE, action=1)
        with pytest.raises(InvalidInput):
            await decisions.observe(tickets[1].ticket, 0.5)
        with pytest.raises(InvalidInput):
            await decisions.observe(tickets[1].ticket, 0.5, context=HERE, action=3)
        assert not (await decisions.ticket()).stored
        await released(service)

    play(settings(waiting="gap"), scenario)
    assert seen[0].observed.tolist()[0] == [False, False, True]
    assert not seen[0].observed[1:].any()


def test_modes(settings, play):
    async def scenario(service):
        await service.set_mode("shadow")
        shadow = await fill(service, 2)
        assert [(each.action, each.stored) for each in shadow] == [(2, True)] * 2
        await service.set_mode("frozen")
        assert not (await fill(service, 1))[0].stored
        await service.set_mode("online")
        assert (await fill(service, 1))[0].stored

    play(settings(default_action=2, window=60), scenario)


def test_a_rollback_serves_an_older_release(settings, play, released):
    async def scenario(service):
        await fill(service, 4)
        await released(service)
        await service.set_serving(0)
        back = (await fill(service, 1))[0]
        assert (back.stored, back.release) == (True, 0)
        with pytest.raises(InvalidInput):
            await service.set_serving(7)
        await service.set_serving(None)
        assert (await fill(service, 1))[0].release == 1

    play(settings(), scenario)


def test_a_bad_context_takes_no_slot(settings, play):
    async def scenario(service):
        for bad in ([1.0], ["a", "b"], [float("nan"), 0.0], {"a": 1}, [[0.1, 0.2]] * 2):
            with pytest.raises(InvalidInput):
                await service.decisions.decide("caller", bad)
        assert all(each.stored for each in await fill(service, 4))

    play(settings(window=60), scenario)


def test_the_horizon_ends_the_experiment(settings, play, released):
    async def scenario(service):
        await fill(service, 4)
        await released(service)
        status = await service.status()
        assert (status["ended"], PLAN_ENDED in status["text"]) == (True, True)
        return await fill(service, 2)

    over = play(settings(plan={"horizon": 10}), scenario)  # batches of 4 and 6; the last unfitted
    assert [(each.stored, each.release) for each in over] == [(False, 1)] * 2


def spy_on_fits(monkeypatch):
    """The batches that were fitted, copied before they are forgotten."""
    import numpy as np

    from discreet.service.runtime import fit_process

    seen, fit = [], fit_process.release_batch

    def spying(plan, noise, batch, *rest):
        kept = {name: np.array(getattr(batch, name)) for name in ("features", "losses", "observed")}
        seen.append(replace(batch, **kept))
        return fit(plan, noise, batch, *rest)

    monkeypatch.setattr(fit_process, "release_batch", spying)
    return seen


def test_a_view_from_before_a_batch_opened_takes_no_slots_away(settings, play):
    """A refresh that began earlier must not make a fresh lease void."""

    async def scenario(service):
        first = await service.decisions.decide("caller", HERE)
        service.state.on_change()  # with what was known before the batch opened
        rest = await fill(service, 15)
        assert first.stored
        assert all(each.stored for each in rest)
        return await service.status()

    chosen = settings(plan={"first_batch": 64}, window=60)
    assert play(chosen, scenario)["batches"][0]["taken"] == 16  # one lease for all
