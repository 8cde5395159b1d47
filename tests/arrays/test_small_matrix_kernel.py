"""The kernels for a GPU repair, solve and invert what the array form does."""

from __future__ import annotations

import pytest

from interpreted import interpreted

AGREES = """
import numpy as np, torch
from discreet.arrays import linear_algebra, triton_kernels as kernel
rng = np.random.default_rng(0)
for p in (1, 5, 17, 33, 40):
    half = rng.normal(size=(4, p, 2 * p))
    matrices = half @ np.moveaxis(half, 1, 2) / p
    matrices[0] -= (0.1 + np.linalg.eigvalsh(matrices[0])[0]) * np.eye(p)  # must be repaired
    matrices[1] *= 1e4
    matrices[2, 0, :], matrices[2, :, 0] = 0.0, 0.0
    matrices[2, 0, 0] = -1.0  # only the first pivot fails
    vectors, plus, step = rng.normal(size=(4, p)), np.full(4, 0.02), np.full(4, 0.06)
    given = [each.astype(np.float32) for each in (matrices, plus, step, vectors)]
    given = [torch.from_numpy(each) for each in given]
    pairs = [
        (linear_algebra.inverse_repaired(matrices, step, 0.02), kernel.inverted(*given[:3])),
        (linear_algebra.solve_repaired(matrices, vectors, step, 0.02), kernel.solved(*given)),
    ]
    for want, found in pairs:
        assert abs(found.numpy() - want).max() < 1e-4 * abs(want).max(), p
    rows = given[0][0, :3]  # of one matrix, as some rows of features
    pairs = map(torch.from_numpy, np.triu_indices(p))
    assert torch.equal(kernel.packed_products(rows, *pairs), linear_algebra.pack_products(rows))
print("agrees")
"""


@pytest.mark.torch
def test_the_kernels_agree_with_the_array_form():
    interpreted(AGREES)
