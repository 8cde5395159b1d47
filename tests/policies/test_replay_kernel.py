"""The kernel for a GPU draws the actions that ReplayBonusPO draws in arrays."""

from __future__ import annotations

import pytest

from interpreted import interpreted

AGREES = """
import numpy as np, torch
from discreet.arrays.stacking import stack
from discreet.policies import ReplayBonusPO, kernels
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released
from discreet.design.schedule import Schedule
rng = np.random.default_rng(0)
S, R, n = 2, 11, 70
pairs = 3 * ((0.01, 0.1), (1.0, 0.01), (0.1, 0.001)) + ((0.3, 0.02), (0.03, 0.2))
several = stack([ReplayBonusPO(learning_rate=rate, bonus=bonus) for rate, bonus in pairs])
for A, p, link in ((2, 3, "identity"), (5, 18, "logistic"), (3, 37, "clip")):
    ours = theirs = Released(A, Schedule(half_life=2))
    for j in range(4):  # all runs begin alike
        weights = rng.normal(size=(S, R if j else 1, A, p))
        ours = ours.add(Release(j + 1, 8 * 2**j, Predictor(weights, link)))
        single = torch.from_numpy(weights).float()
        theirs = theirs.add(Release(j + 1, 8 * 2**j, Predictor(single, link)))
    x = rng.normal(size=(S, 1, n, p))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    u = rng.random((S, 1, n, 2))
    given = [torch.from_numpy(each).float() for each in (x, u[..., 0])]
    shared = ReplayBonusPO(learning_rate=0.3, bonus=0.02)
    one_bonus = stack([ReplayBonusPO(learning_rate=rate, bonus=0.02) for rate, _ in pairs])
    for policy in (several, one_bonus, shared):  # parameters of each run, or of all
        parameters = map(np.atleast_1d, (policy.learning_rate, policy.bonus))
        found = kernels.replayed(theirs, *given, *parameters).numpy()
        assert found.shape == (S, R, n)
        assert len(np.unique(found)) == A
        assert (found != policy.sample(ours, x, u)).mean() < 0.01  # single precision
print("agrees")
"""


@pytest.mark.torch
def test_the_kernel_draws_the_same_actions():
    interpreted(AGREES)
