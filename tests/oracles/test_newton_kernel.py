"""The kernel for a GPU solves what Newton's method in arrays solves."""

import pytest

from interpreted import interpreted

AGREES = """
import numpy as np, torch
from discreet.oracles.mechanisms import newton, newton_kernel
rng = np.random.default_rng(0)
S, R, A, n = 2, 3, 2, 70
for p in (3, 17, 18):
    x = rng.normal(size=(S, 1, n, p))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    chosen = rng.integers(0, A, size=(S, R, 1, n))
    observed = np.moveaxis(chosen == np.arange(A)[:, None], -1, -2).copy()
    observed[:, :, :5] = False  # void slots
    right = rng.integers(0, A, size=(S, 1, 1, n))
    labels = np.moveaxis(right != np.arange(A)[:, None], -1, -2).astype(float)
    ridge = np.array([1e-2, 1.0, 3.0])[:, None] * n
    tilt = rng.normal(size=(S, 1, A, p)) * np.array([0.0, 1.0, 50.0])[:, None, None]
    want = newton.minimise(x, observed.astype(float), labels, ridge, tilt, 1e-9)
    single = lambda values: torch.from_numpy(np.array(values, dtype=np.float32))
    tilts = single(tilt + 0.0 * want)
    ridges = single(ridge) + 0.0 * tilts[..., 0]
    given = single(x), torch.from_numpy(observed), single(labels), ridges, tilts
    found = newton_kernel.minimised(*given, STEPS, newton.SINGLE, newton.LAST_STEP).numpy()
    assert abs(found - want).max() < 1e-4 * abs(want).max(), abs(found - want).max()
print("agrees")
"""

HARD = """
import numpy as np, torch
from discreet.oracles.mechanisms import newton, newton_kernel
rng = np.random.default_rng(0)
single = lambda values: torch.from_numpy(np.array(values, dtype=np.float32))
def solved(x, labels, ridge):
    n, p = x.shape
    x, labels = x[None, None], labels[None, None, :, None].astype(float)
    weights, tilt = np.ones((1, 1, n, 1)), np.zeros((1, 1, 1, p))
    want = newton.minimise(x, weights, labels, np.array([[n * ridge]]), tilt, 1e-9)
    given = single(x), torch.from_numpy(weights > 0), single(labels)
    rest = single([[[n * ridge]]]), single(tilt), newton.NEWTON_STEPS, newton.SINGLE
    found = newton_kernel.minimised(*given, *rest, newton.LAST_STEP).numpy()
    means = [1.0 / (1.0 + np.exp(-x[0, 0] @ theta[0, 0, 0])) for theta in (found, want)]
    return abs(means[0] - means[1]).max()
x = rng.normal(size=(700, 3))  # many rows: first some of them
x /= np.linalg.norm(x, axis=-1, keepdims=True)
assert solved(x, x[:, 0] + 0.5 * rng.normal(size=700) > 0, 1e-3) < 1e-5
for several, groups in ((6, 3), (4, 4)):  # columns that add up to one another, and a small ridge
    kinds = rng.integers(0, several, size=(60, groups))
    each = (0.4 * np.eye(several)[k] for k in kinds.T)
    x = np.concatenate([np.full((60, 1), 0.7), *each], axis=1)
    assert solved(x, kinds[:, 0] + kinds[:, 1] > several - 1, 1e-6) < 1e-3
print("agrees")
"""


@pytest.mark.torch
def test_the_kernel_solves_many_rows_and_columns_that_depend_on_each_other():
    interpreted(HARD)


@pytest.mark.torch
def test_the_kernel_finds_the_same_minimum():
    interpreted(AGREES.replace("STEPS", "newton.NEWTON_STEPS"))
