"""UnitBall: c̄ = c / max(1, ‖c‖), then (1, c̄)/√2, for every finite context."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import InvalidInput, UnitBall
from discreet.features.unit_ball import with_bias
from tolerances import EXACT
from wording import refused

contexts = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.just(3)),
    elements=st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True),
)


def literal(context):
    """The paper's sentence, one number at a time, in exact scaling."""
    largest = max(abs(value) for value in context) or 1.0
    norm = largest * math.sqrt(sum((value / largest) ** 2 for value in context))
    if not math.isfinite(norm):
        scaled = [value / largest for value in context]
        norm = math.sqrt(sum(value**2 for value in scaled))
        return [math.sqrt(0.5)] + [math.sqrt(0.5) * value / norm for value in scaled]
    return [math.sqrt(0.5)] + [math.sqrt(0.5) * value / max(1.0, norm) for value in context]


@given(contexts)
def test_features_are_the_formula_of_the_paper_and_lie_in_the_unit_ball(rows):
    features = UnitBall(3).map(rows)
    expected = np.array([literal(row) for row in rows.tolist()])
    np.testing.assert_allclose(features, expected, rtol=EXACT, atol=EXACT)
    assert np.isfinite(features).all()
    assert np.linalg.norm(features, axis=1).max() <= 1 + EXACT
    assert (features @ features.T).min() >= -EXACT  # the bias column: b·b' ≥ 0


@pytest.mark.parametrize(
    "context",
    [
        *([0.0, 0.0, 0.0], [5e-324, 0.0, -5e-324], [1e-170] * 3, [1e155, -1e155, 1e155]),
        *([1.7e308] * 3, [1.7e308, 5e-324, 0.0]),
    ],
)
def test_extreme_contexts_keep_their_direction(context):
    features = UnitBall(3).map(context)[0]
    np.testing.assert_allclose(features, literal(context), rtol=EXACT, atol=EXACT)


def test_one_row_is_the_batch():
    rows = np.random.default_rng(0).normal(size=(5, 3))
    together = UnitBall(3).map(rows)
    for row, features in zip(rows, together, strict=True):
        np.testing.assert_array_equal(UnitBall(3).map(row), features[None])


def test_the_input_is_left_alone():
    rows = np.array([[3.0, 4.0], [1e200, 1e200]])
    before = rows.copy()
    with_bias(rows)
    np.testing.assert_array_equal(rows, before)
    assert UnitBall(2).map(np.empty((0, 2))).shape == (0, 3)
    assert not UnitBall(3).is_single([[1.0, 2.0, 3.0], [1.0]])


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ([1.0, 2.0], ["context", "(3,) or (n, 3)", "(2,)"]),
        (5.0, ["()"]),
        ([math.inf, -math.inf, 0.0], ["finite"]),
        ([[0.0] * 3, [0.0] * 3, [0.0, math.nan, 0.0]], ["row 2", "finite"]),
        *((each, ["array of numbers"]) for each in (["1", "2", "3"], "abc", [1.0, None, 2.0])),
        *((each, ["array of numbers"]) for each in (None, {"a": 1.0}, [10**400, 0, 0])),
        ([[1.0, 2.0, 3.0], [1.0]], ["row 1", "array of numbers"]),
        ([(1.0, 2.0, 3.0), [1.0, "2", 3.0]], ["row 1", "array of numbers"]),
    ],
)
def test_bad_contexts_are_refused_with_a_reason(context, words):
    with refused(InvalidInput, *words):
        UnitBall(3).map(context)


@pytest.mark.parametrize("dimension", [0, -1, 2.0, "3", True, None])
def test_a_dimension_is_a_positive_whole_number(dimension):
    with refused(InvalidInput, "dimension", repr(dimension)):
        UnitBall(dimension)
