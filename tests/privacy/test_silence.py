"""Silence of one person: what it moves for others, and what ledger and label say about it."""

from itertools import pairwise

import numpy as np
import pytest

import discreet as dc
from discreet.audit.ledger_verification import checked, read
from discreet.client.label import label_document
from discreet.privacy.ledger import AS_ANSWERED
from small_plans import small_plan

PEOPLE, SILENT = 60, 2
RULES = {
    "automatic": {},
    "on request": {"releases": "on_request"},
    "user": {"unit": "user", "batches_per_user": 2, "records_per_batch": 1},
}
TRIGGERS = pytest.mark.parametrize("waiting", ["pipeline", "gap"])


def plan(rule):
    return small_plan(first_batch=4, growth=1.5, **RULES[rule])


def view(rule, waiting, silent):
    """View of everybody else of 60 people, decision by decision: the number of the release
    that decided, the slot, whether it was stored, the status, and why nothing is released."""
    named = rule == "user"
    noise, draws = dc.SecureNoise(fast=True), np.random.default_rng(1)
    one = dc.Learner(plan(rule), waiting=waiting, window=7, noise=noise, draws=draws)
    seen, contexts = [], np.random.default_rng(0).normal(size=(PEOPLE, 2))
    for person, context in enumerate(contexts):
        decision = one.decide(context, **({"user": f"person {person}"} if named else {}))
        if not (silent and person == SILENT):
            one.observe(decision.id, 0.5)
        message = ""
        if rule == "on request" and person % 5 == 4:  # a public moment
            try:
                one.release()
            except dc.NotReady as error:
                message = str(error)
        numbers = [item.number for item in one.released.items]
        seen.append((len(numbers), decision.id, decision.stored, str(one.status()), message))
    return seen, one


@TRIGGERS
@pytest.mark.parametrize("rule", ["on request", "user"])
def test_silence_moves_nothing_where_the_relation_covers_it(rule, waiting):
    """Release moments, slots and status are the same function of public counts, for any noise."""
    answered, one = view(rule, waiting, silent=False)
    silent, _ = view(rule, waiting, silent=True)
    assert answered == silent
    assert answered[-1][0] >= 2  # releases were made meanwhile
    spent = one.ledger.spent()
    assert "answered" not in spent.relation
    assert not any(AS_ANSWERED in each for each in spent.assumptions)


@TRIGGERS
def test_silence_decides_who_meets_a_release_where_the_last_answer_triggers_it(waiting):
    """The attack: from the silent person's batch on, others are served by another release."""
    answered, one = view("automatic", waiting, silent=False)
    silent, other = view("automatic", waiting, silent=True)
    serving = [(here[0], there[0]) for here, there in zip(answered, silent, strict=True)]
    assert any(here != there for here, there in serving)
    # So no ledger, and no label, may say that silence is protected.
    for learner in (one, other):
        spent = learner.ledger.spent()
        assert "which slots are answered, and when, stays the same" in spent.relation
        assert all(AS_ANSWERED in entry.assumption for entry in learner.ledger.entries)
        assert any(AS_ANSWERED in each for each in spent.assumptions)


def test_with_a_gap_silence_even_moves_slots_of_others():
    found = [[row[1:3] for row in view("automatic", "gap", silent)[0]] for silent in (False, True)]
    assert found[0] != found[1]


@pytest.mark.parametrize(("rule", "covered"), [("automatic", False), ("user", True)])
def test_files_and_labels_say_what_the_learner_does(rule, covered, tmp_path):
    _, one = view(rule, "pipeline", silent=True)
    one.released.save(tmp_path / "released.json")
    state = tmp_path / "state"
    ledgers = [one.ledger, checked(read(str(tmp_path / "released.json")), "released")]
    one.save(state)
    ledgers.append(dc.Learner.load(state).ledger)
    for ledger in ledgers:
        label = label_document(ledger, {}, made="2026-01-31")
        assert ("leaves unsaid" in label["neighbours"]) == covered
        assert ("answered" in label["neighbours"]) != covered
        assert any(AS_ANSWERED in each for each in label["assumptions"]) != covered
    for here, there in pairwise(ledgers):
        assert here.relation == there.relation
