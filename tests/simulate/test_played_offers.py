"""Simulations with offers: one run as a stack, sizes put together, logs of other policies."""

import numpy as np
import pytest

import discreet as dc
from discreet.simulate import engine
from discreet.simulate.labelled_data import played_offers
from tolerances import EXACT

RNG = np.random.default_rng(0)
ITEMS = {f"i{number}": row for number, row in enumerate(RNG.uniform(-0.5, 0.5, size=(12, 2)))}
CONTEXTS = RNG.uniform(-0.6, 0.6, size=(300, 3))
TABLE = np.clip(0.5 + CONTEXTS[:, :2] @ np.array([*ITEMS.values()]).T, 0, 1).round(3)
SIZES = RNG.integers(1, 6, size=300)
RAGGED = [RNG.choice(12, size=size, replace=False) for size in SIZES]
EVEN = [RNG.choice(12, size=4, replace=False) for _ in range(300)]


def named(offers):
    names = list(ITEMS)
    return [[names[place] for place in offer] for offer in offers]


def lost(offers):
    return [TABLE[row, offer] for row, offer in enumerate(offers)]


def joint_plan(budget=None, **rest):
    features = dc.Joint(dc.UnitBall(3), dc.UnitBall(2))
    catalogue = dc.Catalogue(dc.UnitBall(2), ITEMS)
    return dc.Plan(actions=catalogue, features=features, budget=budget or dc.Budget.none(), **rest)


def block_plan(budget=None, **rest):
    features, budget = dc.UnitBall(3), budget or dc.Budget.none()
    return dc.Plan(actions=list(ITEMS), features=features, budget=budget, **rest)


PLANS = {"joint": joint_plan, "blocks": block_plan}


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("offers", [EVEN, RAGGED], ids=["even", "ragged"])
def test_a_stack_of_runs_and_seeds_is_its_single_runs(kind, offers):
    plans = [PLANS[kind](dc.Budget(epsilon, 1e-5)) for epsilon in (2.0, 8.0)]
    features = plans[0].features.map(CONTEXTS)
    played, truth = played_offers(plans[0], features, named(offers), None, lost(offers))
    together = engine.run(plans, played, truth, [0, 1, 2])
    for place, plan in enumerate(plans):
        for seed in (0, 1, 2):
            one = dc.evaluate(plan, CONTEXTS, losses=lost(offers), offers=named(offers), seed=seed)
            np.testing.assert_allclose(together[place, seed, -1], one.loss, atol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("offers", [EVEN, RAGGED], ids=["even", "ragged"])
def test_torch_agrees(kind, offers):
    plans = [PLANS[kind](dc.Budget(8.0, 1e-5), floor=0.02)]
    features = plans[0].features.map(CONTEXTS)
    played, truth = played_offers(plans[0], features, named(offers), None, lost(offers))
    plain = engine.run(plans, played, truth, [0, 1])
    torch = engine.run(plans, played, truth, [0, 1], engine.Machine("cpu"))
    np.testing.assert_allclose(torch, plain, atol=1e-9)


def test_all_items_to_everybody_is_a_table_of_losses():
    plan = joint_plan()
    table = dc.evaluate(plan, CONTEXTS, losses=TABLE)
    every = dc.evaluate(plan, CONTEXTS, losses=TABLE, offers=[list(ITEMS)] * 300)
    np.testing.assert_allclose(table.losses, every.losses, atol=EXACT)
    assert table.best_fixed == pytest.approx(TABLE.mean(axis=0).min())
    best = np.array(list(ITEMS))[TABLE.argmin(axis=1)]
    labelled = dc.evaluate(plan, CONTEXTS, best)
    assert set(np.unique(labelled.losses)) <= {0.0, 1.0}


def test_best_fixed_is_the_best_item_among_those_offered():
    found = dc.evaluate(joint_plan(), CONTEXTS, losses=lost(EVEN), offers=named(EVEN))
    means = [
        np.mean([TABLE[row, item] for row in range(300) if item in EVEN[row]]) for item in range(12)
    ]
    literal = [TABLE[row, min(EVEN[row], key=lambda item: means[item])] for row in range(300)]
    assert found.best_fixed == pytest.approx(np.mean(literal))
    assert found.uniform == pytest.approx(np.mean([np.mean(row) for row in lost(EVEN)]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"losses": lost(EVEN)[:5]}, "losses must have a number for each"),
        ({"losses": [row[:2] for row in lost(EVEN)]}, "losses must have a number for each"),
        ({"losses": [row + 3 for row in lost(EVEN)]}, r"in \[0, 1\]"),
        ({}, "got none"),
        ({"losses": lost(EVEN), "groups": np.zeros(300)}, "groups must be left out"),
    ],
)
def test_what_does_not_fit_is_refused(words, said):
    with pytest.raises(dc.InvalidInput, match=said):
        dc.evaluate(joint_plan(), CONTEXTS, offers=named(EVEN), **words)


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("offers", [EVEN, RAGGED], ids=["even", "ragged"])
def test_logs_with_offers_tell_what_another_policy_costs(kind, offers):
    """Played at random, so the truth of any policy is the mean of its table."""
    plan = PLANS[kind]()
    learner = dc.Learner(plan)
    for start in range(0, 300, 50):
        rows = range(start, start + 50)
        decided = learner.decide(CONTEXTS[rows], actions=[named(offers)[row] for row in rows])
        places = [list(ITEMS).index(action) for action in decided.action]
        learner.observe(decided.id, TABLE[rows, places])
    rng = np.random.default_rng(4)
    shown = [rng.choice(offer) for offer in offers]
    losses = TABLE[np.arange(300), shown]
    chances = [1 / len(offer) for offer in offers]
    names = np.array(list(ITEMS))[shown]
    logs = dc.Logs.of(plan, CONTEXTS, names, losses, chances, offers=named(offers))
    found = dc.evaluate_offline(logs, learner)
    again = dc.evaluate_offline(logs, learner.released)
    assert found.dr == again.dr
    decided = learner.decide(CONTEXTS, actions=named(offers))
    chosen = enumerate(decided._chances())
    truth = np.mean([chance @ TABLE[row, offers[row]] for row, chance in chosen])
    for estimate in (found.ips, found.dr):
        assert abs(estimate.value - truth) < 4.5 * estimate.standard_error
    with pytest.raises(dc.InvalidInput, match="row 0: action must be one of those offered"):
        dc.Logs.of(plan, CONTEXTS, ["zz"] * 300, losses, chances, offers=named(offers))
