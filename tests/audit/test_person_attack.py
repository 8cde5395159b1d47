"""The attack on a person: below the claim, near it, and above it where the promise is broken."""

import numpy as np
import pytest

from discreet.audit import black_box
from discreet.audit.black_box import OFTEN, lives, which_life
from discreet.audit.finding import FAILS, HOLDS
from discreet.audit.subjects import DEFAULT_PLAN, Subject
from discreet.batches.users import PeopleRegistry

SUBJECT = Subject(DEFAULT_PLAN, "bandit", "general", 4.0)
TRIALS, ALPHA = 2_500, 1e-6


def test_all_that_a_person_says_is_told_apart_as_far_as_claimed():
    found = which_life(SUBJECT, ALPHA, TRIALS)
    assert found.verdict == HOLDS, found.said
    assert 0.6 * 4.0 < found.measured <= 4.0
    assert found.halved > 4.0
    assert "at most 2 records in each of at most 3 batches" in found.said


def test_what_lies_beyond_the_bound_is_the_same_in_both_lives():
    observed = [[int(world.observed.any(-1).sum()) for world in batch] for batch in lives(SUBJECT)]
    assert observed == [[OFTEN.records] * 2] * OFTEN.batches + [[0, 0]]


@pytest.mark.parametrize("forgotten", [(1, 1), (3, 1), (1, 2)], ids=["k√M", "k", "√M"])
def test_noise_that_was_calibrated_for_less_is_found(forgotten, monkeypatch):
    batches, records = forgotten
    less = SUBJECT.plan(unit="user", batches_per_user=batches, records_per_batch=records)
    monkeypatch.setattr(black_box, "user_plan", lambda _: less)
    assert which_life(SUBJECT, ALPHA, TRIALS).verdict == FAILS


def test_a_registry_that_lets_everything_count_is_found(monkeypatch):
    def everything(_self, people, _batch):
        return np.ones(len(people), dtype=bool)

    monkeypatch.setattr(PeopleRegistry, "hand_out", everything)
    assert which_life(SUBJECT, ALPHA, TRIALS).verdict == FAILS


def test_small_budgets_have_more_trials(monkeypatch):
    monkeypatch.setattr(black_box, "TRIALS", 10)
    assert which_life(Subject(DEFAULT_PLAN, "bandit", "general", 1.0), 0.1).trials == 40
