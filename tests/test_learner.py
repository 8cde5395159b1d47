"""Learner: decide, observe, close, release, through its public face."""

import copy
import gc
import math
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise

import numpy as np
import pytest

import discreet as dc
from discreet.batches.saved_state import private_rows
from small_plans import small_plan
from store_state import state_of
from wording import refused

NONE = dc.Budget.none()


def plan(**changes):
    base = {"n_actions": 3, "policy": dc.SquareCB(), "budget": NONE}
    return small_plan(**base | {"first_batch": 1, "growth": 2.0} | changes)


def private_plan(**changes):
    return plan(budget=dc.Budget(1.0, 1e-5), **changes)


def learner(seed=0, noise=None, waiting="pipeline", window=1_000, **changes):
    words = {"waiting": waiting, "window": window, "noise": noise}
    return dc.Learner(plan(**changes), **words, draws=np.random.default_rng(seed))


def context(seed=0):
    return np.random.default_rng(seed).normal(size=2)


def state(learner):
    return state_of(learner._store)


def fill(learner, batches, loss=0.5):
    """Play whole batches: decide as many as there are slots, hear them all, release."""
    for _ in range(batches):
        length = learner.plan.schedule.length(len(learner.released.items) + 1)
        many = learner.decide(np.zeros((length, 2)))
        learner.observe(many.id, np.full(len(many.id), loss))
        learner.release()


def test_propensities_are_those_of_the_policy_that_decided():
    one = learner(policy=dc.VanillaPO(), first_batch=4)
    fill(one, 1)
    rows = np.random.default_rng(1).normal(size=(8, 2))
    decided = one.decide(rows)
    before = one.released
    one.observe(decided.id, np.ones(8))
    one.release()  # asking late must not bring the next policy's answer
    expected = one.plan.policy.probabilities(before, one.plan.features.map(rows))
    np.testing.assert_array_equal(decided.propensity, expected[np.arange(8), decided.action])


def test_actions_follow_the_propensities():
    """A chi-square test of 20,000 draws against three probabilities; the seed is fixed."""
    one = learner(seed=7, first_batch=1)
    one.decide(context())
    one.observe(0, 1.0)
    one.release()
    many = one.decide(np.tile(context(5), (20_000, 1)))
    expected = 20_000 * one.plan.policy.probabilities(
        one.released, one.plan.features.map(context(5))
    )
    counts = np.bincount(many.action, minlength=3)
    statistic = ((counts - expected[0]) ** 2 / expected[0]).sum()
    assert statistic < -2 * math.log(1e-6)  # chi-square with two degrees of freedom


def test_losses_arrive_late_out_of_order_and_in_bulk():
    one = learner(first_batch=6)
    one.decide(np.zeros((6, 2)))
    one.observe(4, 0.5)
    one.observe([5, 0], [1.0, 0.0])
    one.observe(np.array([3, 1], dtype=np.int16), np.array([True, False]))
    one.observe(np.uint64(2), np.float32(0.25))
    losses = np.nansum(private_rows(one._store)["losses"], axis=1)
    assert losses.tolist() == [0.0, 0.0, 0.25, 1.0, 0.5, 1.0]
    assert one.release().records == 6


@pytest.mark.parametrize(
    ("error", "id", "loss"),
    [
        (dc.LossConflict, 2, 0.25),
        (dc.UnknownDecision, 4, 0.5),
        (dc.UnknownDecision, 2**70, 0.5),
        (dc.DecisionClosed, 0, 0.5),
        (dc.DecisionClosed, np.array([3, 1], dtype=np.uint64), [0.5, 0.5]),
        (dc.InvalidInput, 3, math.nan),
        (dc.InvalidInput, [3], [1.1]),
        (dc.InvalidInput, [3, 3], [0.5, 0.5]),
        (dc.InvalidInput, True, 0.5),
    ],
)
def test_a_bad_report_loses_nothing_and_spends_nothing(error, id, loss):
    """Batch 1 is released; batch 2 has four slots, two taken, one with a loss."""
    one = learner(first_batch=2)
    fill(one, 1)
    one.decide(np.zeros((2, 2)))
    one.observe(2, 0.5)
    before = state(one)
    with refused(error):
        one.observe(id, loss)
    one.observe([2], [0.5])  # the same again is no news
    assert state(one) == before
    one.observe(3, 0.5)  # goes on


@pytest.mark.parametrize("bad", [np.zeros(3), None, {"x": 1}, [[0.0, 0.0], [0.0, math.nan]]])
def test_a_bad_context_takes_no_slot_and_triggers_no_release(bad):
    one = learner(first_batch=1)
    one.decide(context())
    one.observe(0, 0.5)  # ready: the next good decision releases
    before = state(one)
    with refused(dc.InvalidInput, "context"):
        one.decide(bad)
    assert state(one) == before
    assert one.decide(context()).id == 1


@pytest.mark.parametrize("noise", [None, dc.SeededNoise(0)])
def test_a_void_slot_is_as_if_nobody_had_come(noise):
    """Without privacy noise, a silent record changes the fit only through the public count."""
    predictors = []
    for silent in (np.array([0.9, -0.4]), np.array([-0.2, 0.7])):
        one = learner(first_batch=3, policy=dc.Uniform(), noise=noise)
        one.decide(np.vstack([context(1), silent, context(2)]))
        one.observe([0, 2], [0.25, 0.75])
        one.close()
        release = one.release()
        assert release.records == 3
        predictors.append(release.predictor.weights)
    np.testing.assert_array_equal(*predictors)


def test_a_declared_loss_stands_in_for_silence():
    weights = []
    for missing in (1.0, None):
        one = learner(first_batch=3, policy=dc.Uniform(), missing_loss=missing)
        one.decide(np.random.default_rng(3).normal(size=(3, 2)))
        one.observe([0, 2], [0.25, 0.75])
        one.close() if missing else one.observe(1, 1.0)
        weights.append(one.release().predictor.weights)
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize("losses", ["general", "one_label"])
def test_full_feedback_hears_a_row_of_losses(losses):
    one = learner(first_batch=4, policy=dc.Greedy(), feedback="full", losses=losses)
    rows = np.random.default_rng(0).normal(size=(4, 2))
    many = one.decide(rows)
    one.observe(int(many.id[0]), [0.0, 1.0, 1.0])
    one.observe(many.id[1:], [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    one.observe(0, [0.0, 1.0, 1.0])
    before = state(one)
    for bad in (1.0, [0.0, 1.0], [0.0, 1.0, 2.0]):
        with refused(dc.InvalidInput, "must be"):
            one.observe(0, bad)
    with refused(dc.LossConflict):
        one.observe(0, [1.0, 1.0, 0.0])
    assert state(one) == before
    release = one.release()
    assert release.predictor.weights.shape == (3, 3)


@pytest.mark.parametrize("releases", [1, 10])
def test_many_releases_cost_as_much_as_one(releases):
    one = dc.Learner(private_plan(), noise=dc.SecureNoise(fast=True))
    fill(one, releases)
    spent = one.ledger.spent()
    for release, entry in zip(one.released.items, one.ledger.entries, strict=True):
        assert (release.event, f"batch {release.number}") == (entry.event, entry.partition)
    assert len(one.released.items) == releases
    assert 0.999 < spent.epsilon <= 1.0
    assert spent.delta == 1e-5
    with refused(dc.BudgetExceeded, "'batch 1'"):
        one.ledger.charge("batch 1", one.plan.mechanism.event)


def test_a_charge_beyond_the_budget_leaves_everything_unchanged():
    one = dc.Learner(private_plan(first_batch=2), noise=dc.SecureNoise(fast=True))
    one.decide(np.zeros((2, 2)))
    one.observe([0, 1], [0.5, 0.5])
    honest = one._store.ledger
    one._store.ledger = honest.charge("batch 1", one.plan.mechanism.event)  # paid already
    before = state(one)
    for call in (one.release, lambda: one.decide(context())):
        with refused(dc.BudgetExceeded, "Nothing was spent"):
            call()
        assert state(one) == before
    one._store.ledger = honest
    assert one.release().number == 1


def test_no_data_are_touched_before_the_charge(monkeypatch):
    one = dc.Learner(private_plan(), noise=dc.SecureNoise(fast=True))
    one.decide(context())
    one.observe(0, 0.5)
    one._store.ledger = one.ledger.charge("batch 1", one.plan.mechanism.event)
    monkeypatch.setattr(
        type(one.plan.mechanism), "fit", lambda *_: pytest.fail("fitted before paying")
    )
    with refused(dc.BudgetExceeded):
        one.release()


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_fit_that_fails_changes_nothing_and_a_retry_works(monkeypatch, error):
    one = dc.Learner(private_plan(first_batch=2), noise=dc.SecureNoise(fast=True))
    fill(one, 1)
    one.decide(np.ones((4, 2)))
    one.observe([2, 3, 4, 5], [0.0, 0.5, 0.5, 1.0])
    before = state(one)

    def fail(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(type(one.plan.mechanism), "fit", fail)
        for call in (one.release, lambda: one.decide(context())):
            with pytest.raises(error):
                call()
            assert state(one) == before
    one.decide(context())
    assert [item.number for item in one.released.items] == [1, 2]
    assert len(one.ledger.entries) == 2


def arrays_holding(*values):
    """For each value, how many NumPy arrays that tracked objects refer to hold it."""
    gc.collect()
    referred = gc.get_referents(*gc.get_objects())
    arrays = {id(item): item for item in referred if isinstance(item, np.ndarray)}.values()
    numbers = [item for item in arrays if item.dtype == np.float64]
    return [sum(bool((item == value).any()) for item in numbers) for value in values]


MODELS = [
    (dc.VanillaPO(), dc.Logistic()),
    (dc.LinUCB(), dc.Ridge()),
    (dc.AdaptivePO(), dc.PooledRidge()),
]


@pytest.mark.parametrize(("policy", "oracle"), MODELS)
def test_nothing_keeps_a_row_after_its_release(policy, oracle):
    """A marker is planted in a context and a loss; after the release no array holds it."""
    made = private_plan(policy=policy, oracle=oracle, first_batch=2)
    one = dc.Learner(made, noise=dc.SecureNoise(fast=True))
    fill(one, 1)
    marker = math.pi / 10  # in no array of this test
    one.decide([marker, 0.5])
    one.decide(np.zeros((3, 2)))
    one.observe(2, marker)
    in_features = marker * math.sqrt(0.5)
    assert arrays_holding(in_features, marker) == [1, 1]  # the check can fail
    one.observe([3, 4, 5], [0.0, 0.5, 1.0])
    one.release()
    assert arrays_holding(in_features, marker) == [0, 0]


@pytest.mark.parametrize("serialise", [pickle.dumps, copy.deepcopy])
def test_a_learner_is_not_pickled(serialise):
    with pytest.raises(dc.PrivateData, match=r"learner\.save"):
        serialise(learner())
    serialise(learner().released)


def world(policy, person=None, oracle=None, budget=NONE, **change):
    """A stream of 40 people, one of whom differs; each batch is closed when it is sealed."""
    rng = np.random.default_rng(11)
    contexts, losses = rng.normal(size=(40, 2)), rng.random(40).round(3)
    if "context" in change:
        contexts[person] = change["context"]
    if "loss" in change:
        losses[person] = change["loss"]
    made = plan(policy=policy, oracle=oracle or dc.PooledRidge(), budget=budget)
    one = dc.Learner(made, noise=dc.SeededNoise(3), draws=np.random.default_rng(5))
    slots = []
    for number, row in enumerate(contexts):
        decision = one.decide(row)
        slots.append((decision.id, decision.stored))
        if not (number == person and change.get("silent")):
            one.observe(decision.id, losses[number])
        if one._store.batches[0].sealed:
            one.close()
    return slots, one.released.items


CHANGES = [{"loss": 0.987}, {"context": [0.9, -0.9]}, {"silent": True}]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
@pytest.mark.parametrize("person", [0, 9, 20])
def test_one_person_changes_no_boundary_and_no_earlier_release(person, change):
    slots, items = world(dc.SquareCB())
    other_slots, other_items = world(dc.SquareCB(), person, **change)
    assert other_slots == slots
    assert [item.records for item in other_items] == [item.records for item in items]
    batch = int(math.log2(person + 1))  # batches before it
    assert [item.digest for item in other_items[:batch]] == [item.digest for item in items[:batch]]
    assert other_items[batch].digest != items[batch].digest  # the change is not lost


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_later_releases_depend_on_a_person_through_the_release_alone(change):
    """A policy that ignores releases cuts that path: every other fit is the same to the bit."""
    _, items = world(dc.Uniform(), oracle=dc.Ridge())
    _, other_items = world(dc.Uniform(), 9, oracle=dc.Ridge(), **change)
    same = [
        np.array_equal(here.predictor.weights, there.predictor.weights)
        for here, there in zip(items, other_items, strict=True)
    ]
    assert same == [True, True, True, False, True]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
@pytest.mark.parametrize("geometry", ["learned", "plain"])
def test_what_a_batch_tells_depends_on_its_own_people(change, geometry):
    """With a policy that ignores releases: what batch 4 published changes coordinates alone."""
    # With a smaller ε the noise of 15 records leaves the matrix as it was, but for rounding.
    fixed = {"oracle": dc.PooledRidge(geometry=geometry), "budget": dc.Budget(8.0, 1e-5)}
    here, there = (
        [item.statistics for item in world(dc.Uniform(), 9, **fixed, **some)[1]]
        for some in ({}, change)
    )

    def same(name):
        return [
            np.array_equal(getattr(one, name), getattr(two, name))
            for one, two in zip(here, there, strict=True)
        ]

    if geometry == "plain":
        assert same("response") == [True, True, True, False, True]
        return
    assert same("outcome_sums") == [True, True, True, "context" in change, True]
    # An observed loss says nothing of how contexts are spread.
    alike = "loss" in change
    assert same("response") == [True, True, True, False, alike]
    assert same("matrix") == [True, True, True, True, alike]
    assert same("following") == [True, True, True, alike, alike]
    for run in (here, there):
        for before, after in pairwise(run):
            np.testing.assert_array_equal(after.matrix, before.following)


class OneAtATime:
    """Uniforms from a source that notices a second caller while it serves the first."""

    inside = overlaps = 0

    def random(self, shape):
        self.inside += 1
        self.overlaps += self.inside > 1
        time.sleep(1e-4)  # others may try to enter
        self.inside -= 1
        return np.full(shape, 0.5)


def test_threads_share_a_learner():
    """Four threads, 50 decisions each."""
    draws = OneAtATime()
    one = dc.Learner(plan(first_batch=512), draws=draws)

    def serve(_):
        ids = [one.decide(context()).id for _ in range(50)]
        for id in ids:
            one.observe(id, 0.5)
        return ids

    with ThreadPoolExecutor(4) as pool:
        assert sorted(chain(*pool.map(serve, range(4)))) == list(range(200))
    assert one._store.batches[0].unobserved == 0
    assert draws.overlaps == 0
