"""The kernels for a GPU draw the actions that policies draw in arrays."""

from __future__ import annotations

import pytest

from interpreted import interpreted

DRAWS = """
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

REPLAY = """
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

BONUS = """
import numpy as np, torch
from discreet.arrays.stacking import stack
from discreet.policies import AdaptivePO, kernels
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics


class OnGpu(torch.Tensor):
    is_cuda = True  # so that policies call kernels, which the interpreter runs


def on_gpu(values):
    return torch.from_numpy(np.array(values)).float().as_subclass(OnGpu)


launch, bonuses = kernels._replay, []


class Launched:
    def __getitem__(self, grid):
        def call(features, uniforms, weights, rate, bonus, *rest, **options):
            # The kernel reads a number for each run: one for all would be read out of bounds.
            assert rate.shape == bonus.shape == (weights.shape[2],), (rate.shape, bonus.shape)
            bonuses.append(bonus.tolist())
            return launch[grid](features, uniforms, weights, rate, bonus, *rest, **options)
        return call


kernels._replay = Launched()
rng = np.random.default_rng(0)
S, R, n, A, p = 2, 5, 70, 3, 4
cases = {
    "numbers of all runs": AdaptivePO(0.3, 0.02),
    "one bonus": stack([AdaptivePO(0.1 * k, 0.02) for k in range(1, 6)]),
    "the default rate": stack([AdaptivePO(bonus=0.02 * k) for k in range(1, 6)]),
    "arrays": stack([AdaptivePO(0.1 * k, 0.05 / k, 0.5 * k) for k in range(1, 6)]),
}
for clear in (None, 1.0, 0.6):
    ours = theirs = Released(A)
    for j in range(3):
        weights = rng.normal(size=(S, R if j else 1, A, p)) / 2
        signal = np.full((S, R, 1 + A), 0.2)
        signal[..., 0] = clear or 0.0
        for on in (np.asarray, on_gpu):
            given = None if clear is None else Statistics(None, None, 1, 1.0, signal=on(signal))
            made = Release(j + 1, 3000 * 2**j, Predictor(on(weights), "clip"), statistics=given)
            ours, theirs = (ours, theirs.add(made)) if on is on_gpu else (ours.add(made), theirs)
    x = rng.normal(size=(S, 1, n, p))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    u = rng.random((S, 1, n, 2))
    for name, policy in cases.items():
        bonuses.clear()
        found = policy.sample(theirs, on_gpu(x), on_gpu(u)).numpy()
        want = np.broadcast_to(policy.bonus / (1.0 + 21_000 / 10_000) ** 0.5, (R,))
        assert np.allclose(bonuses, [want], rtol=1e-6), (name, bonuses)
        assert found.shape == (S, R, n)
        assert (found != policy.sample(ours, x, u)).mean() < 0.01, name  # single precision
print("agrees")
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    [DRAWS, RULES, REPLAY, BONUS],
    ids=["draws", "rules", "replay", "the default policy's bonus"],
)
def test_kernels_draw_the_same_actions(code):
    interpreted(code)
