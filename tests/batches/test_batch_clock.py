"""A public clock that closes batches: what counts are slots and time, never who answered."""

import math
from dataclasses import replace
from shutil import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from batches.clocked_learners import PLAN, Clock, altered, decide, records, watched
from batches.clocked_learners import learner as learner_of
from discreet.design.schedule import tick
from store_state import state_of
from wording import refused

DAY = 86_400.0


def learner(clock, window=0, **words):
    plan = replace(PLAN, **{"first_batch": 4, "close_every": "7d", **words})
    return learner_of(clock, plan, window=window)


def test_a_batch_closes_at_the_earlier_of_count_and_clock_and_ids_keep_the_schedule():
    clock = Clock()
    one = learner(clock)
    assert decide(one, 6).tolist() == [0, 1, 2, 3, 4, 5]  # batch 1 by count; batch 2 opens now
    clock.now += 7 * DAY - 1
    assert decide(one, 1) == [6]
    clock.now += 1
    assert decide(one, 1) == [12]  # batch 2 was closed with 3 of 8 slots; 7 … 11 stay unused
    assert records(one) == [4, 3]
    assert one.released.rounds == 7
    assert decide(one, 1) == [13]


@pytest.mark.parametrize("missing", [None, 1.0])
def test_slots_that_nobody_took_are_in_no_fit_and_get_no_missing_loss(missing):
    clock = Clock()
    one = learner(clock, missing_loss=missing)
    seen = watched(one, lambda batch: (batch.records, batch.observed.sum(), batch.losses.sum()))
    first, _ = decide(one, 2)
    one.observe(first, 0.5)
    clock.now += 7 * DAY
    decide(one, 1)
    assert seen == [(2, 1, 0.5) if missing is None else (2, 2, 1.5)]


CALLS = st.lists(st.tuples(st.floats(0, 9 * DAY), st.integers(0, 5)), max_size=8)


@given(CALLS, st.integers(0, 2**32))
@settings(max_examples=25)
def test_answers_move_no_slot_and_no_close(calls, chosen):
    """Two worlds with the same decisions and times, in one of which nobody answers."""
    clock, worlds = Clock(), []
    for answers in (True, False):
        clock.now, said = 100.0, []
        one = learner(clock, releases="on_request")
        for wait, count in calls:
            clock.now += wait
            ids = decide(one, count).tolist()
            for id in ids:
                if answers and chosen >> id % 32 & 1:
                    one.observe(id, 1.0)
            said.append((ids, str(one.status())))
        worlds.append(said)
    assert worlds[0] == worlds[1]


@pytest.mark.parametrize("shown", [math.nan, math.inf, -math.inf])
def test_a_clock_that_shows_no_time_is_refused_and_nothing_is_stored_or_spent(shown):
    clock = Clock()
    one = learner(clock)
    decide(one, 2)
    before = state_of(one._store)
    clock.now = shown
    with refused(dc.InvalidInput, "clock", repr(shown), "time.time"):
        decide(one, 5)
    with refused(dc.InvalidInput, "clock", repr(shown), "time.time"):
        one.observe(0, 0.5)
    clock.now = 100.0
    assert state_of(one._store) == before


@pytest.mark.parametrize("name", ["taken", "opened", "sealed_seconds"])
def test_a_saved_clock_that_cannot_be_is_refused(name, tmp_path):
    clock = Clock()
    one = learner(clock, window=None)
    decide(one, 2)
    clock.now += 7 * DAY
    decide(one, 1)
    one.save(tmp_path / "state")
    changes = [lambda rows: rows + 1_000, lambda rows: rows[:0]]
    # An opened batch of long ago is possible: its clock ticks at once.
    for change in [*changes, *([] if name == "opened" else [lambda rows: -rows - 1])]:
        copy(tmp_path / "state", tmp_path / "altered")
        altered(
            tmp_path / "altered",
            lambda _, rows, change=change: rows.update({name: change(rows[name])}),
        )
        with pytest.raises(dc.CorruptRelease):
            dc.Learner.load(tmp_path / "altered", clock=clock)
    again = dc.Learner.load(tmp_path / "state", clock=clock)
    clock.now += 7 * DAY
    again.close()
    decide(again, 1)
    assert records(again) == [2]


@given(st.floats(0.001, 1e6), st.floats(0, 2e9), st.integers(0, 3), st.floats(0, 2e9))
def test_a_tick_is_never_in_the_future_and_closes_slots_alone(every, opened, taken, now):
    since, closed = tick(every, opened, taken, now)
    assert opened <= since <= max(opened, now * (1 + 1e-12))
    assert closed == (taken > 0 and now - opened >= every)
    assert closed or now - since < every or taken


@pytest.mark.parametrize("every", ["", "7", "7w", "0d", 7, 7.0, True])
def test_a_clock_is_a_time_in_words(every):
    with refused(dc.InvalidInput, "close_every", repr(every), "'7d'"):
        learner(Clock(), close_every=every)
