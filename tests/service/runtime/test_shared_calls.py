"""Requests share work, and neither results nor failures get mixed up."""

import asyncio

import numpy as np
import pytest

from discreet import Category, Date, Flag, Number, Schema
from discreet.errors import InvalidInput
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.service.runtime.requests import SharedCalls, features_of, features_of_many


def plan(features):
    return Plan(n_actions=2, features=features, budget=Budget(1.0, 1e-6))


def test_items_of_one_turn_share_a_call_and_get_their_results():
    calls = []

    def work(items):
        calls.append(items)
        return [ValueError(str(item)) if item % 3 == 0 else 10 * item for item in items]

    async def scenario():
        together = SharedCalls(work)
        return await asyncio.gather(*(together(item) for item in range(6)), return_exceptions=True)

    made = asyncio.run(scenario())
    assert calls == [[0, 1, 2, 3, 4, 5]]
    assert [str(each) for each in made] == ["0", "10", "20", "3", "40", "50"]


def test_a_failed_call_raises_for_every_item():
    def work(items):  # noqa: ARG001
        raise RuntimeError("broken")

    async def scenario():
        together = SharedCalls(work)
        return await asyncio.gather(together(1), together(2), return_exceptions=True)

    assert [str(each) for each in asyncio.run(scenario())] == ["broken", "broken"]


def test_a_cancelled_item_disturbs_no_other():
    async def scenario():
        together = SharedCalls(lambda items: items)
        gone, stays = together(1), together(2)
        gone.cancel()
        return await stays

    assert asyncio.run(scenario()) == 2


@pytest.mark.parametrize(("busy", "calls"), [(False, 3), (True, 2)])
def test_a_busy_one_gathers_for_a_while_and_a_lone_one_does_not(busy, calls):
    seen = []

    async def scenario():
        together = SharedCalls(
            lambda items: seen.append(items) or items, pause=0.2, others=lambda: busy
        )
        await together(1)
        loop, ahead = asyncio.get_running_loop(), [0.0]
        began = loop.time()
        loop.time = lambda: began + ahead[0]  # it stands still
        second = together(2)
        for _ in range(9):
            await asyncio.sleep(0)
        third = together(3)
        for _ in range(9):
            await asyncio.sleep(0)
        ahead[0] = 0.2
        await asyncio.gather(second, third)

    asyncio.run(scenario())
    assert len(seen) == calls


@pytest.mark.parametrize(
    ("features", "good", "bad"),
    [
        (UnitBall(2), [[0.3, -0.2], [3.0, 4.0], [0.0, 0.0]], [[1.0], [float("nan"), 0.0], "no", 4]),
        (UnitBall(1), [[0.3], [-5.0]], [0.5, [0.1, 0.2], None]),
        (
            Schema([Number("age", 0, 100), Category("device", ["phone", "desk"])]),
            [{"age": 75, "device": "desk"}, {"age": 0, "device": "phone"}],
            [{"age": 271, "device": "desk"}, {"age": 1}, [1, 2], None],
        ),
        (
            Schema(
                [Number("age", 0, 100, stand_in=40), Flag("member", indicator=True), Date("at")]
            ),
            [{"at": "2026-03-29T10:00"}, {"age": 3, "member": None, "at": "2026-03-29T10:00Z"}],
            [{"age": 3}, {"at": "2026-03-29"}, {"member": "yes", "at": "2026-03-29T10:00"}, [], {}],
        ),
    ],
    ids=["ball", "line", "schema", "gaps"],
)
def test_many_contexts_are_mapped_as_each_would_be(features, good, bad):
    chosen = plan(features)
    expected = [features_of(chosen, each) for each in good]
    for made, wanted in zip(features_of_many(chosen, good), expected, strict=True):
        np.testing.assert_array_equal(made, wanted)
    for wrong in bad:
        # Wherever it stands, one that is wrong is refused, and no other.
        for place in range(len(good) + 1):
            mixed = [*good[:place], wrong, *good[place:]]
            made = features_of_many(chosen, mixed)
            assert isinstance(made.pop(place), InvalidInput)
            for one, wanted in zip(made, expected, strict=True):
                np.testing.assert_array_equal(one, wanted)
        for alike in ([wrong], [wrong, wrong]):
            assert all(isinstance(each, InvalidInput) for each in features_of_many(chosen, alike))
