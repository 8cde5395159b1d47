"""Rows stretched by a public matrix: exact, short enough, and worth it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from catalogue import ACTIONS, SHAPES, WIDTH, batch
from discreet.batch import Batch
from discreet.errors import PrivateData
from discreet.features.unit_ball import with_bias
from discreet.oracles.mechanisms.geometry import publishable
from discreet.oracles.mechanisms.legal_rows import (
    GRID,
    integers_of,
    legal_rows,
    matrix_bits,
    shortened_rows,
)
from discreet.oracles.mechanisms.moments import NORMALISED, exact_moments, floating_moments
from discreet.privacy.sensitivities import centre
from discreet.releases.statistics import Statistics
from tolerances import EXACT

BOUNDS = [NORMALISED, (1.0, 1.0), (0.8, 2.5)]
"""Lengths (low, high) of M b: rows are divided by max(low, ‖M b‖), and losses not below high."""


def matrices(p, seed=0):
    """Published matrices, from harmless to nearly too large for a float."""
    rng = np.random.default_rng([p, seed])
    normal = rng.normal(size=(p, p))
    scales = 10.0 ** rng.uniform(-6.0, 6.0, size=p)
    made = {
        "identity": np.eye(p),
        "normal": normal,
        "scaled columns": normal * scales,
        "scaled rows": normal * scales[:, None],
        "huge": normal * 1e150,
        "tiny": normal * 1e-150,
        "huge and tiny": normal * 10.0 ** rng.choice([-150.0, 150.0], size=(p, p)),
        "all equal": np.ones((p, p)),
        "one direction": np.outer(normal[0], normal[-1]),
        "below a power of two": np.where(np.eye(p), 1.0 - 2.0**-45, normal / 9.0),
        "largest": np.full((p, p), np.finfo(float).max),
        "smallest": np.full((p, p), 2.0**-1000),
    }
    return {name: publishable(matrix) for name, matrix in made.items()}


def grid_rows(n, p, seed=0):
    """Rows of private releases: random ones, axes, and ones that are all constant."""
    rng = np.random.default_rng([n, p, seed])
    contexts = rng.normal(size=(n, p - 1)) * 10.0 ** rng.uniform(-7, 2, size=(n, 1))
    contexts[: p - 1] = np.eye(p - 1)[:n]
    contexts[p - 1 : p + 1] = 0.0
    data = Batch(with_bias(contexts), np.zeros((n, 1)), np.ones((n, 1), dtype=bool))
    return legal_rows(data, "bandit", "general").grid


def whole(array):
    """Python's integers, which never round."""
    return np.array([int(x) for x in np.ravel(array)], dtype=object).reshape(np.shape(array))


def joined(made):
    """Rows and the factors of their losses."""
    return np.concatenate(made, axis=-1)


# Exact rows


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("p", [2, 5, 33])
def test_a_row_has_the_same_bits_whatever_is_beside_it(p, bounds):
    rows = grid_rows(400, p)
    order = np.random.default_rng(1).permutation(400)
    for matrix in matrices(p).values():
        expected = joined(shortened_rows(rows, matrix, *bounds))
        shuffled = joined(shortened_rows(rows[order], matrix, *bounds))
        np.testing.assert_array_equal(shuffled, expected[order])
        for chunk in (1, 7, 150):
            parts = [
                joined(shortened_rows(rows[i : i + chunk], matrix, *bounds))
                for i in range(0, 400, chunk)
            ]
            np.testing.assert_array_equal(np.concatenate(parts), expected)


@pytest.mark.parametrize("p", [1, 2, 5, 33, 300])
def test_no_row_is_longer_than_the_grid(p):
    """In Python's integers, and with every product formed in them too."""
    for seed in range(3 if p < 300 else 1):
        rows = grid_rows(300 if p < 300 else 30, p, seed)
        assert ((whole(rows)[:, 1:] ** 2).sum(axis=-1) <= GRID**2).all()
        for name, matrix in matrices(p, seed).items():
            for bounds in BOUNDS:
                z, factors = shortened_rows(rows, matrix, *bounds)
                assert (z == np.trunc(z)).all()
                lengths = (whole(z) ** 2).sum(axis=-1)
                assert max(lengths) <= GRID**2, name
                assert ((factors >= 0.0) & (factors <= 1.0)).all()
            z, factors = shortened_rows(rows, matrix, *NORMALISED)
            lengths = (whole(z) ** 2).sum(axis=-1)
            assert (factors == 1.0).all()
            integers = integers_of(matrix)
            assert np.abs(integers).max() < 2.0 ** matrix_bits(p)
            assert (np.abs(rows) @ np.abs(integers).T <= 2**53).all()  # so are all partial sums
            # No more is lost than rounding toward zero takes from each of p coordinates.
            alive = np.array(lengths, dtype=float) > 0
            assert (np.sqrt(np.array(lengths, dtype=float))[alive] > GRID - math.sqrt(p) - 1).all()


@pytest.mark.parametrize("bounds", BOUNDS[1:], ids=str)
@pytest.mark.parametrize("p", [1, 2, 5, 33])
def test_rows_and_losses_are_divided_by_the_lengths_between_the_bounds(p, bounds):
    """Against floats: M b/max(low, ‖M b‖) and min(1, high/‖M b‖)."""
    low, high = bounds
    rows = grid_rows(60, p)
    images, outcomes = matrices(p), []
    for name in ("identity", "normal", "scaled columns", "scaled rows"):
        matrix = images[name]
        products = (rows / GRID * math.sqrt(0.5)) @ matrix.T
        lengths = np.linalg.norm(products, axis=-1, keepdims=True) + 2.0**-100
        made, factors = shortened_rows(rows, matrix, low, high)
        expected = products / np.maximum(low, lengths)
        np.testing.assert_allclose(made / GRID, expected, rtol=0, atol=3.0 * math.sqrt(p) / GRID)
        np.testing.assert_allclose(factors, np.minimum(1.0, high / lengths), rtol=p / GRID)
        outcomes.append(np.concatenate([lengths < low, lengths > high], axis=-1).any(axis=0))
    assert p == 1 or np.any(outcomes, axis=0).all()  # some rows are on either side


def test_rows_that_the_matrix_makes_nothing_of_are_void():
    """M b = 0: no Gram, no response, and no answer."""
    away = np.zeros((3, 3))
    away[1:, 1:] = [[1.0, 1.0], [1.0, 1.0]]
    contexts = np.array([[0.5, -0.5], [0.0, 0.0], [0.5, 0.25]])
    data = Batch(with_bias(contexts), np.ones((3, 1)), np.ones((3, 1), dtype=bool))
    for feedback, losses in SHAPES:
        made = exact_moments(data, feedback, losses, publishable(away))
        alone = exact_moments(
            Batch(data.features[2:], data.losses[2:], data.observed[2:]),
            feedback,
            losses,
            publishable(away),
        )
        np.testing.assert_array_equal(made.gram, alone.gram)
        np.testing.assert_array_equal(made.response, alone.response)
        if feedback == "bandit":
            halves = [GRID**2 // 4, GRID**2 // 2]
            np.testing.assert_array_equal(made.outcome_sums, [GRID**2, GRID**2 // 2, *halves])
        empty = exact_moments(data, feedback, losses, np.zeros((3, 3)))
        assert not empty.gram.any()
        assert not empty.response.any()
        assert empty.outcome_sums is None or not empty.outcome_sums.any()


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1.0, 1.0 / 3.0], [0.0, 1.0]]),
        np.array([[1.0, 2.0**-40], [0.0, 1.0]]),
        np.array([[1.0, np.nan], [0.0, 1.0]]),
        np.array([[np.inf, 0.0], [0.0, 1.0]]),
        np.random.default_rng(0).normal(size=(2, 2)),
    ],
    ids=["a third", "too small a part", "not a number", "infinite", "not rounded"],
)
def test_a_matrix_that_is_not_as_published_is_refused(matrix):
    with pytest.raises(PrivateData, match=r"must be as a release publishes it.*publishable"):
        shortened_rows(np.full((1, 2), float(GRID)), matrix)
    data = Batch(with_bias(np.ones((4, 1))), np.zeros((4, 1)), np.ones((4, 1), dtype=bool))
    mechanism = dc.PooledRidge().calibrate(dc.Problem(1, 2), dc.Budget(1.0, 1e-5))
    first = mechanism.fit(data, dc.SecureNoise(fast=True)).statistics
    with pytest.raises(PrivateData):
        mechanism.fit(data, dc.SecureNoise(fast=True), (replace(first, following=matrix),))


# Exact and floating sums


@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
@pytest.mark.parametrize("rows", [1, 7, 5000])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_exact_and_floating_sums_agree_within_the_grid(feedback, losses, rows, bounds):
    """Two roundings move a row by at most 3√p·2^−20, and a centred label moves by 2^−20."""
    data = batch(rows, feedback, 2, losses)
    legal = legal_rows(data, feedback, losses)
    same = Batch(legal.features, legal.targets, data.observed)
    off = 3.0 * math.sqrt(WIDTH) * 2.0**-20
    for name, matrix in matrices(WIDTH).items():
        if name in ("huge and tiny", "one direction", "all equal", "largest", "smallest"):
            continue  # floats of a simulation are for matrices that have an inverse
        if name == "tiny" and bounds[0] > 0.0:
            continue  # rows of no length are void where they are exact
        exact = exact_moments(data, feedback, losses, matrix, bounds)
        floating = floating_moments(same, feedback, centre(losses, ACTIONS), matrix, bounds)
        assert exact.gram_unit == exact.response_unit == 2.0**-40
        gram = np.abs(exact.gram * exact.gram_unit - floating.gram).max()
        assert gram <= rows * 2.0 * off
        response = np.abs(exact.response * exact.response_unit - floating.response).max()
        assert response <= rows * (off + 2.0**-19)  # a loss is rounded once more if shortened
        assert (
            (exact.outcome_sums is None) == (floating.outcome_sums is None) == (feedback == "full")
        )
        if feedback == "bandit":
            outcomes = exact.outcome_sums * exact.gram_unit
            assert outcomes.shape == floating.outcome_sums.shape == (2 + 2 * ACTIONS,)
            assert outcomes[0] == floating.outcome_sums[0] == rows
            assert abs(outcomes[1] - floating.outcome_sums[1]) <= rows * 2.0**-19 + rows * EXACT
            half_sums = np.abs(outcomes[2::2] - floating.outcome_sums[2::2])
            assert half_sums.max() <= rows * 2.0**-21 + rows * EXACT
            np.testing.assert_array_equal(outcomes[3::2], floating.outcome_sums[3::2])
            np.testing.assert_array_equal(outcomes[3::2], 0.5 * legal.weights.sum(axis=0))


@pytest.mark.parametrize("bounds", [*BOUNDS, (100.0, 300.0)], ids=str)
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_floating_sums_are_those_of_a_loop(feedback, losses, bounds):
    low, high = bounds
    data, middle = batch(60, feedback, 4, losses), centre(losses, ACTIONS)
    matrix = np.random.default_rng(0).normal(size=(WIDTH, WIDTH)) * 10.0 ** np.arange(WIDTH)
    made = floating_moments(data, feedback, middle, matrix, bounds)
    gram, response = np.zeros_like(made.gram), np.zeros_like(made.response)
    totals, by_action = np.zeros(2), np.zeros((ACTIONS, 2))
    for b, row_losses, observed in zip(data.features, data.losses, data.observed, strict=True):
        length = np.linalg.norm(matrix @ b)
        v = matrix @ b / max(low, length)
        for action in np.flatnonzero(observed):
            loss = row_losses[action] - middle
            response[action] += loss * min(1.0, high / length) * v
            totals += [1.0, 2 * loss**2]
            by_action[action] += [loss / 2, 0.5]
            if feedback == "bandit" or action == 0:
                gram[action] += np.outer(v, v)
    if feedback == "bandit":
        outcomes = [*totals, *by_action.ravel()]
        np.testing.assert_allclose(made.outcome_sums, outcomes, rtol=0, atol=60 * EXACT)
    np.testing.assert_allclose(made.gram, gram, rtol=0, atol=60 * EXACT)
    np.testing.assert_allclose(made.response, response, rtol=0, atol=60 * EXACT)


# What is published


@pytest.mark.parametrize("p", [1, 2, 5, 33, 70])
def test_a_published_matrix_is_published_as_it_is(p):
    """Rounding it again changes nothing, a fit takes it, and a document keeps every bit."""
    for name, matrix in matrices(p).items():
        np.testing.assert_array_equal(publishable(matrix), matrix, err_msg=name)
        integers_of(matrix)
        if name == "largest":
            continue  # no document holds such numbers
        gram, response = np.zeros((1, p, p)), np.zeros((1, p))
        sums = np.array([3.0, 2.0, 1.0, 1.5])
        made = Statistics(gram, response, 4, 1.0, matrix, matrix.T, sums)
        read = Statistics.from_json(json.loads(json.dumps(made.to_json())))
        np.testing.assert_array_equal(read.matrix, matrix, err_msg=name)
        np.testing.assert_array_equal(read.following, matrix.T, err_msg=name)


def test_publishing_moves_a_matrix_by_less_than_its_last_bit():
    rng = np.random.default_rng(3)
    for p in (1, 2, 5, 33):
        matrix = rng.normal(size=(p, p))
        moved = np.abs(publishable(matrix) - matrix).max()
        assert moved < np.abs(matrix).max() * 2.0 ** (1 - matrix_bits(p))


# A chain of releases

COLUMNS = {
    "a column of zeros": np.array([1.0, 0.3, 0.0, 0.1]),
    "scales from 1e-6 to 1e6": 10.0 ** np.linspace(-6.0, 6.0, 4),
    "equal": np.ones(4),
}


def lengths(count, growth=1.3):
    return [math.ceil(16 * growth**i) for i in range(count)]


def rows_of(scales, n, seed):
    """Contexts in the ball: the longest possible one has norm one."""
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1.0, 1.0, size=(n, len(scales))) * scales
    return with_bias(contexts / np.linalg.norm(scales))


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("epsilon", [0.5, 8.0, 1e4])
@pytest.mark.parametrize("exact", [False, True], ids=["float", "exact"])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_matrices_stay_well_conditioned(columns, epsilon, exact, feedback):
    """25 releases: a direction without any variance must not be stretched for ever."""
    mechanism = dc.PooledRidge().calibrate(dc.Problem(2, 5, feedback), dc.Budget(epsilon, 1e-5))
    source, earlier = dc.SecureNoise(fast=True) if exact else dc.SeededNoise(5), ()
    rng = np.random.default_rng(6)
    for number, n in enumerate(lengths(25), start=1):
        observed = np.eye(2, dtype=bool)[rng.integers(2, size=n)] | (feedback == "full")
        data = Batch(rows_of(COLUMNS[columns], n, number), rng.random((n, 2)), observed)
        made = mechanism.fit(data, source.for_batch(number), earlier)
        assert np.isfinite(made.predictor.weights).all()
        assert np.linalg.cond(made.statistics.following) <= 2.0**17
        earlier = (*earlier, made.statistics)
