"""NumPy and torch fit equally: the same seeded draws, the same numbers."""

import numpy as np
import pytest

import discreet as dc
from catalogue import batch_for, every_oracle, stacked
from discreet.batch import Batch
from libraries import NO_TORCH
from tolerances import SOLVER

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytestmark = pytest.mark.torch


def as_torch(data):
    return Batch(*(torch.asarray(a) for a in (data.features, data.losses, data.observed)))


def check_equal(oracle, data, noise):
    mine, yours = oracle.fit(data, noise), oracle.fit(as_torch(data), noise)
    assert yours.predictor.weights.dtype == torch.float64
    np.testing.assert_allclose(
        yours.predictor.weights.numpy(), mine.predictor.weights, rtol=SOLVER, atol=SOLVER
    )
    if mine.gram is not None:
        np.testing.assert_allclose(
            yours.gram.values.numpy(), mine.gram.values, rtol=SOLVER, atol=SOLVER
        )


@pytest.mark.parametrize("case", every_oracle)
@pytest.mark.parametrize("rows", [1, 40])
def test_one_fit(case, rows):
    check_equal(case.calibrated, batch_for(case, rows), dc.SeededNoise(3, 1))


@pytest.mark.parametrize("case", every_oracle)
def test_a_stack_of_fits(case):
    seeds = (0, 1)
    data = stacked([batch_for(case, 20, seed) for seed in seeds])
    check_equal(dc.stack([case.calibrated] * 3), data, dc.SeededNoise(seeds, 1))
