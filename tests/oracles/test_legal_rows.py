"""Whatever is passed, the rows that enter a private release obey the rules."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalogue import ACTIONS, SHAPES, WIDTH
from discreet.batch import Batch
from discreet.oracles.mechanisms.legal_rows import GRID, legal_rows
from discreet.oracles.mechanisms.moments import exact_moments

numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 1.0, 2**-0.5]),
)


def check_legal(rows, feedback, losses):
    z = rows.grid
    np.testing.assert_array_equal(z, np.trunc(z))
    np.testing.assert_array_equal(z[:, 0], GRID)
    integers = z[:, 1:].astype(object)  # Python's integers: no rounding in the check itself
    assert all(sum(int(v) ** 2 for v in row) <= GRID**2 for row in integers)
    assert np.isfinite(rows.targets).all()
    assert ((rows.targets >= 0) & (rows.targets <= 1)).all()
    assert set(np.unique(rows.weights)) <= {0.0, 1.0}
    if feedback == "bandit":
        assert (rows.weights.sum(axis=1) <= 1).all()
    else:
        assert rows.weights.shape[1] == 1
    if losses == "one_label":
        np.testing.assert_array_equal(np.sort(rows.targets, axis=1)[:, 0], 0.0)
        np.testing.assert_array_equal(rows.targets.sum(axis=1), rows.targets.shape[1] - 1)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    data=st.lists(
        st.tuples(
            st.lists(numbers, min_size=WIDTH, max_size=WIDTH),
            st.lists(numbers, min_size=ACTIONS, max_size=ACTIONS),
            st.lists(st.booleans(), min_size=ACTIONS, max_size=ACTIONS),
        ),
        min_size=1,
        max_size=4,
    ),
    shape=st.sampled_from(SHAPES),
)
def test_any_input_becomes_legal_in_silence(data, shape):
    x, losses, observed = (np.array(part) for part in zip(*data, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning about a private row would be a release
        rows = legal_rows(Batch(x, losses, observed), *shape)
        check_legal(rows, *shape)
        exact_moments(Batch(x, losses, observed), *shape)


def one(x=None, losses=None, observed=None):
    plain = [2**-0.5, 0.3, 0.0, 0.0]
    return Batch(
        np.array([plain if x is None else x], dtype=float),
        np.array([[0.25, 0.5, 1.0] if losses is None else losses], dtype=float),
        np.array([[True, False, False] if observed is None else observed]),
    )


def test_a_legal_row_moves_by_less_than_the_grid():
    rows = legal_rows(one(), "bandit", "general")
    np.testing.assert_allclose(rows.features, one().features, rtol=0, atol=2.0**-20)
    np.testing.assert_array_equal(rows.targets, one().losses)
    np.testing.assert_array_equal(rows.weights, [[1.0, 0.0, 0.0]])


def test_coordinates_are_rounded_toward_zero():
    for k in range(50):
        x = np.array([2**-0.5, 0.3, -0.4, 0.1]) - k * np.array([0.0, 1e-3, -2e-3, 3e-3])
        rows = legal_rows(one(x=x), "bandit", "general")
        inward = np.abs(x[1:] * 2**0.5 * GRID) - np.abs(rows.grid[0, 1:])
        assert inward.min() >= -1e-6
        assert inward.max() <= 1 + 1e-6


@pytest.mark.parametrize("factor", [1 + 1e-12, 1.01, 3.0, 1e10])
def test_a_long_row_is_shortened_to_the_ball(factor):
    direction = np.array([0.6, -0.64, 0.48])
    x = np.concatenate([[1.0], factor * direction]) * 2**-0.5
    rows = legal_rows(one(x=x), "bandit", "general")
    check_legal(rows, "bandit", "general")
    norm = np.linalg.norm(rows.grid[0, 1:]) / GRID
    assert 0.999 < norm <= 1.0


def test_losses_and_observations_are_clamped():
    rows = legal_rows(one(losses=[-3.0, 7.0, np.nan]), "bandit", "general")
    np.testing.assert_array_equal(rows.targets, [[0.0, 1.0, 1.0]])
    rows = legal_rows(one(observed=[False, True, True]), "bandit", "general")
    np.testing.assert_array_equal(rows.weights, [[0.0, 1.0, 0.0]])
    rows = legal_rows(one(observed=[False, False, False]), "bandit", "general")
    np.testing.assert_array_equal(rows.weights, [[0.0, 0.0, 0.0]])
    rows = legal_rows(one(observed=[True, True, False]), "full", "general")
    np.testing.assert_array_equal(rows.weights, [[0.0]])
