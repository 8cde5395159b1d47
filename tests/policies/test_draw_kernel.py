"""The kernels for a GPU draw the actions that arrays draw."""

from __future__ import annotations

import pytest

from interpreted import interpreted

AGREES = """
import numpy as np, torch
from discreet.policies import kernels
from discreet.policies.allocation import draw
rng = np.random.default_rng(0)
S, R, n = 2, 3, 1100
for A, stored in ((2, "rows"), (5, "actions")):
    shape = (S, R, n, A) if stored == "rows" else (S, R, A, n)
    shares = torch.from_numpy(rng.random(shape)).float()
    shares = shares if stored == "rows" else shares.mT
    u = torch.from_numpy(rng.random((S, 1, n, 2))).float()[..., 0]
    found = kernels.drawn(shares, u)
    assert len(torch.unique(found)) == A
    assert torch.equal(found, draw(shares, u))
print("agrees")
"""


@pytest.mark.torch
def test_the_kernel_draws_the_same_actions():
    interpreted(AGREES)


RULES = """
import numpy as np, torch
from discreet.arrays.stacking import stack
from discreet.policies import AdaCB, FastCB, Greedy, LinUCB, RegCB, SquareCB, VanillaPO, kernels
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
rng = np.random.default_rng(0)
S, R, n = 2, 3, 90
grid = [
    [SquareCB(scale=2.0**k, exponent=0.5) for k in range(R)],
    [FastCB(scale=10.0**k, exponent=0.25) for k in range(R)],
    [LinUCB(width=0.1 * 3**k) for k in range(R)],
    [RegCB(width=0.1 * 3**k) for k in range(R)],
    [AdaCB(scale=2.0**k, exponent=0.5, width=0.3 * 2**k) for k in range(R)],
    [VanillaPO(scale=2.0**k) for k in range(R)],
    [Greedy()] * R,
]
for A, p, link in ((2, 3, "logistic"), (5, 18, "logistic"), (3, 7, "identity"), (9, 4, "clip")):
    weights = rng.normal(size=(S, R, A, p))
    half = rng.normal(size=(S, R, A, p, 2 * p))
    values = half @ np.swapaxes(half, -1, -2)
    x = rng.normal(size=(S, 1, n, p))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    u = rng.random((S, 1, n, 2))
    ours = Released(A).add(Release(1, 16, Predictor(weights, link), Gram(values, False, 1.0)))
    weights, values, *given = (torch.from_numpy(each).float() for each in (weights, values, x, u))
    gram = Gram(values, False, 1.0)
    theirs = Released(A).add(Release(1, 16, Predictor(weights, link), gram))
    for policies in grid:
        policy, rule = stack(policies), type(policies[0])._gpu_rule
        found = kernels.ruled(rule, theirs, *given, *policy._gpu_parameters(theirs)).numpy()
        assert found.shape == (S, R, n)
        assert len(np.unique(found)) == A
        assert (found != policy.sample(ours, x, u)).mean() < 0.005, (rule, A)  # single precision
print("agrees")
"""


@pytest.mark.torch
def test_the_kernel_of_rules_draws_the_same_actions():
    interpreted(RULES)
