"""Off-policy estimates against the truth, and what goes wrong with wrong propensities."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import discreet as dc
from discreet.data import linear
from discreet.errors import InvalidInput
from discreet.lab.theory.known_bandits import known
from discreet.policies.allocation import draw
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released
from wording import refused

TRUTH = known(linear(200))
A, P = TRUTH.n_actions, TRUTH.features.shape[1]
REPEATS, ROWS = 300, 800


def released_with(weights, batches=6):
    released = Released(A)
    for number in range(1, batches + 1):
        released = released.add(Release(number, 2 ** (number - 1), Predictor(weights, "identity")))
    return released


RNG = np.random.default_rng(0)
LOGGING, TARGET = (
    partial(policy.probabilities, released_with(RNG.normal(size=(A, P)) * 0.5))
    for policy in (dc.VanillaPO(scale=8.0), dc.SquareCB(scale=8.0))
)
VALUE = float((TARGET(TRUTH.features) * TRUTH.expected[0]).sum(axis=-1).mean())


def logs_of(seed):
    rng = np.random.default_rng([1, seed])
    c = rng.integers(len(TRUTH.features), size=ROWS)
    chances = LOGGING(TRUTH.features)[c]
    actions = draw(chances, rng.random(ROWS))
    losses = (rng.random(ROWS) < TRUTH.expected[0, c, actions]).astype(float)
    return dc.Logs(TRUTH.features[c], actions, losses, chances[np.arange(ROWS), actions])


@pytest.fixture(scope="module")
def estimates():
    return [dc.evaluate_offline(logs_of(seed), TARGET) for seed in range(REPEATS)]


@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_estimates_are_centred_on_the_truth(estimates, name):
    """Within 5 standard errors of the mean of 300; seeds are fixed, and 1 in 10⁶ would fail."""
    values = np.array([getattr(each, name).value for each in estimates])
    assert abs(values.mean() - VALUE) < 5 * values.std(ddof=1) / np.sqrt(REPEATS)


@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_intervals_cover_as_often_as_they_say(estimates, name):
    """Between 91 and 98 % expected; the band is that of 300 trials at 10⁻⁶ either way."""
    covered = sum(
        getattr(each, name).low <= VALUE <= getattr(each, name).high for each in estimates
    )
    low, high = binom.ppf(1e-6, REPEATS, 0.93), binom.ppf(1 - 1e-6, REPEATS, 0.965)
    assert low <= covered <= high


def test_dr_is_right_with_a_perfect_model_and_with_none():
    def perfect(x):
        same = (x[:, None] == TRUTH.features[None]).all(axis=-1)
        return TRUTH.expected[0][same.argmax(axis=-1)]

    for model in (perfect, lambda x: np.zeros((len(x), A))):
        found = [dc.evaluate_offline(logs_of(s), TARGET, predictor=model) for s in range(80)]
        means = np.array([each.dr.value for each in found])
        assert abs(means.mean() - VALUE) < 5 * means.std(ddof=1) / np.sqrt(80)
    assert found[0].dr == found[0].ips


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("features", np.zeros(ROWS)),
        ("actions", np.zeros(3, dtype=int)),
        ("actions", np.full(ROWS, -1)),
        ("actions", np.zeros(ROWS)),
        ("losses", np.full(ROWS, np.nan)),
        ("propensities", np.zeros(ROWS)),
        ("propensities", np.full(ROWS, 1.1)),
    ],
)
def test_bad_logs_are_refused(name, values):
    with refused(InvalidInput, f"{name} must be"):
        replace(logs_of(0), **{name: values})


@pytest.fixture(scope="module")
def learner():
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(3), budget=dc.Budget.none())
    learner = dc.Learner(plan, draws=np.random.default_rng(0))
    for _ in range(2):
        decisions = learner.decide(CONTEXTS[:16])
        learner.observe(decisions.id[decisions.stored], np.zeros(decisions.stored.sum()))
    return learner


CONTEXTS = np.random.default_rng(3).normal(size=(40, 3))
LOGGED = (np.arange(40) % 2, (np.arange(40) % 3 == 0).astype(float), np.full(40, 0.5))


def test_a_learner_its_releases_and_its_policy_are_the_same_target(learner):
    logs = dc.Logs.of(learner.plan, CONTEXTS, *LOGGED)
    rule = partial(learner.plan.policy.probabilities, learner.released)
    expected = dc.evaluate_offline(logs, rule)
    assert len(learner.released.items) == 1
    for target in (learner, learner.released):
        assert dc.evaluate_offline(logs, target) == expected
    policy = learner.plan.policy
    assert dc.evaluate_offline(logs, policy, released=learner.released) == expected
    assert expected != dc.evaluate_offline(logs, dc.Uniform(), released=learner.released)


def test_raw_contexts_are_refused_with_advice_that_works(learner):
    wide = np.random.default_rng(4).normal(size=(40, 4))  # as wide as the features are
    for contexts in (CONTEXTS, wide):
        with pytest.raises(InvalidInput, match=r"Logs\.of\(plan, contexts, actions, losses"):
            dc.evaluate_offline(dc.Logs(contexts, *LOGGED), learner)
    with pytest.raises(InvalidInput, match=r"Logs\.of\(plan, contexts"):
        dc.Logs([{"age": 3}] * 40, *LOGGED)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (dc.SquareCB(), r"released must be given with a policy.*released=learner\.released"),
        (dc.SquareCB, "policy must be a Learner"),
        ("SquareCB", "policy must be a Learner"),
        (Released(A), "do not say which plan made them"),
        (lambda _: np.ones((ROWS, A)), "policy must give 800 rows of probabilities"),
        (lambda _: np.ones((ROWS, 1)), "policy must know all logged actions"),
    ],
)
def test_targets_that_lack_something_are_refused_in_words(target, said):
    with pytest.raises(InvalidInput, match=said):
        dc.evaluate_offline(logs_of(0), target)


def test_logs_of_rewards():
    sizes = {"n_actions": 2, "features": dc.UnitBall(1), "budget": dc.Budget.none()}
    plan = dc.Plan(**sizes, outcome=dc.Reward(0, 50))
    rows = [[0.1], [0.2], [0.3]], [0, 1, 1]
    logs = dc.Logs.of(plan, *rows, rewards=[50.0, 0.0, 12.5], propensities=[0.5] * 3)
    assert logs.losses.tolist() == [0.0, 1.0, 0.75]
    columns = {"x": [0.1, 0.2, 0.3], "earned": [50.0, 0.0, 12.5], "p": 0.5, "a": rows[1]}
    table = pd.DataFrame(columns)
    framed = dc.Logs.of(plan, table, "a", rewards="earned", propensities="p")
    np.testing.assert_array_equal(framed.losses, logs.losses)
    for wrong in ({"rewards": [1.0] * 3, "losses": [1.0] * 3}, {}):
        with pytest.raises(dc.InvalidInput, match="either losses or rewards"):
            dc.Logs.of(plan, *rows, propensities=[0.5] * 3, **wrong)
    with pytest.raises(dc.InvalidInput, match="range of rewards"):
        dc.Logs.of(replace(plan, outcome=dc.Loss()), *rows, rewards=[1.0] * 3, propensities=rows[1])
    with pytest.raises(dc.InvalidInput, match="row 2"):
        dc.Logs.of(plan, *rows, rewards=[1.0, 2.0, 70.0], propensities=[0.5] * 3)
