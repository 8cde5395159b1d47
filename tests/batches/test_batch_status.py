"""The status of a learner: public words, the same whoever has answered."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc

PLAN = dc.Plan(
    n_actions=2,
    features=dc.UnitBall(1),
    policy=dc.SquareCB(),
    budget=dc.Budget.none(),
    first_batch=2,
    growth=2.0,
)


def learner(decisions=0, plan=PLAN, **words):
    one = dc.Learner(plan, clock=lambda: 100.0, **words)
    one.decide(np.zeros((decisions, 1)))
    return one


def test_a_new_learner_says_what_it_waits_for():
    status = learner().status()
    assert str(status) == (
        "Nothing was released yet: the policy decides without having learnt anything.\n"
        "Batch 1 is open: 0 of 2 decisions so far."
    )
    assert repr(status) == "LearnerStatus(0 releases, 0 decisions; batch 1 open (0 of 2))"


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ({}, "or else after 1,000 more decisions."),
        ({"window": "6h"}, "or else in 6 h 0 min."),
        ({"window": None}, "or else when close() declares the rest missing."),
    ],
)
def test_a_full_batch_says_what_ends_the_waiting(words, end):
    said = learner(3, **words).status().sentences
    begin = "Batch 1 is full and waits for losses; the next decide releases it when all have come, "
    assert said[1:] == (begin + end, "Batch 2 is open: 1 of 4 decisions so far.")


def test_the_order_of_releases_and_the_end_of_a_window_are_said():
    one = learner(6, window=3)
    one.decide(np.zeros((2, 1)))
    assert "releases it when all have come, or else after 1 more decisions." in str(one.status())
    one = learner(6, replace(PLAN, releases="on_request"), window=3)
    one.decide(np.zeros((4, 1)))
    assert one.status().sentences[1:3] == (
        "Batch 1 is full and takes no more losses; release() releases it.",
        "Batch 2 is full and takes no more losses; release(), after batch 1, releases it.",
    )


def test_a_gap_and_the_end_of_the_horizon_are_said():
    assert str(learner(5, waiting="gap").status()).endswith("decisions are served and not stored.")
    over = learner(9, replace(PLAN, horizon=7))
    assert "The last batch before the horizon is never fitted" in str(over.status())
    one = learner(2)
    one.observe([0, 1], [0.0, 1.0])
    one.decide(np.zeros(1))
    assert str(one.status()).startswith("Release 1 is the newest: it decides until the next one.")


@given(heard=st.sets(st.integers(0, 13)), window=st.sampled_from([5, 1_000, "10s", None]))
def test_no_status_tells_who_has_answered(heard, window):
    one = learner(14, window=window)
    before = one.status()
    one.observe(sorted(heard), np.linspace(0, 1, len(heard)))
    assert one.status() == before
    assert (repr(one.status()), str(one.status())) == (repr(before), str(before))
