"""The kernel for a GPU draws the actions that arrays draw."""

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
