"""Priors: what they add to the pool, what they cost (nothing), and which are refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from client.chains import KEY
from client.chains import chain as documents_of
from discreet.client.chain import Chain
from discreet.client.recomputation import recompute
from discreet.errors import CorruptRelease, InvalidInput
from discreet.plan.plan import Plan
from discreet.policies.floored import Floored
from discreet.privacy.events import NonPrivate
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released

RNG = np.random.default_rng(1)
X = RNG.uniform(-0.5, 0.5, size=(3_000, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
PLAYED = RNG.integers(3, size=len(X))
LOSSES = (PLAYED != Y) * 1.0
PLAN = Plan(n_actions=3, features=dc.UnitBall(3), budget=dc.Budget(1.0, 1e-5))
LOGGED = slice(0, 1_500)


def prior(plan=PLAN, rows=LOGGED, **words):
    return dc.prior_from_logs(plan, X[rows], PLAYED[rows], LOSSES[rows], **words)


def test_without_noise_a_prior_is_the_same_as_its_rows():
    """Ridge regression on prior and batch together, in any order."""
    oracle = dc.PooledRidge(geometry="plain")
    plan = replace(PLAN, budget=dc.Budget.none(), oracle=oracle, first_batch=200)
    mechanism = replace(plan, prior=prior(plan)).mechanism
    both = prior(plan, slice(0, 1_700)).statistics
    parts = prior(plan).statistics, prior(plan, slice(1_500, 1_700)).statistics
    together, separate = mechanism.conclusion([both])[0], mechanism.conclusion(parts)[0]
    np.testing.assert_allclose(together, separate, atol=1e-6)


def test_without_noise_a_prior_with_its_own_geometry_finds_a_linear_truth():
    """Its rows have other weights than those of batches, and no bias. Contexts are clear here."""
    plan = replace(PLAN, budget=dc.Budget.none(), first_batch=200)
    losses = 0.5 + 0.5 * X[:, 0] / np.abs(X[:, 0]).max() * (PLAYED - 1)
    parts = [
        dc.prior_from_logs(plan, X[rows], PLAYED[rows], losses[rows]).statistics
        for rows in (LOGGED, slice(1_500, 1_700))
    ]
    weights, _, signal = plan.mechanism.conclusion(parts)
    assert signal[0] == 1.0
    predicted = (plan.features.map(X) @ weights.T)[np.arange(len(X)), PLAYED]
    np.testing.assert_allclose(predicted, losses, rtol=0, atol=1e-6)


def test_the_ledger_does_not_see_a_prior():
    exact = dc.SecureNoise(fast=True)
    warm = dc.evaluate(replace(PLAN, prior=prior()), X[:200], Y[:200], noise=exact)
    cold = dc.evaluate(PLAN, X[:200], Y[:200], noise=exact)
    assert warm.ledger.to_json() == cold.ledger.to_json()


def run(plan, rows=300):
    learner = dc.Learner(plan, window=None, noise=dc.SecureNoise(fast=True))
    for start in range(0, rows, 50):
        part = slice(start, start + 50)
        made = learner.decide(X[part])
        learner.observe(made.id, (np.asarray(made.action) != Y[part]) * 1.0)
    return learner.released


def test_a_plan_with_a_prior_survives_documents_and_recomputation(tmp_path):
    plan = replace(PLAN, prior=prior(weight=0.5))
    assert Plan.from_config(plan.to_config()) == plan
    assert Plan.from_config(plan.to_config()).digest == plan.digest != PLAN.digest
    released = run(plan)
    first = released.items[0].statistics
    np.testing.assert_array_equal(first.matrix, plan.prior.following)
    released.save(tmp_path / "released.json")
    read = Released.load(tmp_path / "released.json")
    assert recompute(read)
    assert read.statistics[0].records == 750
    with pytest.raises(CorruptRelease, match="statistics"):
        recompute(replace(read, prior=None))


@pytest.mark.parametrize(
    "change",
    [{}, {"policy": dc.VanillaPO()}, {"floor": 0.2}, {"policy": dc.LinUCB()}, {"feedback": "full"}],
)
def test_the_first_batch_is_decided_by_the_public_prediction_of_the_prior(change):
    """Learner, one row or many, and a chain of documents have the same probabilities."""
    plan = replace(PLAN, **change)
    losses = LOSSES if plan.feedback == "bandit" else (np.arange(3) != Y[:, None]) * 1.0
    made = dc.prior_from_logs(plan, X, None if losses.ndim > 1 else PLAYED, losses)
    plan = replace(plan, prior=made)
    chances = plan.played_policy.probabilities(plan.nothing_released(), plan.features.map(X[:9]))
    assert np.abs(chances - 1 / 3).max() > 0.1
    learner = dc.Learner(plan, draws=np.random.default_rng(0))
    many = learner.decide(X[:9])
    np.testing.assert_array_equal(many.propensity, chances[np.arange(9), many.action_index])
    chain = Chain(KEY).extended(documents_of(plan, plan.nothing_released()))
    features = plan.features.map(X[:9])
    np.testing.assert_array_equal(chain.policy.probabilities(chain.deciding, features), chances)
    released = plan.nothing_released().add(Release(1, 16, Predictor(np.zeros((3, 4)), "clip")))
    bare = plan.policy if plan.floor is None else Floored(plan.policy, plan.floor)
    if not plan.policy.uses_radii:  # after a release the prior changes nothing
        np.testing.assert_array_equal(
            plan.played_policy.probabilities(released, features),
            bare.probabilities(released, features),
        )


def test_releases_of_another_experiment_are_a_prior():
    released = run(PLAN, 1_500)
    made = dc.prior_from_released(PLAN, released, weight=0.5)
    assert made.variance > 0.0
    plan = replace(PLAN, prior=made)
    assert "releases of plan" in plan.explain()
    # The pool of what was released, and nothing else, is what the first batch begins with.
    alone, weights = PLAN.mechanism.conclusion([replace(made, weight=1.0).statistics]), released
    np.testing.assert_allclose(alone[0], weights.latest.predictor.weights, atol=0.05)


@pytest.mark.parametrize("exposed", ["seeded", "no budget"])
def test_releases_without_protection_are_no_prior(exposed):
    """The ledger of the new plan would claim ε for sums that protect no one."""
    plan = replace(PLAN, oracle=dc.PooledRidge(geometry="plain"))
    earlier = plan if exposed == "seeded" else replace(plan, budget=dc.Budget.none())
    noise = dc.SeededNoise(0) if exposed == "seeded" else None
    learner = dc.Learner(earlier, window=None, noise=noise)
    made = learner.decide(X[:16])
    learner.observe(made.id, LOSSES[:16])
    learner.release()
    for chosen in (plan, earlier):
        with pytest.raises(InvalidInput, match="release 1 is marked NonPrivate"):
            dc.prior_from_released(chosen, learner.released)


def test_one_release_without_protection_is_enough():
    released = run(PLAN, 1_500)
    first, *others = released.items
    exposed = replace(first, event=NonPrivate("seeded noise"))
    with pytest.raises(InvalidInput, match="release 1 is marked NonPrivate"):
        dc.prior_from_released(PLAN, replace(released, items=(exposed, *others)))


def test_frames_names_and_rewards():
    names = np.asarray(["a", "b", "c"])
    plan = replace(PLAN, n_actions=None, actions=tuple(names), outcome=dc.Reward(0, 10))
    frame = pd.DataFrame(X[LOGGED], columns=list("xyz"))
    frame["shown"], frame["won"] = names[PLAYED[LOGGED]], 10 * (1 - LOSSES[LOGGED])
    made = dc.prior_from_logs(plan, frame, "shown", reward="won")
    np.testing.assert_array_equal(made.response, prior().response)


@pytest.mark.parametrize(
    "change",
    [
        {"features": dc.UnitBall(2)},
        {"n_actions": 4},
        {"feedback": "full"},
        {"outcome": dc.Reward(0, 1)},
        {"policy": dc.LinUCB()},
    ],
)
def test_a_prior_of_something_else_is_refused(change):
    with pytest.raises(InvalidInput, match="prior must have the features"):
        replace(PLAN, prior=prior(), **change)
    with pytest.raises(InvalidInput, match="released must have the features"):
        dc.prior_from_released(replace(PLAN, **change), run(PLAN))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: replace(PLAN, prior=prior(), oracle=dc.Ridge()), "oracle must pool"),
        (lambda: prior(replace(PLAN, oracle=dc.Ridge())), "oracle must pool"),
        (lambda: prior(weight=0.0), "weight must be"),
        (lambda: dc.prior_from_released(PLAN, PLAN.nothing_released()), "at least one release"),
    ],
)
def test_other_mistakes_are_refused(call, said):
    with pytest.raises(InvalidInput, match=said):
        call()
