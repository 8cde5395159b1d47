"""The geometry of a structured release: svec is an isometry, and blocks never meet."""

from dataclasses import dataclass

import numpy as np
import pytest

from catalogue import batch as batch_of
from discreet.oracles.mechanisms.legal_rows import legal_rows
from discreet.oracles.mechanisms.moments import Moments, exact_moments
from discreet.oracles.mechanisms.perturb import noisy_gram, noisy_totals
from tolerances import EXACT

SIGMA = 3.0


@dataclass
class UnitDraw:
    """A noise whose one draw is the scale itself at one coordinate and zero elsewhere."""

    coordinate: int
    exact = False

    def gaussian(self, name, shape, scale):
        return self.normal(name, shape) * scale

    def normal(self, name, shape):  # noqa: ARG002
        drawn = np.zeros(shape)
        drawn.reshape(-1)[self.coordinate] = 1.0
        return drawn


def empty(blocks, p, n_actions):
    return Moments(np.zeros((blocks, p, p)), np.zeros((n_actions, p)), 1.0, 1.0)


def moved_by_draws(noisy, statistics, count):
    """Noise that each coordinate of a draw adds to statistics that are zero."""
    return np.stack([noisy(statistics, SIGMA, UnitDraw(k)).reshape(-1) for k in range(count)])


@pytest.mark.parametrize(("blocks", "p"), [(1, 4), (3, 3)])
def test_unit_draws_are_an_orthogonal_frame_of_symmetric_blocks(blocks, p):
    """Each coordinate of the draw moves the Gram by σ in Frobenius norm, at right angles."""
    count = blocks * p * (p + 1) // 2
    moved = moved_by_draws(noisy_gram, empty(blocks, p, 3), count)
    np.testing.assert_allclose(moved @ moved.T, SIGMA**2 * np.eye(count), atol=EXACT * SIGMA**2)
    matrices = moved.reshape(count, blocks, p, p)
    np.testing.assert_array_equal(matrices, np.swapaxes(matrices, -1, -2))


@pytest.mark.parametrize("shape", [(3, 2), (8,)])
def test_unit_draws_of_responses_and_outcome_sums_are_orthonormal_up_to_sigma(shape):
    def noisy(sums, sigma, noise):
        return noisy_totals("any", sums, len(shape), sigma, 1.0, noise)

    moved = moved_by_draws(noisy, np.zeros(shape), np.prod(shape))
    np.testing.assert_allclose(moved, SIGMA * np.eye(len(moved)), atol=EXACT)


def test_a_row_enters_one_block_even_if_several_actions_are_marked():
    batch = batch_of(50)
    rng = np.random.default_rng(0)
    batch.observed[rng.random(batch.observed.shape) < 0.5] = True
    batch.observed[:3] = False  # void slots
    weights = legal_rows(batch, "bandit", "general").weights
    assert batch.observed.sum(axis=1).max() == 3
    assert weights.sum(axis=1).max() == 1
    gram = exact_moments(batch, "bandit", "general").gram
    assert gram[:, 0, 0].sum() == 47 * 2**40  # the bias corner counts rows: none twice
    stretched = exact_moments(batch, "bandit", "general", np.diag([0.5, 1.0, 2.0, 4.0]))
    assert stretched.outcome_sums[0] == 47 * 2**40  # so does the count of observed losses
    half_counts = stretched.outcome_sums[3::2]
    assert half_counts.sum() == 47 * 2**39
    np.testing.assert_array_equal(half_counts, weights.sum(axis=0) * 2**39)
    traces = np.trace(stretched.gram, axis1=-2, axis2=-1)
    assert 47 * (2**40 - 2**24) < traces.sum() <= 47 * 2**40
