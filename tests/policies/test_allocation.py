"""From probabilities to actions: the inverse-CDF draw."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.policies.allocation import draw, even_split, is_first_minimum

LAST = 1.0 - 2.0**-53


def literal_draw(probabilities, u):
    """The first action whose cumulative probability exceeds u."""
    total = 0.0
    for action, probability in enumerate(probabilities):
        total += probability
        if u < total:
            return action
    raise AssertionError("u must be below the total")


def test_draw_is_the_inverse_distribution_function():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 5, size=(500, 6)).astype(float)
    table[:, 2] += 1.0
    table /= table.sum(axis=1, keepdims=True)
    u = rng.random(500)
    pairs = zip(table, u, strict=True)
    expected = [literal_draw(row, value * row.cumsum()[-1]) for row, value in pairs]
    np.testing.assert_array_equal(draw(table, u), expected)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    weights=st.lists(st.sampled_from([0.0, 0.0, 1e-300, 1e-17, 1 / 3, 0.1, 1.0]), min_size=2),
    u=st.sampled_from([0.0, 2.0**-60, 1 / 3, 0.5, LAST]),
)
def test_an_impossible_action_is_never_drawn(weights, u):
    table = np.array([[*weights, 1.0]])
    table /= table.sum()
    for row in (table, table[:, ::-1]):
        action = draw(row, np.array([u]))[0]
        assert row[0, action] > 0.0


def test_minimisers():
    losses = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(is_first_minimum(losses), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(even_split(losses), [[0, 0.5, 0.5], [1 / 3] * 3])
    # Equality is relative: 1e6 and 1e6 + 1e-7 tie, 1 and 1 + 1e-7 do not.
    close = np.array([[1e6, 1e6 + 1e-7], [1.0, 1.0 + 1e-7]])
    np.testing.assert_array_equal(even_split(close), [[0.5, 0.5], [1.0, 0.0]])
