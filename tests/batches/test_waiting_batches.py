"""Batches that wait: public windows and clocks end them, in order; no answer moves one."""

import math
from dataclasses import replace
from shutil import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from batches.clocked_learners import PLAN, Clock, altered, decide, learner, records
from discreet.policies.one_row import by_arrays
from store_state import state_of
from wording import refused

DAY = 86_400.0
WEEKLY = {"first_batch": 4, "close_every": "7d"}


def learner_of(clock=None, window=0, **changes):
    return learner(clock, replace(PLAN, **changes), window=window)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("window", [3, "10s"])
def test_a_loss_after_the_window_is_refused(window, many):
    clock = Clock()
    one = learner(clock, window=window)
    decide(one, 2)

    def wait(decisions, seconds):
        if window == 3:
            decide(one, decisions)
        else:
            clock.now += seconds

    wait(3, 9.9)
    one.observe([0] if many else 0, [0.5] if many else 0.5)  # the last moment
    wait(1, 0.2)
    before = state_of(one._store)
    with refused(dc.DecisionClosed, "a longer window"):
        one.observe([1] if many else 1, [0.5] if many else 0.5)
    assert state_of(one._store) == before
    decide(one, 1)
    assert records(one) == [2]


@pytest.mark.parametrize("window", [7, "7s"])
@given(observed=st.sets(st.sampled_from([0, 2, 3, 4, 5])))
def test_who_answered_moves_no_window(window, observed):
    """Slot 1 is silent: batch 1 ends at the same public moment for all other answers."""
    clock = Clock()
    one = learner(clock, window=window)
    decide(one, 6)
    one.observe(sorted(observed), np.full(len(observed), 0.5))
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
    fit, calls = one._store.fit, []

    def second_fails(*given):
        calls.append(1)
        if len(calls) == 2:
            raise MemoryError
        return fit(*given)

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
    ("rules", "rule"),
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
def test_a_wrong_window_is_refused(rules, rule):
    with refused(dc.InvalidInput, rule):
        dc.Learner(PLAN, **rules)


CALLS = st.lists(st.tuples(st.floats(0, 9 * DAY), st.integers(0, 5)), max_size=8)


@given(CALLS, st.integers(0, 2**32))
@settings(max_examples=25)
def test_answers_move_no_slot_and_no_close(calls, chosen):
    """Two worlds with the same decisions and times, in one of which nobody answers."""
    clock, worlds = Clock(), []
    for answers in (True, False):
        clock.now, world = 100.0, []
        one = learner_of(clock, **WEEKLY, releases="on_request")
        for wait, count in calls:
            clock.now += wait
            ids = decide(one, count).tolist()
            for id in ids:
                if answers and chosen >> id % 32 & 1:
                    one.observe(id, 1.0)
            world.append((ids, str(one.status())))
        worlds.append(world)
    assert worlds[0] == worlds[1]


@pytest.mark.parametrize("shown", [math.nan, math.inf])
def test_a_clock_that_shows_no_time_is_refused_and_nothing_is_stored_or_spent(shown):
    clock = Clock()
    one = learner_of(clock, **WEEKLY)
    decide(one, 2)
    before = state_of(one._store)
    clock.now = shown
    for call in (lambda: decide(one, 5), lambda: one.observe(0, 0.5)):
        with refused(dc.InvalidInput, "clock", repr(shown), "time.time"):
            call()
    clock.now = 100.0
    assert state_of(one._store) == before


@pytest.mark.parametrize("every", ["7", "7w", "0d", 7, True])
def test_a_clock_is_a_time_in_words(every):
    with refused(dc.InvalidInput, "close_every", repr(every), "'7d'"):
        learner_of(close_every=every)


def put(name, place, value):
    return lambda _, rows: rows[name].__setitem__(place, value)


IMPOSSIBLE = {
    "a row in no batch": {"waiting": "gap"},
    "a row less": lambda _, rows: rows.update(actions=rows["actions"][:-1]),
    "an unknown action": put("actions", 0, 2),
    "actions as decimals": lambda _, rows: rows.update(actions=rows["actions"] + 0.0),
    "a loss above one": put("losses", 0, 1.5),
    "a loss of another action": lambda _, rows: put("losses", (1, 1 - rows["actions"][1]), 0.5)(
        _, rows
    ),
    "an infinite context": put("features", (0, 0), np.inf),
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
"""Changes of a file: a dict of public facts, or a function of the header and the rows."""


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_state_is_refused_and_put_back(name, tmp_path):
    path, change = tmp_path / "state", IMPOSSIBLE[name]
    one = learner(window="10s")
    decide(one, 9)
    one.observe([0, 4], [0.5, 0.5])
    one.save(path)
    if isinstance(change, dict):
        altered(path, lambda header, _: header["batches"].update(change))
    else:
        altered(path, change)
    with pytest.raises((dc.CorruptRelease, dc.InvalidInput)):
        dc.Learner.load(path, clock=Clock())
    assert path.exists()


@pytest.mark.parametrize("name", ["taken", "opened", "sealed_seconds"])
def test_a_saved_clock_that_cannot_be_is_refused(name, tmp_path):
    clock, path = Clock(), tmp_path / "altered"
    one = learner_of(clock, **WEEKLY, window=None)
    decide(one, 2)
    clock.now += 7 * DAY
    decide(one, 1)
    one.save(tmp_path / "state")
    changes = [lambda rows: rows + 1_000, lambda rows: rows[:0]]
    # An opened batch of long ago is possible: its clock ticks at once.
    for change in [*changes, *([] if name == "opened" else [lambda rows: -rows - 1])]:
        copy(tmp_path / "state", path)
        altered(path, lambda _, rows, change=change: rows.update({name: change(rows[name])}))
        with pytest.raises(dc.CorruptRelease):
            dc.Learner.load(path, clock=clock)
    again = dc.Learner.load(tmp_path / "state", clock=clock)
    clock.now += 7 * DAY
    again.close()
    decide(again, 1)
    assert records(again) == [2]


def test_the_memory_of_released_rows_is_overwritten():
    one = learner_of(first_batch=64, window=1_000)
    one.observe(decide(one, 64), np.full(64, 0.5))
    batch = one._store.batches[0]
    arrays = batch.features, batch.losses, batch.actions
    assert all(array.any() for array in arrays)
    one.release()
    assert not any(array.any() for array in arrays)


def test_a_store_shows_no_values():
    store = learner()._store
    assert repr(store) == str(store) == "MemoryStore(private)"
    assert repr(store.batches) == "[BatchSlots(private)]"


ON_REQUEST, HORIZON = {"releases": "on_request"}, {"horizon": 7}
WAITS = "Batch 1 is full and waits for losses; the next decide releases it when all have come, or "


@pytest.mark.parametrize(
    ("decisions", "rules", "change", "sentence"),
    [
        (0, {}, {}, "Batch 1 is open: 0 of 2 decisions so far."),
        (3, {}, {}, f"{WAITS}else after 1,000 more decisions.\nBatch 2 is open: 1 of 4"),
        (3, {"window": "6h"}, {}, f"{WAITS}else in 6 h."),
        (3, {"window": None}, {}, f"{WAITS}else when close() declares the rest missing."),
        (6, {"window": 1}, ON_REQUEST, "release() releases it after 1 more decisions."),
        (14, {"window": 3}, ON_REQUEST, "release(), after batch 1, releases it"),
        (5, {"waiting": "gap"}, {}, "decisions are served and not stored."),
        (9, {}, HORIZON, "The last batch before the horizon is never fitted"),
        (0, {}, WEEKLY, "0 of 4 decisions so far; its time limit begins again in 168 h"),
    ],
)
def test_a_status_names_what_a_batch_waits_for(decisions, rules, change, sentence):
    one = learner(plan=replace(PLAN, **change), **rules)
    decide(one, decisions)
    assert sentence in str(one.status())


@given(observed=st.sets(st.integers(0, 13)), window=st.sampled_from([5, 1_000, "10s", None]))
def test_no_status_depends_on_who_has_answered(observed, window):
    one = learner(window=window)
    decide(one, 14)
    before = one.status()
    one.observe(sorted(observed), np.linspace(0, 1, len(observed)))
    assert (one.status(), str(one.status())) == (before, str(before))
