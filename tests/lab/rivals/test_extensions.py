"""Rivals on the public extension points: two policies and an oracle, through the usual door."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import discreet as dc
from catalogue import ACTIONS, WIDTH
from discreet.audit.noise_sources import Chosen
from discreet.batch import Batch
from discreet.lab.rivals import AdaSSP, EpsGreedy, ThompsonSampling
from discreet.privacy.accounting import epsilon
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released

SETTINGS = [EpsGreedy.campaign_settings(), ThompsonSampling.campaign_settings()]


@pytest.fixture
def released():
    rng = np.random.default_rng(0)
    gram = np.stack([k * np.eye(WIDTH) for k in (1.0, 4.0, 30.0)])
    predictor = Predictor(rng.normal(size=(ACTIONS, WIDTH)), "identity")
    return Released(ACTIONS).add(Release(1, 8, predictor, Gram(gram, dense=False, step=1.0)))


FEATURES = dc.UnitBall(WIDTH - 1).map(np.random.default_rng(3).normal(size=(20, WIDTH - 1)))


@pytest.mark.parametrize("policies", SETTINGS, ids=lambda each: type(each[0]).__name__)
def test_a_policy_keeps_the_contract(policies, released):
    for policy in policies:
        found = policy.probabilities(released, FEATURES)
        np.testing.assert_allclose(found.sum(-1), 1.0)
        assert (found >= 0).all()
        alone = policy.probabilities(released, FEATURES[3:4])
        np.testing.assert_allclose(alone[0], found[3], atol=1e-12)
        begin = policy.probabilities(Released(ACTIONS), FEATURES)
        np.testing.assert_allclose(begin, 1 / ACTIONS)


def test_thompson_sampling_draws_the_least_of_normals(released):
    policy = ThompsonSampling(width=0.7)
    means = released.latest.predictor.losses(FEATURES)
    widths = 0.7 * released.radii(FEATURES)
    draws = np.random.default_rng(5).normal(size=(200_000, ACTIONS))
    for row, found in enumerate(policy.probabilities(released, FEATURES[:3])):
        shares = np.bincount((means[row] + widths[row] * draws).argmin(-1), minlength=ACTIONS)
        np.testing.assert_allclose(found, shares / len(draws), atol=0.01)
    two = Released(2).add(
        Release(
            1,
            8,
            Predictor(np.array([[0.2], [0.5]]), "identity"),
            Gram(np.array([[[3.0]], [[1.0]]]), dense=False, step=1.0),
        )
    )
    radii = two.radii(np.ones((1, 1)))[0]
    expected = norm.cdf(0.3 / np.hypot(*radii))
    assert ThompsonSampling().probabilities(two, np.ones((1, 1)))[0, 0] == pytest.approx(
        expected, abs=1e-3
    )


def test_adassp_is_ridge_where_data_are_many_and_shrinks_where_they_are_few():
    oracle, budget = AdaSSP(), dc.Budget(1.0, 1e-5)
    mechanism = oracle.calibrate(dc.Problem(2, 3, "bandit", "general", False), budget)
    assert epsilon(mechanism.event, 1e-5) <= 1.0
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(40_000, 2))
    features = dc.UnitBall(2).map(contexts)
    losses = np.repeat((contexts[:, :1] > 0).astype(float), 2, axis=1)
    observed = np.eye(2, dtype=bool)[rng.integers(2, size=len(features))]
    many = mechanism.fit(Batch(features, losses, observed), Chosen())
    for action in range(2):
        x, y = features[observed[:, action]], losses[observed[:, action], 0]
        expected = np.linalg.lstsq(x, y, rcond=None)[0]
        np.testing.assert_allclose(many.predictor.weights[action], expected, atol=1e-3)
    few = mechanism.fit(Batch(features[:20], losses[:20], observed[:20]), Chosen())
    bound = math.sqrt(3 * math.log(2 * 9 / 0.05)) * mechanism.gram
    middle = np.array([0.5 * math.sqrt(2), 0, 0])
    assert np.linalg.norm(few.predictor.weights - middle, axis=-1).max() < 20 / bound


def test_adassp_noises_the_smallest_eigenvalue():
    budget = dc.Budget(1.0, 1e-5)
    mechanism = AdaSSP().calibrate(dc.Problem(2, 3, "bandit", "general", False), budget)
    features = dc.UnitBall(2).map(np.random.default_rng(0).normal(size=(4000, 2)))
    batch = Batch(features, np.ones((4000, 2)), np.eye(2, dtype=bool)[np.arange(4000) % 2])
    drawn = -np.ones((1, 2)) * 1e6  # so low that the whole ridge stays
    low = mechanism.fit(batch, Chosen({"smallest eigenvalue": drawn}))
    high = mechanism.fit(batch, Chosen())
    assert not np.allclose(low.predictor.weights, high.predictor.weights, atol=1e-3)
