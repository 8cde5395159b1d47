"""``evaluate`` with the unit "user": the learner's rule, for a whole run at once."""

import numpy as np

import discreet as dc
from discreet.simulate import engine
from wording import refused

ROWS = 300
RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(ROWS, 2)), RNG.integers(0, 2, ROWS)
USERS = RNG.integers(0, 40, ROWS)


def plan(batches=2, records=3, **changes):
    base = {"n_actions": 2, "features": dc.UnitBall(2), "policy": dc.SquareCB()}
    often = {"unit": "user", "batches_per_user": batches, "records_per_batch": records}
    return dc.Plan(
        **base | {"oracle": dc.Ridge(), "budget": dc.Budget(1.0, 1e-5)} | often | changes
    )


def test_the_ledger_is_for_a_person():
    seen = dc.evaluate(plan(), X, Y, users=USERS, noise=dc.SecureNoise(fast=True))
    spent = seen.ledger.spent()
    assert (spent.unit, spent.relation) == ("user", plan().participation.relation)
    assert 0.99 < spent.epsilon <= 1.0


def test_users_are_needed_or_not():
    with refused(dc.InvalidInput, "users must be given with the unit 'user'"):
        dc.evaluate(plan(), X, Y)
    decisions = plan(unit="decision", batches_per_user=None, records_per_batch=None)
    with refused(dc.InvalidInput, "users must be left out with the unit 'decision'"):
        dc.evaluate(decisions, X, Y, users=USERS)
    with refused(dc.InvalidInput, "one id for each of 300"):
        dc.evaluate(plan(), X, Y, users=USERS[:-1])


def test_many_plans_at_once_play_as_each_alone():
    """Bounds differ, so slots that count differ; seeds and levels are played together."""
    plans = [
        plan(*often, budget=budget)
        for often in ((1, 1), (2, 3), (99, 99))
        for budget in (dc.Budget(4.0, 1e-5), dc.Budget.none())
    ]
    together = engine.run(plans, plan().features.map(X), Y, [0, 1], users=USERS)
    for each, by_seed in zip(plans, together, strict=True):
        for seed in (0, 1):
            alone = dc.evaluate(each, X, Y, users=USERS, seed=seed)
            assert by_seed[seed, -1] == alone.loss


def test_many_plans_at_once_have_one_unit():
    features = plan().features.map(X)
    decisions = plan(unit="decision", batches_per_user=None, records_per_batch=None)
    with refused(dc.InvalidInput, "plans must have one unit"):
        engine.run([plan(), decisions], features, Y, [0], users=USERS)
    with refused(dc.InvalidInput, "users must be given with the unit 'user'"):
        engine.run([plan()], features, Y, [0])
    with refused(dc.InvalidInput, "users must be left out with the unit 'decision'"):
        engine.run([decisions], features, Y, [0], users=USERS)
