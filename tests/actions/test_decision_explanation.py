"""Explanations: effects add up, errors are those of the noise that is really drawn."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.errors import InvalidInput

PERSON = dc.Schema([dc.Number("age", 0, 100), dc.Category("device", ["phone", "desk"])])
FILM = dc.Schema([dc.Number("year", 1900, 2000), dc.Flag("new")])
ITEMS = {f"i{k}": {"year": 1900 + 17 * k % 100, "new": k % 2 == 0} for k in range(5)}
CONTEXT = {"age": 80, "device": "phone"}
RNG = np.random.default_rng(0)
CONTEXTS = [
    {"age": float(age), "device": ["phone", "desk"][device]}
    for age, device in zip(RNG.uniform(0, 100, 900), RNG.integers(2, size=900), strict=True)
]


def plan_of(kind, epsilon=8.0, **rest):
    actions = {"joint": dc.Catalogue(FILM, ITEMS), "blocks": list("abc")}[kind]
    budget = dc.Budget(epsilon, 1e-5) if epsilon else dc.Budget.none()
    return dc.Plan(actions=actions, features=PERSON, budget=budget, first_batch=300, **rest)


def taught(plan, noise=None, rows=900):
    learner = dc.Learner(plan, noise=noise or dc.SeededNoise(0), draws=np.random.default_rng(0))
    for start in range(0, rows, 300):
        some = CONTEXTS[start : start + 300]
        decided = learner.decide(some)
        old = np.array([each["age"] > 50 for each in some])
        good = np.isin(decided.action, ["a", "i1", "i3"])
        learner.observe(decided.id, 0.8 * (old == good) + 0.1)
    learner.decide(some[:1])
    return learner


@pytest.mark.parametrize("kind", ["joint", "blocks"])
@pytest.mark.parametrize("oracle", [dc.PooledRidge(), dc.Ridge()])
def test_effects_add_up_to_the_difference(kind, oracle):
    learner = taught(plan_of(kind, epsilon=None, oracle=oracle))
    found = dc.explain_decision(learner, CONTEXT)
    weights = learner.released.latest.predictor
    whole = sum(each.loss for each in found.effects)
    raw = replace(weights, link="identity")
    learner.released.items[-1].__dict__["predictor"] = raw  # before predictions are clipped
    scores = dc.explain_decision(learner, CONTEXT).predicted
    assert whole == pytest.approx(scores[found.action] - np.mean(list(scores.values())), abs=1e-9)
    assert found.probabilities[found.action] == max(found.probabilities.values())
    assert len(found.to_frame()) == len(found.effects)
    assert found.action in repr(found)


@pytest.mark.parametrize("kind", ["joint", "blocks"])
def test_errors_are_those_of_drawn_noise(kind):
    """The same rows, many noises: a large ε, so that the first order is enough."""
    plan = plan_of(kind, epsilon=30.0)
    named = None
    values, errors = [], []
    for seed in range(60):
        found = dc.explain_decision(taught(plan, dc.SeededNoise(seed), rows=300), CONTEXT, named)
        named = found.action
        by_name = {each.feature: each for each in found.effects}
        values.append({name: each.loss for name, each in by_name.items()})
        errors.append({name: each.error for name, each in by_name.items()})
    for name in values[0]:
        drawn = np.std([each[name] for each in values], ddof=1)
        stated = np.median([each[name] for each in errors])
        assert 0.5 < stated / drawn < 3.0, name  # raised eigenvalues move less than the first order


def test_an_offer_is_explained():
    learner = taught(plan_of("joint"))
    found = dc.explain_decision(learner.released, CONTEXT, "i1", actions=["i1", "i2"])
    assert list(found.predicted) == ["i1", "i2"]


def test_what_cannot_be_explained_says_so():
    learner = dc.Learner(plan_of("blocks"))
    with pytest.raises(InvalidInput, match="there is none yet"):
        dc.explain_decision(learner, CONTEXT)
    learner = taught(plan_of("blocks"))
    with pytest.raises(InvalidInput, match="one of those offered"):
        dc.explain_decision(learner, CONTEXT, "z")
    with pytest.raises(InvalidInput, match="one by one"):
        dc.explain_decision(learner, [CONTEXT])
    with pytest.raises(InvalidInput, match="learner"):
        dc.explain_decision(7, CONTEXT)


def test_rewards_are_explained_in_their_units():
    x = np.random.default_rng(0).uniform(-0.7, 0.7, size=(3000, 2))
    rewards = np.stack([40.0 * (x[:, 0] > 0), 40.0 * (x[:, 0] <= 0)], axis=1)
    plan = dc.Plan(
        actions=["left", "right"],
        features=dc.UnitBall(2),
        budget=dc.Budget(8.0, 1e-5),
        outcome=dc.Reward(0, 50),
    )
    found = dc.explain_decision(dc.evaluate(plan, x, rewards=rewards), [0.6, 0.0], "left")
    assert "left: predicted reward 4" in repr(found)
    frame = found.to_frame()
    assert frame["feature"][0] == "[0]"
    assert frame["reward"][0] == pytest.approx(-50 * found.effects[0].loss)
    assert frame["reward"][0] > 5


def test_effects_within_noise_that_exceeds_the_range_are_not_known():
    found = dc.explain_decision(taught(plan_of("blocks")), CONTEXT)
    assert "not known" not in repr(found)
    wide = [each._replace(error=1.5) for each in found.effects[:1]]
    lines = repr(replace(found, effects=(*wide, *found.effects[1:]), error=1.2)).splitlines()
    assert "predicted loss not known yet" in lines[0]
    assert lines[1].endswith("not known yet (± 1.500)")
    assert "not known" not in lines[2]
