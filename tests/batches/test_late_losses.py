"""Losses that come late or never: public windows end the waiting, in the order of the batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from batches.clocked_learners import PLAN, Clock, altered, decide, learner, records
from discreet.policies.one_row import by_arrays
from store_state import state_of
from wording import refused


def test_releases_are_made_in_the_order_of_the_batches():
    """Batch 2 and 3 are complete, batch 1 is not: nothing is released before its window ends."""
    one = learner(window=20)
    ids = decide(one, 14)
    one.observe(ids[1:], np.zeros(13))
    decide(one, 20)
    assert records(one) == []
    decide(one, 1)
    assert records(one) == [2, 4, 8]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("window", [3, "10s"])
def test_a_loss_after_the_window_is_refused(window, many):
    clock = Clock()
    one = learner(clock, window=window)
    decide(one, 2)
    if window == 3:
        decide(one, 3)
    else:
        clock.now += 9.9
    one.observe([0] if many else 0, [0.5] if many else 0.5)  # the last moment
    if window == 3:
        decide(one, 1)
    else:
        clock.now += 0.2
    before = state_of(one._store)
    with refused(dc.DecisionClosed, "a longer window"):
        one.observe([1] if many else 1, [0.5] if many else 0.5)
    assert state_of(one._store) == before
    decide(one, 1)
    assert records(one) == [2]


@pytest.mark.parametrize("window", [7, "7s"])
@given(heard=st.sets(st.sampled_from([0, 2, 3, 4, 5])))
def test_who_answered_moves_no_window(window, heard):
    """Slot 1 is silent: batch 1 ends at the same public moment, whoever else has answered."""
    clock = Clock()
    one = learner(clock, window=window)
    decide(one, 6)
    one.observe(sorted(heard), np.full(len(heard), 0.5))
    left = []
    while not one.released.items:
        oldest = one.status().batches[0]
        left.append(oldest.closes_in if window == "7s" else oldest.closes_after)
        clock.now += 1.0
        decide(one, 1)
    assert left == ([7, 6, 5, 4, 3, 2, 1] if window == "7s" else [7, 6, 5, 4, 3, 2, 1, 0])


def test_a_failed_release_leaves_the_other_batches_alone():
    one = learner()
    ids = decide(one, 14)
    one.observe(ids, np.zeros(14))
    honest, calls = one._store.fit, []

    def second_fails(*given):
        calls.append(1)
        if len(calls) == 2:
            raise MemoryError
        return honest(*given)

    one._store.fit = second_fails
    with pytest.raises(MemoryError):
        decide(one, 1)
    assert records(one) == [2]
    assert [each.number for each in one._store.batches] == [2, 3, 4]
    assert one._store.decisions == 14  # the call that failed decided nothing
    decide(one, 1)
    assert records(one) == [2, 4, 8]


def test_the_newest_release_decides_the_rest_of_a_batch(monkeypatch):
    one = learner()
    decide(one, 3)  # batch 2 is open
    seen = []
    monkeypatch.setattr(
        type(PLAN.policy),
        "sample",
        lambda _, released, *rest: seen.append(len(released.items)) or np.zeros(len(rest[1]), int),
    )
    monkeypatch.setattr(type(PLAN.policy), "for_one_row", by_arrays)
    decide(one, 1)
    one.observe([0, 1], [0.0, 1.0])
    decide(one, 1)
    assert seen == [0, 1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"waiting": "wait"}, "waiting must be one of"),
        ({"window": "soon"}, "'6h'"),
        ({"window": "90"}, "with a unit"),
        ({"window": "0s"}, "above zero"),
        ({"window": -1}, "at least 0"),
        ({"window": 1.5}, "whole number of decisions"),
        ({"window": True}, "whole number"),
    ],
)
def test_a_window_that_is_none_is_refused(words, says):
    with refused(dc.InvalidInput, says):
        dc.Learner(PLAN, **words)


def put(name, place, value):
    return lambda _, rows: rows[name].__setitem__(place, value)


IMPOSSIBLE = {
    "a row in no batch": {"waiting": "gap"},
    "a row less": lambda _, rows: rows.update(actions=rows["actions"][:-1]),
    "an action that is none": put("actions", 0, 2),
    "actions as decimals": lambda _, rows: rows.update(actions=rows["actions"] + 0.0),
    "a loss above one": put("losses", 0, 1.5),
    "a loss of another action": lambda _, rows: put("losses", (1, 1 - rows["actions"][1]), 0.5)(
        _, rows
    ),
    "a context without end": put("features", (0, 0), np.inf),
    "a seal less": lambda _, rows: rows.update(sealed_decisions=rows["sealed_decisions"][:1]),
    "seals out of order": put("sealed_seconds", 0, 101.0),
    "sealed before its slots": put("sealed_decisions", 0, 1),
    "sealed in the future": {"seconds": 99.0},
    "fewer decisions than slots": {"decisions": 8},
    "a time that is none": {"seconds": float("nan")},
    "no such window": {"window": "soon"},
    "no window": lambda header, _: header["batches"].pop("window"),
    "a number for a truth": lambda _, rows: rows.update(closed=np.asarray(1.0)),
}
"""What is altered: a dict of public facts, or a function of the header and the rows."""


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_state_is_refused_and_put_back(name, tmp_path):
    path = tmp_path / "state"
    one = learner(window="10s")
    decide(one, 9)
    one.observe([0, 4], [0.5, 0.5])
    one.save(path)
    change = IMPOSSIBLE[name]
    if isinstance(change, dict):
        altered(path, lambda header, _: header["batches"].update(change))
    else:
        altered(path, change)
    with pytest.raises((dc.CorruptRelease, dc.InvalidInput)):
        dc.Learner.load(path, clock=Clock())
    assert path.exists()
