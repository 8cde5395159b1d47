"""Requests share work, and neither results nor failures get mixed up."""

import asyncio

import numpy as np
import pytest

from discreet import Category, Date, Flag, Number, Schema
from discreet.errors import InvalidInput
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.service.runtime.requests import (
    SharedCalls,
    features_of,
    features_of_many,
)


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


def test_items_gather_until_the_group_ahead_is_done():
    seen = []

    async def scenario():
        ahead = None
        together = SharedCalls(lambda items: seen.append(items) or items, lambda: ahead)
        await together(1)
        ahead = asyncio.get_running_loop().create_future()
        waiting = [together(2)]
        for _ in range(9):
            await asyncio.sleep(0)
        waiting.append(together(3))
        assert seen == [[1]]
        ahead.set_result(None)
        await asyncio.gather(*waiting)
        await together(4)  # the one ahead is done

    asyncio.run(scenario())
    assert seen == [[1], [2, 3], [4]]


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
