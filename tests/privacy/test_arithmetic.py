"""Numbers on a computer: integers that never round, samplers that are close enough."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

import discreet.batch as batch_module
from catalogue import SHAPES
from catalogue import batch as batch_of
from discreet.batch import Batch, PartitionedBatch
from discreet.design.schedule import LARGEST_LOG
from discreet.errors import InvalidInput
from discreet.features.unit_ball import with_bias
from discreet.oracles import PooledRidge, Problem, Ridge
from discreet.oracles.mechanisms import legal_rows as legal_rows_module
from discreet.oracles.mechanisms import moments as moments_module
from discreet.oracles.mechanisms.geometry import publishable
from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.oracles.mechanisms.moments import exact_moments
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Budget
from discreet.privacy.events import Gaussian
from discreet.privacy.sensitivities import (
    DISTANCE_FACTOR,
    LARGEST_BATCH,
    sampler_distance,
)


def reordered(batch, order):
    return Batch(batch.features[order], batch.losses[order], batch.observed[order])


MATRIX = publishable(np.random.default_rng(2).normal(size=(4, 4)) * 10.0 ** np.arange(-2, 2))
BOUNDS = (2.0, 4.0)
"""Rows that are stretched by MATRIX have lengths on both sides of each."""
GEOMETRIES = pytest.mark.parametrize("matrix", [None, MATRIX], ids=["plain", "stretched"])


@GEOMETRIES
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_are_the_same_bits_in_any_order_and_chunking(shape, matrix, monkeypatch):
    batch = batch_of(9000)
    batch.observed[:] |= shape[0] == "full"
    whole = exact_moments(batch, *shape, matrix)
    shuffled = reordered(batch, np.random.default_rng(1).permutation(9000))
    for chunk in (4096, 1000, 7):
        monkeypatch.setattr(moments_module, "_EXACT_ROWS", chunk)
        again = exact_moments(shuffled, *shape, matrix)
        np.testing.assert_array_equal(whole.gram, again.gram)
        np.testing.assert_array_equal(whole.response, again.response)
        np.testing.assert_array_equal(whole.outcome_sums, again.outcome_sums)


@GEOMETRIES
def test_sums_are_those_of_unbounded_integers(matrix):
    batch = batch_of(300)
    legal = legal_rows_module.legal_rows(batch, "bandit", "general")
    grid, shrink = legal.grid, np.ones((300, 1))
    if matrix is not None:
        grid, shrink = legal_rows_module.shortened_rows(legal.grid, matrix, *BOUNDS)
        assert 0.2 < (shrink < 1.0).mean() < 0.8
    rows = grid.astype(np.int64).astype(object)
    whole = np.trunc((legal.targets - 0.5) * GRID)
    centred = whole.astype(np.int64).astype(object)
    shortened = np.trunc(whole * shrink).astype(np.int64).astype(object)
    weights = legal.weights.astype(np.int64).astype(object)
    moments = exact_moments(batch, "bandit", "general", matrix, BOUNDS)
    if matrix is not None:  # in steps of 2^−40
        expected = [300 * 2**40, 2 * (weights * centred**2).sum()]
        for action in range(3):  # ½·Σ(y − ½), and half of the count
            expected.append((weights * centred)[:, action].sum() * 2**19)
            expected.append(weights[:, action].sum() * 2**39)
        assert list(moments.outcome_sums) == expected
        assert moments.outcome_sums.dtype == np.int64
    for action in range(3):
        gram = (weights[:, action, None] * rows).T @ rows
        np.testing.assert_array_equal(moments.gram[action].astype(object), gram)
        response = rows.T @ (weights[:, action] * shortened[:, action])
        np.testing.assert_array_equal(moments.response[action].astype(object), response)


def test_sums_of_many_squares_are_those_of_unbounded_integers():
    """2^15 squares of 2^38 are 2^53: from there on floats would round, in an order of their own."""
    n = 2**17
    losses = np.random.default_rng(0).beta(0.2, 0.2, size=(n, 1))
    for first in (0.5, 0.5 + 2.0**-20):  # one of the two sums is odd, which no such float is
        losses[0] = first
        batch = Batch(with_bias(np.zeros((n, 1))), losses, np.ones((n, 1), dtype=bool))
        outcomes = exact_moments(batch, "bandit", "general", np.eye(2)).outcome_sums
        centred = [int(each) for each in np.trunc((losses[:, 0] - 0.5) * GRID)]
        squares = 2 * sum(each**2 for each in centred)
        assert list(outcomes) == [n * 2**40, squares, sum(centred) * 2**19, n * 2**39]
        assert squares > 2**55


def test_a_full_chunk_of_the_largest_products_is_exact():
    """4,096 products of 2^40 are 2^52 < 2^53: floats hold every partial sum."""
    assert moments_module._EXACT_ROWS * GRID**2 <= 2**53
    n = 2 * 4096 + 1
    axis = np.zeros((n, 2))
    axis[:, 1] = 1.0
    batch = Batch(with_bias(axis), np.ones((n, 1)), np.ones((n, 1), dtype=bool))
    made = exact_moments(batch, "bandit", "general")
    assert made.gram[0, 0, 0] == made.gram[0, 2, 2] == made.gram[0, 0, 2] == n * GRID**2
    assert made.response[0, 0] == made.response[0, 2] == n * GRID**2 // 2


def test_the_largest_batch_leaves_room_for_noise():
    """Sums reach at most 2^62; noise of 2^62 is a thousand deviations even at ε = 0.01."""
    assert LARGEST_BATCH * GRID**2 == 2**62
    for oracle, feedback in (
        (Ridge(), "full"),
        (PooledRidge(), "full"),
        *(
            (PooledRidge(response_weight=weight, geometry=geometry), "bandit")
            for weight in (1 / 8, 2.0, 2.8)
            for geometry in ("learned", "plain")
        ),
    ):
        scales = oracle.calibrate(Problem(50, 11, feedback), Budget(0.01, 1e-5))
        plain = not getattr(scales, "stretched", False)  # steps of 2^−41 and 2^−40/√2, else 2^−40
        assert 2**62 / (scales.gram * (2 if plain else 1) * GRID**2) > 1000
        assert 2**62 / (scales.response * (math.sqrt(2) if plain else 1) * GRID**2) > 1000


def test_a_larger_batch_is_refused_by_its_public_size(monkeypatch):
    monkeypatch.setattr(legal_rows_module, "LARGEST_BATCH", 8)
    exact_moments(batch_of(8), "bandit", "general")
    with pytest.raises(InvalidInput, match="at most 8 records"):
        exact_moments(batch_of(9), "bandit", "general")


@pytest.mark.parametrize("matrix", [None, np.diag([0.0, 0.0, 1.0])], ids=["plain", "stretched"])
@pytest.mark.parametrize("records", [LARGEST_BATCH, 2 * LARGEST_BATCH, LARGEST_LOG])
def test_sums_of_larger_batches_are_those_of_unbounded_integers(matrix, records):
    """2^22 records reach 2^62, 2^23 reach 2^63 and would wrap, a log of 2^40 reaches 2^80."""
    axis = np.zeros((4096, 2))
    axis[:, 1] = 1.0
    rows = Batch(with_bias(axis), np.ones((4096, 1)), np.ones((4096, 1), dtype=bool))

    def summed(of):
        """The largest sums that parts of 2^22 records can have; many parts as their total."""
        full = tuple(each * (LARGEST_BATCH // 4096) for each in of(rows))
        parts = records // LARGEST_BATCH
        many = tuple(each.astype(object) * parts for each in full)
        yield from [full] * parts if parts <= 2 else [many]

    none = np.empty((0, 1))
    large = PartitionedBatch(np.empty((0, 3)), none, none > 0, size=records, summed=summed)
    made, one = (exact_moments(each, "bandit", "general", matrix) for each in (large, rows))
    assert made.gram.max() == records * GRID**2
    assert made.gram.dtype == (np.int64 if records <= LARGEST_BATCH else object)
    for name in ("gram", "response", "outcome_sums")[: 2 if matrix is None else 3]:
        expected = [int(each) * (records // 4096) for each in getattr(one, name).ravel()]
        assert getattr(made, name).ravel().tolist() == expected


def test_a_batch_in_memory_is_summed_some_rows_at_a_time(monkeypatch):
    rows = batch_of(1000)
    whole = exact_moments(rows, "bandit", "general", MATRIX, BOUNDS)
    monkeypatch.setattr(batch_module, "SUMMED_TOGETHER", 64)
    for largest, kind in ((LARGEST_BATCH, np.int64), (900, object)):
        monkeypatch.setattr(batch_module, "LARGEST_BATCH", largest)
        parts = exact_moments(rows, "bandit", "general", MATRIX, BOUNDS)
        for name in ("gram", "response", "outcome_sums"):
            assert getattr(parts, name).tolist() == getattr(whole, name).tolist()
            assert getattr(parts, name).dtype == kind
            noisy = getattr(parts, name) + np.full(1, 2**45 + 1)
            assert noisy.astype(float).tolist() == (
                (getattr(whole, name) + (2**45 + 1)).astype(float).tolist()
            )


def total_variation(sigma):
    """Between the discrete Gaussian and a rounded one, by direct summation."""
    k = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    discrete = np.exp(-(k**2) / (2.0 * sigma**2))
    discrete /= discrete.sum()
    rounded = ndtr((k + 0.5) / sigma) - ndtr((k - 0.5) / sigma)
    return float(np.abs(discrete - rounded).sum()) / 2


@pytest.mark.parametrize("sigma", [10.0, 13.7, 30.0, 100.0, 300.0])
def test_distance_of_discrete_and_rounded_gaussian(sigma):
    leading = 4 * math.exp(-0.5) / math.sqrt(2 * math.pi) / 48
    assert leading == pytest.approx(0.0202, abs=5e-5)
    found = total_variation(sigma)
    assert found <= sampler_distance(1, sigma) == DISTANCE_FACTOR / sigma**2
    # The proven bound: leading term plus half the variation of |φ''|, over 48σ³.
    assert found <= (leading + 1.5101 / 2 / 48 / sigma) / sigma**2 + 1e-13
    assert found == pytest.approx(leading / sigma**2, rel=0.02)


def test_delta_pays_for_the_sampler():
    """(ε, δ') with an ideal sampler is (ε, δ' + (1 + e^ε)·d) with ours."""
    for multiplier, distance in ((4.0, 1e-6), (1.0, 3e-7), (0.5, 1e-10)):
        cost = epsilon(Gaussian(multiplier, 1.0, sampler_distance=distance), 1e-5)
        ideal = epsilon(Gaussian(multiplier, 1.0), 1e-5 - (1 + math.exp(cost)) * distance)
        assert cost >= ideal
        assert cost > epsilon(Gaussian(multiplier, 1.0), 1e-5) or distance < 1e-9


def test_a_sampler_that_takes_most_of_delta_is_refused():
    assert epsilon(Gaussian(4.0, 1.0, sampler_distance=4e-6), 1e-5) == math.inf
