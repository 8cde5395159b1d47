"""Whatever the rows are, a private fit neither raises nor warns: either would be a release."""

import warnings

import numpy as np
import pytest

import discreet as dc
from discreet.batch import Batch

ACTIONS, DIMENSION = 3, 3
ORACLES = {
    "ridge": dc.Ridge(1e-6),
    "pooled": dc.PooledRidge(ridge=1e-9),
    "ridge-paper": dc.Ridge(1e-6, mechanism="paper"),
    "logistic": dc.Logistic(1e-6),
    "logistic-gaussian": dc.Logistic(1e-6, noise="gaussian"),
    "logistic-paper": dc.Logistic(1e-6, mechanism="paper"),
    "finite": dc.FiniteClass(np.random.default_rng(0).normal(size=(5, ACTIONS, DIMENSION + 1))),
}


def hostile(rng):
    """Rows outside the ball, not finite, with losses outside [0, 1] and any actions."""
    rows = int(rng.choice([1, 2, 7, 60]))
    features = rng.normal(size=(rows, DIMENSION + 1)) * 10.0 ** rng.uniform(-3, 300)
    features[rng.random(features.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e308])
    losses = rng.normal(size=(rows, ACTIONS)) * rng.choice([1.0, 1e300])
    losses[rng.random(losses.shape) < 0.1] = np.nan
    return Batch(features, losses, rng.random((rows, ACTIONS)) < rng.choice([0.0, 0.3, 1.0]))


@pytest.mark.parametrize("policy", [dc.SquareCB(), dc.LinUCB()], ids=["plain", "radii"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
@pytest.mark.parametrize("name", ORACLES)
def test_no_row_is_heard_of_outside(name, feedback, epsilon, policy):
    if name == "finite" and policy.uses_radii:
        policy = dc.VanillaPO()
    ball, budget = dc.UnitBall(DIMENSION), dc.Budget(epsilon, 1e-5)
    parts = {"policy": policy, "oracle": ORACLES[name], "feedback": feedback}
    plan = dc.Plan(n_actions=ACTIONS, features=ball, budget=budget, **parts)
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        earlier = ()
        for _ in range(4):
            fit = plan.mechanism.fit(hostile(rng), dc.SecureNoise(), earlier)
            earlier = earlier if fit.statistics is None else (*earlier, fit.statistics)
            published = [fit.predictor.weights, *([] if fit.gram is None else [fit.gram.values])]
            assert all(np.isfinite(each).all() for each in published)
