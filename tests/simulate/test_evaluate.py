"""``evaluate``: repeatable, paired across budgets, honest about what was protected."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import discreet as dc
from catalogue import ACTIONS, DIMENSION, FEATURES, ORACLES, plan_of
from discreet.privacy.events import NonPrivate
from discreet.simulate import engine
from discreet.simulate.played_batches import shuffle
from tolerances import EXACT, SOLVER


def labelled(rows, seed=0):
    """Contexts whose label is the sector of the plane that they point to."""
    rng = np.random.default_rng([9, seed])
    contexts = rng.normal(size=(rows, DIMENSION))
    angle = np.arctan2(contexts[:, 1], contexts[:, 0]) / (2 * np.pi) + 0.5
    return contexts, np.minimum((angle * ACTIONS).astype(int), ACTIONS - 1)


def test_a_seed_decides_everything():
    contexts, labels = labelled(100)
    plan = plan_of(dc.AdaptivePO(), dc.PooledRidge(), dc.Budget(1.0, 1e-5))
    one, two, other = (dc.evaluate(plan, contexts, labels, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.losses, two.losses)
    assert one.released.latest.digest == two.released.latest.digest
    assert (one.losses != other.losses).any()


def first_gram(epsilon, oracle):
    contexts, labels = labelled(40)
    budget = dc.Budget(epsilon, 0.0 if math.isinf(epsilon) else 1e-5)
    plan = plan_of(dc.LinUCB(), oracle, budget, first_batch=16)
    gram = dc.evaluate(plan, contexts, labels, seed=3).released.items[0].gram
    return gram.values, plan.mechanism.gram


@pytest.mark.parametrize("oracle", [dc.Ridge(), dc.Logistic(noise="gaussian")], ids=repr)
def test_budgets_share_rows_actions_and_base_noise(oracle):
    """The first Gram at ε is G + σ(ε)·E with one G and one E for all ε."""
    clean, _ = first_gram(math.inf, oracle)
    base = []
    for epsilon in (1.0, 4.0):
        noisy, sigma = first_gram(epsilon, oracle)
        base.append((noisy - clean) / sigma)
    np.testing.assert_allclose(base[0], base[1], rtol=0, atol=SOLVER)
    assert np.abs(base[0]).max() > 0.5


@pytest.mark.parametrize(
    "name", [name for name, case in ORACLES.items() if case.budget.private and not case.radii]
)
def test_secure_noise_keeps_its_budget_and_seeded_noise_claims_nothing(name):
    case = ORACLES[name]
    contexts, labels = labelled(12)
    plan = plan_of(
        dc.SquareCB(), case.oracle, case.budget, feedback=case.feedback, losses=case.losses
    )
    secure = dc.evaluate(plan, contexts, labels, noise=dc.SecureNoise())
    spent = secure.ledger.spent()
    assert 0.5 * case.budget.epsilon < spent.epsilon <= case.budget.epsilon
    assert spent.delta <= case.budget.delta
    assert not any(isinstance(item.event, NonPrivate) for item in secure.released.items)

    seeded = dc.evaluate(plan, contexts, labels, seed=0)
    assert seeded.ledger.spent().epsilon == math.inf
    assert all(isinstance(item.event, NonPrivate) for item in seeded.released.items)


# --- a learner ---------------------------------------------------------------------------------

ROWS = 110
ITEMS = {f"item {i}": [0.3 * np.cos(i), 0.6 * np.sin(i)] for i in range(ACTIONS)}
CONTROL = dc.Control(0.25, 1)
PEOPLE = {"unit": "user", "batches_per_user": 3, "records_per_batch": 4}
KINDS = {
    "no horizon": {},
    "horizon": {"horizon": ROWS},
    "horizon within the rows": {"horizon": ROWS - 30},
    "noise": {"budget": dc.Budget(8.0, 1e-5), "oracle": dc.PooledRidge(), "horizon": ROWS},
    "radii": {"policy": dc.LinUCB(), "horizon": ROWS},
    "logistic": {"oracle": dc.Logistic(), "horizon": ROWS},
    "half life": {"oracle": dc.PooledRidge(), "half_life": 2, "growth": 1.5},
    "longest batch": {"longest_batch": 16, "horizon": ROWS},
    "floor": {"floor": 0.05, "horizon": ROWS},
    "rewards": {"outcome": dc.Reward(0.0, 1.0), "horizon": ROWS},
    "full feedback": {"feedback": "full", "horizon": ROWS},
    "users": PEOPLE,
    "users and a horizon": {**PEOPLE, "horizon": ROWS},
    "users and control": {**PEOPLE, "control": CONTROL, "horizon": ROWS},
    "control": {"control": CONTROL},
    "control and a horizon": {"control": CONTROL, "horizon": ROWS},
    "control and a horizon within the rows": {"control": CONTROL, "horizon": ROWS - 30},
    "control and a horizon in the last batch": {"control": CONTROL, "horizon": ROWS + 5},
    "control and a far horizon": {"control": CONTROL, "horizon": 10 * ROWS},
    "control at random": {"control": dc.Control(0.25), "horizon": ROWS},
    "offers": {"offers": "joint", "horizon": ROWS},
    "offers and noise": {"offers": "joint", "budget": dc.Budget(8.0, 1e-5), "horizon": ROWS},
    "offers and control": {"offers": "joint", "control": dc.Control(0.25), "horizon": ROWS},
    "offers of blocks": {"offers": "blocks", "horizon": ROWS},
}


def plan_of_kind(kind):
    changes = {"first_batch": 8, "horizon": None, **KINDS[kind]}
    offers = changes.pop("offers", None)
    if offers is None:
        return plan_of(changes.pop("policy", dc.SquareCB()), **changes)
    joint = {
        "features": dc.Joint(FEATURES, dc.UnitBall(2)),
        "actions": dc.Catalogue(dc.UnitBall(2), ITEMS),
    }
    blocks = {"features": FEATURES, "actions": list(ITEMS)}
    features = joint if offers == "joint" else blocks
    return dc.Plan(**{"budget": dc.Budget.none(), **features, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluation_decides_what_a_learner_decides(kind):
    """Draws and noise are seeded: every action is the same, every release but for rounding."""
    contexts, labels = labelled(ROWS)
    plan, users = plan_of_kind(kind), np.arange(ROWS) % 17
    of_people, offered = plan.unit == "user", plan.actions is not None
    # Requests are offered one, two or all actions.
    rng = np.random.default_rng(0)
    options = [rng.permutation(ACTIONS)[: 1 + row % ACTIONS] for row in range(ROWS)]
    offers = [[list(ITEMS)[item] for item in row] for row in options]
    table = (np.arange(ACTIONS) != labels[:, None]).astype(float)
    words = {"losses": table}
    if offered:
        lost = [table[row, some] for row, some in enumerate(options)]
        words = {"losses": lost, "offers": offers}
    if of_people:
        words |= {"users": users}
    found = dc.evaluate(plan, contexts, **words, seed=3)

    order, u = shuffle(3, ROWS)
    rounds = min(ROWS, plan.horizon or ROWS)
    draws = iter(u[:, None])  # one row after the other
    learner = dc.Learner(
        plan,
        noise=dc.SeededNoise(3),
        draws=SimpleNamespace(random=lambda _: next(draws)),
        window=0 if of_people else 1000,  # batches of people end by their window alone
    )
    if of_people:  # whose key is secret; a simulation has none
        learner._store.people._key = b""
    chosen = []
    for row in order[:rounds]:
        words = {"user": int(users[row])} if of_people else {}
        words |= {"actions": offers[row]} if offered else {}
        decision = learner.decide(contexts[row], **words)
        index = list(ITEMS).index(decision.action) if offered else decision.action_index
        chosen.append(list(options[row]).index(index) if offered else index)
        if decision.stored:
            loss = table[row] if plan.feedback == "full" else table[row, index]
            rewarded = isinstance(plan.outcome, dc.Reward)
            learner.observe(decision.id, **({"reward": 1 - loss} if rewarded else {"loss": loss}))
    np.testing.assert_array_equal(found.actions, chosen)
    made = learner.released.items[: len(found.released.items)]
    assert len(made) >= 2
    for mine, theirs in zip(found.released.items, made, strict=True):
        np.testing.assert_allclose(mine.predictor.weights, theirs.predictor.weights, atol=SOLVER)
    lift = None if plan.control is None else dc.lift(learner.released)
    assert repr(vars(found.lift) if found.lift else None) == repr(vars(lift) if lift else None)


def test_a_stack_plays_the_control_of_each_evaluation():
    """Plans that differ in their horizon have different slots in the batch that ends the data."""
    contexts, labels = labelled(ROWS)
    kinds = [kind for kind in KINDS if kind.startswith("control") and "within" not in kind]
    kinds.append("no horizon")
    plans = [plan_of_kind(kind) for kind in kinds]
    plans += [
        replace(plan, budget=dc.Budget(level, 1e-5)) for plan in plans for level in (1.0, 8.0)
    ]
    features = plans[0].features.map(contexts)
    found = engine.run(plans, features, labels, [3])[:, 0, -1]
    expected = [dc.evaluate(plan, contexts, labels, seed=3).loss for plan in plans]
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)
    assert expected[0] != expected[1]


def test_releases_can_be_saved_explained_and_used_as_a_prior(tmp_path):
    contexts, labels = labelled(400)
    control = {"control": dc.Control(0.5), "first_batch": 8}
    plan = plan_of(dc.AdaptivePO(), dc.PooledRidge(), dc.Budget(8.0, 1e-5), **control)
    run = dc.evaluate(plan, contexts, labels, noise=dc.SecureNoise())
    run.released.save(tmp_path / "released.json")
    again = dc.Released.load(tmp_path / "released.json")
    assert again.schedule.lengths() == run.released.schedule.lengths()
    assert [each.digest for each in again.items] == [each.digest for each in run.released.items]
    assert dc.lift(again).text == run.lift.text
    explained = [dc.explain_decision(each, contexts[0]) for each in (run, run.released, again)]
    assert explained[0] == explained[1] == explained[2]
    assert replace(plan, prior=dc.prior_from_released(plan, again)).prior.records > 0
    with pytest.raises(dc.InvalidInput, match="NonPrivate"):
        dc.prior_from_released(plan, dc.evaluate(plan, contexts, labels).released)
