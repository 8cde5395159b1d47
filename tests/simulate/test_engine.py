"""The engine plays thousands of runs at once; each is the run that ``evaluate`` plays alone."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from catalogue import DIMENSION, FEATURES, POLICIES, plan_of
from discreet.arrays import backend
from discreet.simulate.engine import Machine, run
from tolerances import EXACT
from wording import refused

ROWS, SEEDS = 45, (0, 3, 4)
ENDS = np.array([1, 3, 7, 15, 31, 45])
BUDGETS = (dc.Budget.none(), dc.Budget(2.0, 1e-5))


def labelled():
    contexts = np.random.default_rng(4).normal(size=(ROWS, DIMENSION))
    return contexts, (contexts[:, 0] > 0).astype(int) + (contexts[:, 1] > 0.5)


def grid():
    """Every policy with two oracles and two budgets, in an order that mixes the families."""
    oracles = (
        dc.PooledRidge(),
        dc.Ridge(0.02),
        dc.Ridge(0.02, "paper"),
        dc.Logistic(0.02, noise="gaussian"),
    )
    return [
        plan_of(policy, oracle, budget, feedback="full" if name == "Greedy" else "bandit")
        for budget in BUDGETS
        for name, (_, policy, *_) in POLICIES.items()
        for oracle in oracles
        if oracle.bounded or not policy.needs_bounded_losses
    ]


@pytest.fixture(scope="module")
def expected():
    contexts, labels = labelled()
    return np.array(
        [
            [dc.evaluate(plan, contexts, labels, seed=seed).curve[ENDS - 1] for seed in SEEDS]
            for plan in grid()
        ]
    )


@pytest.mark.parametrize("memory", [2**31, 200_000, 1], ids=["at once", "in parts", "one by one"])
def test_every_run_is_the_run_alone(memory, expected):
    contexts, labels = labelled()
    made = run(grid(), FEATURES.map(contexts), labels, SEEDS, Machine(memory=memory))
    np.testing.assert_allclose(made, expected, rtol=0, atol=EXACT)


def test_rows_a_few_at_a_time_change_nothing(expected, monkeypatch):
    """The blocks are longer than these runs, unless a cache were tiny."""
    monkeypatch.setattr(backend, "_CACHED", 1)
    contexts, labels = labelled()
    assert len(backend.row_blocks(14, 1, contexts)) == 1 < len(backend.row_blocks(31, 1, contexts))
    made = run(grid(), FEATURES.map(contexts), labels, SEEDS, Machine())
    np.testing.assert_allclose(made, expected, rtol=0, atol=EXACT)


@pytest.mark.torch
def test_torch_plays_them_too(expected):
    pytest.importorskip("torch")
    contexts, labels = labelled()
    made = run(grid(), FEATURES.map(contexts), labels, SEEDS, Machine(device="cpu"))
    np.testing.assert_allclose(made, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("mechanism", ["paper", "structured"])
@pytest.mark.parametrize("oracle", [dc.Ridge, dc.Logistic])
def test_radii_without_noise_are_shared_by_the_first_batch(oracle, mechanism):
    """Without noise the runs are equal there: one Gram serves the policies of all classes."""
    contexts, labels = labelled()
    policies = dc.LinUCB(width=0.5), dc.RegCB(width=0.1), dc.RegCB(width=1.0)
    plans = [plan_of(policy, oracle(mechanism=mechanism)) for policy in policies]
    together = run(plans, FEATURES.map(contexts), labels, SEEDS)
    for plan, losses in zip(plans, together, strict=True):
        alone = [dc.evaluate(plan, contexts, labels, seed=seed).loss for seed in SEEDS]
        np.testing.assert_allclose(losses[:, -1], alone, rtol=0, atol=EXACT)


USERS = np.random.default_rng(5).integers(0, 12, ROWS)


def of_users(batches=2, records=3, **changes):
    often = {"unit": "user", "batches_per_user": batches, "records_per_batch": records}
    return plan_of(dc.SquareCB(), **{"budget": dc.Budget(1.0, 1e-5)} | often | changes)


def test_users_have_the_guarantee_and_the_slots_of_their_plan():
    """Bounds differ, so slots that count differ; seeds and levels are played together."""
    contexts, labels = labelled()
    seen = dc.evaluate(of_users(), contexts, labels, users=USERS, noise=dc.SecureNoise(fast=True))
    spent = seen.ledger.spent()
    assert (spent.unit, spent.relation) == ("user", of_users().participation.relation)
    assert 0.99 < spent.epsilon <= 1.0
    bounds, budgets = ((1, 1), (2, 3), (99, 99)), (dc.Budget(4.0, 1e-5), dc.Budget.none())
    plans = [of_users(*often, budget=budget) for often in bounds for budget in budgets]
    together = run(plans, FEATURES.map(contexts), labels, [0, 1], users=USERS)
    for each, by_seed in zip(plans, together, strict=True):
        for seed in (0, 1):
            alone = dc.evaluate(each, contexts, labels, users=USERS, seed=seed)
            assert by_seed[seed, -1] == alone.loss


def test_users_are_given_where_the_unit_needs_them():
    contexts, labels = labelled()
    decisions = of_users(unit="decision", batches_per_user=None, records_per_batch=None)
    for plans, users, words in (
        ([of_users()], None, "users must be given with the unit 'user'"),
        ([decisions], USERS, "users must be left out with the unit 'decision'"),
        ([of_users()], USERS[:-1], f"one id for each of {ROWS}"),
        ([of_users(), decisions], USERS, "plans must have one unit"),
    ):
        with refused(dc.InvalidInput, words):
            run(plans, FEATURES.map(contexts), labels, [0], users=users)
        if len(plans) == 1:
            with refused(dc.InvalidInput, words):
                dc.evaluate(*plans, contexts, labels, users=users)
