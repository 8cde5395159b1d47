"""The status of a learner: public words, the same whoever has answered."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batches.clocked_learners import PLAN, Clock, decide
from batches.clocked_learners import learner as learner_of

ON_REQUEST, HORIZON = ({"releases": "on_request"}, {"horizon": 7})
BY_CLOCK = {"first_batch": 4, "close_every": "7d"}
WAITS = "Batch 1 is full and waits for losses; the next decide releases it when all have come, or "


def learner(decisions=0, clock=None, change=(), **words):
    one = learner_of(clock, replace(PLAN, **dict(change)), **words)
    decide(one, decisions)
    return one


@pytest.mark.parametrize(
    ("decisions", "words", "said"),
    [
        (0, {}, "Batch 1 is open: 0 of 2 decisions so far."),
        (0, {}, "Nothing was released yet"),
        (3, {}, f"{WAITS}else after 1,000 more decisions.\nBatch 2 is open: 1 of 4"),
        (3, {"window": "6h"}, f"{WAITS}else in 6 h."),
        (3, {"window": None}, f"{WAITS}else when close() declares the rest missing."),
        (6, {"window": 1, "change": ON_REQUEST}, "release() releases it after 1 more decisions."),
        (14, {"window": 3, "change": ON_REQUEST}, "release(), after batch 1, releases it"),
        (5, {"waiting": "gap"}, "decisions are served and not stored."),
        (9, {"change": HORIZON}, "The last batch before the horizon is never fitted"),
        (0, {"change": BY_CLOCK}, "0 of 4 decisions so far; its time limit begins again in 168 h"),
    ],
)
def test_a_status_names_what_a_batch_waits_for(decisions, words, said):
    assert said in str(learner(decisions, **words).status())


def test_the_status_tells_what_the_clock_does():
    clock = Clock()
    one = learner(3, clock, BY_CLOCK, window=None)
    clock.now += 86_400.0
    assert "3 of 4 decisions so far; it closes in 144 h, full or not." in str(one.status())
    clock.now += 6 * 86_400.0
    assert "Batch 1 is closed at its time limit and waits for losses" in str(one.status())
    one.close()
    assert "Batch 1 is closed at its time limit and takes no more losses" in str(one.status())
    one.release()
    assert str(one.status()).startswith("Release 1 is the newest: it decides until the next one.")


@given(heard=st.sets(st.integers(0, 13)), window=st.sampled_from([5, 1_000, "10s", None]))
def test_no_status_tells_who_has_answered(heard, window):
    one = learner(14, window=window)
    before = one.status()
    one.observe(sorted(heard), np.linspace(0, 1, len(heard)))
    assert one.status() == before
    assert (repr(one.status()), str(one.status())) == (repr(before), str(before))
