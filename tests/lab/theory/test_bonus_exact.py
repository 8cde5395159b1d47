"""The fast updates of BonusPO are those of Algorithm 3, to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.policies.bonus_po import average_of_updates
from interpreted import interpreted

AGREEMENT = 1e-10


def literal(gaps, reach, rate, length):
    """Every step for every action, as the text says."""
    logits, mass = np.zeros_like(gaps), np.zeros_like(gaps)
    for _ in range(length):
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        bonus = np.minimum(reach / (1.0 + mass), 1.0)
        mass += weights / weights.sum(axis=-1, keepdims=True)
        logits -= rate * np.maximum(gaps - bonus, 0.0)
    return mass / length


def gaps_for(rng, rows, A, largest=1.0):
    losses = largest * rng.random((rows, A))
    losses[0] = 0.5  # all tied
    losses[1, 1:] = losses[1, 0]  # nearly all tied
    return losses - losses.min(axis=-1, keepdims=True)


@pytest.mark.parametrize("A", [2, 3, 10])
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.003])
@pytest.mark.parametrize("speed", [1.0, 30.0])
def test_the_literal_algorithm(A, scale, speed):
    rng = np.random.default_rng(A)
    length = 2048
    gaps = gaps_for(rng, 60, A)
    reach = 2 * scale * length / np.sqrt(A * length / 2)
    rate = speed * np.sqrt(2 * np.log(A) / length)
    fast = average_of_updates(gaps, reach, rate, length)
    np.testing.assert_allclose(fast, literal(gaps, reach, rate, length), rtol=0, atol=AGREEMENT)
    np.testing.assert_allclose(fast.sum(axis=-1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("largest", [3.0, 50.0])
def test_gaps_above_one_meet_the_cap_of_the_bonus(largest):
    """Ridge predictions may leave [0, 1]."""
    gaps = gaps_for(np.random.default_rng(0), 40, 4, largest)
    fast = average_of_updates(gaps, 20.0, 0.05, 512)
    np.testing.assert_allclose(fast, literal(gaps, 20.0, 0.05, 512), rtol=0, atol=AGREEMENT)


def test_more_rows_than_fit_into_the_cache_and_parameters_that_differ():
    rng = np.random.default_rng(2)
    gaps = gaps_for(rng, 3000, 3)
    reach, rate = np.array([2.0, 9.0]), np.array([0.1, 0.4])
    fast = average_of_updates(gaps, reach[:, None, None], rate[:, None, None], 64)
    assert fast.shape == (2, 3000, 3)
    for run in range(2):
        np.testing.assert_allclose(
            fast[run], literal(gaps, reach[run], rate[run], 64), rtol=0, atol=AGREEMENT
        )


@pytest.mark.torch
def test_torch_is_the_same():
    torch = pytest.importorskip("torch")
    gaps = gaps_for(np.random.default_rng(5), 100, 4)
    found = average_of_updates(torch.asarray(gaps), 8.0, 0.1, 300)
    np.testing.assert_array_equal(found.numpy(), average_of_updates(gaps, 8.0, 0.1, 300))


KERNEL = """
import numpy as np, torch
from discreet.policies import bonus_po, kernels
rng = np.random.default_rng(0)
for A in (2, 4):
    gaps = np.sort(1.2 * rng.random((70, A - 1)), axis=1)
    reach, rate = rng.uniform(1, 20, 70), rng.uniform(0.02, 0.5, 70)
    start = bonus_po._unchanged_steps(gaps[:, -1], reach, A, 128)
    order = np.argsort(start)
    rows = [each[order] for each in (gaps, reach, rate, start)]
    plain = bonus_po._updated_rows(*rows, length=128)
    fused = kernels.updated(*map(torch.from_numpy, rows), 128).numpy()
    assert abs(plain - fused).max() < 1e-10
print("agrees")
"""


@pytest.mark.torch
def test_the_kernel_is_the_same():
    interpreted(KERNEL)
