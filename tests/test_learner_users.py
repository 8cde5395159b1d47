"""Learner with the unit "user": which records enter a fit, and that nobody can tell."""

import json

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from batches.clocked_learners import watched
from discreet.batches import saved_state
from small_plans import small_plan
from store_state import state_of
from wording import refused


def plan(batches=2, records=1, **changes):
    parts = {"features": dc.UnitBall(1), "policy": dc.Uniform(), "oracle": dc.Ridge()}
    often = {"unit": "user", "batches_per_user": batches, "records_per_batch": records}
    return small_plan(**parts | {"first_batch": 4, "growth": 1.1} | often | changes)


def learner(batches=2, records=1, seed=0, **changes):
    chosen = plan(batches, records, **changes)
    return dc.Learner(chosen, noise=dc.SecureNoise(fast=True), draws=np.random.default_rng(seed))


def release(one):
    """Close the oldest batch, since no answer does, and release it."""
    one.close()
    return one.release()


def contexts(*values):
    return np.array(values, dtype=float)[:, None]


def fitted(one):
    """What fits read: a list of batches, each a list of (context, losses that were observed)."""

    def rows(batch):
        all_rows = zip(batch.features, batch.losses, batch.observed, strict=True)
        return [(round(x[1] * 2**0.5, 3), y[o].tolist()) for x, y, o in all_rows]

    return watched(one, rows)


def test_beyond_the_bound_a_slot_is_void_and_in_no_fit():
    one = learner(batches=2, records=1)
    seen = fitted(one)
    for size in (4, 5, 6):  # the slots of the first batches
        users = ["anna", "anna", "bob", *[7] * (size - 3)]
        many = one.decide(contexts(0.1, 0.2, 0.3, *[0.4] * (size - 3)), user=users)
        one.observe(many.id, [0.25, 0.5, 0.75, *[1.0] * (size - 3)])
        release(one)
    first = [(0.1, [0.25]), (0.0, []), (0.3, [0.75]), (0.4, [1.0])]
    assert seen == [first, [*first, (0.0, [])], [(0.0, [])] * 6]
    assert [item.records for item in one.released.items] == [4, 5, 6]  # slots, not people


def test_a_slot_counts_whether_or_not_it_is_answered():
    one = learner(batches=2, records=1)
    seen = fitted(one)
    for size, answered in ((4, False), (5, False), (6, True)):
        many = one.decide(contexts(*[0.1] * size), user=["anna", "b", *["c"] * (size - 2)])
        if answered:
            one.observe(many.id, np.ones(6))
        release(one)
    assert seen[2] == [(0.0, [])] * 6


def test_k_counts_the_slots_of_a_batch_and_not_of_a_call():
    one = learner(batches=1, records=2)
    seen = fitted(one)
    for value in (0.1, 0.2, 0.3, 0.4):
        decision = one.decide(contexts(value)[0], user="anna")
        one.observe(decision.id, 1.0)
    release(one)
    assert [x for x, _ in seen[0]] == [0.1, 0.2, 0.0, 0.0]


@pytest.mark.parametrize("change", [{}, {"missing_loss": 1.0}, {"feedback": "full"}])
def test_void_slots_take_no_missing_loss_and_no_row_of_losses(change):
    one = learner(batches=1, records=1, **change)
    seen = fitted(one)
    many = one.decide(contexts(0.1, 0.2, 0.3, 0.4), user=["anna", "anna", "bob", "bob"])
    losses = []
    if "feedback" in change:
        losses = [0.0, 1.0]
        one.observe(many.id, np.tile(losses, (4, 1)))
    release(one)
    counted = [1.0] if "missing_loss" in change else losses
    assert seen == [[(0.1, counted), (0.0, []), (0.3, counted), (0.0, [])]]


def facts(one, users):
    """Everything that a caller sees of two batches, for any users."""
    replies = []
    for value in np.linspace(0.0, 1.0, 8):
        decision = one.decide(contexts(value)[0], user=users[len(replies)])
        one.observe(decision.id, value)
        one.observe(decision.id, value)  # the same again: no news
        with refused(dc.LossConflict, "already stored") as conflict:
            one.observe([decision.id], [0.5 * value + 0.1])
        shown = (repr(decision), decision.id, decision.stored, decision.action_index)
        replies.append((*shown, decision.propensity, str(conflict.value), str(one.status())))
    return replies, len(one.released.items), one.ledger.spent()


def test_replies_are_the_same_for_slots_that_count_and_void_slots():
    strangers = facts(learner(batches=1), [f"person {i}" for i in range(8)])
    regulars = facts(learner(batches=1), ["anna"] * 8)
    assert strangers == regulars
    many = learner(batches=1).decide(contexts(0.1, 0.2, 0.3), user=["anna"] * 3)
    assert (many.id.tolist(), many.stored.tolist()) == ([0, 1, 2], [True] * 3)
    frame = learner(batches=1).decide(
        pd.DataFrame({"x": [0.1, 0.2, 0.3], "who": ["anna"] * 3}), user="who"
    )
    assert (frame.id.tolist(), frame.stored.tolist()) == ([0, 1, 2], [True] * 3)


def test_a_void_slot_is_awaited_like_any_other():
    one = learner(batches=1)
    many = one.decide(contexts(0.1, 0.2, 0.3, 0.4), user=["anna"] * 4)
    errors = []
    for answered in (many.id[:3], many.id[3:]):
        one.observe(answered, np.zeros(len(answered)))
        with refused(dc.NotReady, "window is not over") as error:
            one.release()
        errors.append(str(error.value))
    assert errors[0] == errors[1]  # an answer changes nothing
    release(one)


def test_the_ledger_is_for_a_person_and_never_ends():
    one = learner(batches=2, records=2)
    spent = []
    for size in range(4, 9):
        many = one.decide(contexts(*[0.5] * size), user=["anna"] * size)
        one.observe(many.id, np.zeros(size))
        release(one)
        spent.append(one.ledger.spent().epsilon)
    assert spent[0] < 0.8
    assert spent[1:] == [pytest.approx(1.0, abs=1e-3)] * 4
    last = one.ledger.spent()
    assert (last.unit, last.relation) == ("user", one.plan.participation.relation)
    assert "for one user" in repr(one)


def test_a_sampler_that_a_person_meets_too_often_is_refused_at_once():
    often = plan(batches=500, records=500, budget=dc.Budget(1.0, 1e-9))
    with refused(dc.BudgetExceeded, "without fast"):
        dc.Learner(often, noise=dc.SecureNoise(fast=True))


def test_counts_survive_a_file(tmp_path):
    path = tmp_path / "state"
    one = learner(batches=2, records=1)
    many = one.decide(contexts(*[0.1] * 5), user=["anna", "anna", "bob", "bob", "anna"])
    one.observe(many.id[:4], np.zeros(4))
    before = state_of(one._store)
    one.save(path)
    assert b"anna" not in path.read_bytes()
    again = dc.Learner.load(path, noise=dc.SecureNoise(fast=True))
    assert state_of(again._store) == before
    seen = fitted(again)
    again.observe(4, 1.0)  # anna's, in her second batch
    again.observe(again.decide(contexts(*[0.2] * 4), user=["anna", "b", "bob", "c"]).id, [0.0] * 4)
    users = ["anna", "bob", "b", "c", "d", "d"]
    again.observe(again.decide(contexts(*[0.3] * 6), user=users).id, [0.0] * 6)
    for _ in range(3):
        release(again)
    rows = [[x for x, observed in batch if observed] for batch in seen]
    assert rows == [[0.1, 0.1], [0.1, 0.2, 0.2, 0.2], [0.3, 0.3, 0.3]]


def test_a_file_without_its_counts_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "state"
    write = saved_state.write

    def forgetful(place, header, rows):
        write(place, header, {name: rows[name] for name in rows if "people" not in name})

    def other_bound(place, header, rows):
        header["ledger"]["participation"] = {"batches": 3, "records": 1}
        write(place, json.loads(json.dumps(header)), rows)

    for fault in (forgetful, other_bound):
        path.unlink(missing_ok=True)
        one = learner()
        one.decide(contexts(0.1)[0], user="anna")
        with monkeypatch.context() as patched:
            patched.setattr(saved_state, "write", fault)
            one.save(path)
        with refused(dc.CorruptRelease, "not claimed"):
            dc.Learner.load(path)


def test_who_is_erased_is_served_and_never_counts_again():
    one = learner(batches=2, records=2)
    seen = fitted(one)
    one.decide(contexts(0.1)[0], user="anna")
    one.erase("anna")
    one.erase("nobody who was here")
    decision = one.decide(contexts(0.2)[0], user="anna")
    assert (decision.id, decision.stored) == (1, True)
    one.decide(contexts(0.3, 0.4), user=["nobody who was here", "bob"])
    one.observe(np.arange(4), np.zeros(4))
    release(one)
    assert [x for x, observed in seen[0] if observed] == [0.1, 0.4]


def test_a_decision_without_a_slot_does_not_count():
    one = dc.Learner(plan(batches=1, records=1), waiting="gap", noise=dc.SecureNoise(fast=True))
    seen = fitted(one)
    many = one.decide(contexts(*[0.1] * 6), user=["a", "b", "c", "d", "late", "late"])
    assert many.stored.tolist() == [True] * 4 + [False] * 2
    one.observe(many.id, np.zeros(6))
    release(one)
    many = one.decide(contexts(*[0.2] * 5), user=["late", "a", "b", "e", "f"])
    one.observe(many.id, np.zeros(5))
    release(one)
    assert [x for x, observed in seen[1] if observed] == [0.2, 0.2, 0.2]


def test_void_slots_add_nothing_to_simulated_sums_of_stretched_rows():
    """They have no features, whose length would be divided by."""
    stretched = plan(oracle=dc.PooledRidge(), policy=dc.ReplayBonusPO())
    one = dc.Learner(stretched, noise=dc.SeededNoise(0), window=None)
    made = one.decide(contexts(0.1, 0.2, 0.3, 0.4), user=["anna"] * 4)
    one.observe(made.id, [0.0, 1.0, 1.0, 0.0])
    release(one)
    assert np.isfinite(one.released.latest.predictor.weights).all()
