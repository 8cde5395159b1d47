"""The array functions under every rule: any leading axes, NumPy and torch alike."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from discreet.arrays import backend
from discreet.arrays.backend import apply_rows, as_like, sigmoid, softmax, weighted_sums
from libraries import LIBRARIES
from tolerances import EXACT

LEADS = [
    ((), ()),
    ((), (4,)),
    ((4,), (4,)),
    ((4,), ()),
    ((1,), (4,)),
    ((2, 1), (2, 4)),
    ((2, 1), (4,)),
    ((2, 4), (2, 4)),
    ((2, 4), (2, 1)),
    ((4,), (2, 4)),
    ((), (2, 4)),
    ((2, 1), (2, 1)),
    ((3, 2, 1), (3, 2, 4)),
]
"""Leading axes of the rows and of the runs that meet them, by NumPy's broadcasting."""


def spread(array, lead, own):
    return np.broadcast_to(array, (*lead, *array.shape[-own:]))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("rows_lead", "runs_lead"), LEADS)
def test_apply_rows_is_a_loop_over_everything(rows_lead, runs_lead, library):
    rng = np.random.default_rng(0)
    x, theta = rng.normal(size=(*rows_lead, 5, 3)), rng.normal(size=(*runs_lead, 2, 3))
    lead = np.broadcast_shapes(rows_lead, runs_lead)
    expected = np.zeros((*lead, 5, 2))
    for index in np.ndindex(lead):
        for n in range(5):
            for a in range(2):
                row, weights = spread(x, lead, 2)[index][n], spread(theta, lead, 2)[index][a]
                expected[(*index, n, a)] = sum(row * weights)
    made = through(library, apply_rows, x, theta)
    np.testing.assert_allclose(made, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("rows_lead", "runs_lead"), LEADS)
def test_weighted_sums_are_a_loop_over_everything(rows_lead, runs_lead, library):
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=(*rows_lead, 5, 3)), rng.normal(size=(*runs_lead, 5, 2))
    lead = np.broadcast_shapes(rows_lead, runs_lead)
    expected = np.zeros((*lead, 2, 3))
    for index in np.ndindex(lead):
        for n in range(5):
            for a in range(2):
                weight = spread(weights, lead, 2)[index][n, a]
                expected[(*index, a)] += weight * spread(values, lead, 2)[index][n]
    made = through(library, weighted_sums, weights, values)
    np.testing.assert_allclose(made, expected, rtol=0, atol=EXACT)


def through(library, function, *arrays):
    """What a function makes of arrays of a library, as NumPy's."""
    if library == "numpy":
        return function(*arrays)
    torch = pytest.importorskip("torch")
    return function(*(torch.asarray(np.ascontiguousarray(array)) for array in arrays)).numpy()


def test_softmax_and_sigmoid_are_their_formulas():
    row = [0.3, -2.0, 5.0]
    total = sum(math.exp(value) for value in row)
    expected = [math.exp(value) / total for value in row]
    np.testing.assert_allclose(softmax(np.array([row]))[0], expected, rtol=0, atol=EXACT)
    np.testing.assert_allclose(softmax(np.array([row]) - 700)[0], expected, rtol=0, atol=EXACT)
    scores = np.array([-1e4, -700.0, -30.0, -1.0, 0.0, 1.0, 30.0, 1e4])
    made = sigmoid(scores)
    np.testing.assert_allclose(made[2:7], 1 / (1 + np.exp(-scores[2:7])), rtol=1e-14, atol=0)
    assert made[0] == 0.0
    assert made[-1] == 1.0
    assert (np.diff(made) > 0).all()
    np.testing.assert_allclose(made + sigmoid(-scores), 1.0, rtol=0, atol=EXACT)


def test_sigmoid_never_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(sigmoid(np.array([-1e308, 1e308])), [0.0, 1.0])


def test_bounds_and_reductions():
    array = np.array([[1.0, -2.0, 3.0], [0.5, 0.5, -9.0]])
    np.testing.assert_array_equal(backend.at_most(array, 0.75), np.minimum(array, 0.75))
    np.testing.assert_array_equal(backend.at_least(array, 0.0), np.maximum(array, 0.0))
    for number in array[0]:
        least, most = backend.at_least(number, 0.5), backend.at_most(number, 0.5)
        assert (least, most) == (max(number, 0.5), min(number, 0.5))
        assert type(least) is type(most) is np.float64
    np.testing.assert_array_equal(backend.row_sum(array), [[2.0], [-8.0]])
    np.testing.assert_array_equal(backend.row_min(array), [[-2.0], [-9.0]])


@pytest.mark.parametrize("shape", [(1, 3), (500, 1), (2, 500, 3), (0, 2)])
def test_sums_of_columns_have_the_bits_of_numpy_in_any_layout(shape):
    array = np.random.default_rng(0).normal(size=shape)
    for each in (array, backend.rows_contiguous(array)):
        np.testing.assert_array_equal(backend.column_sums(each), each.sum(-2))
        np.testing.assert_array_equal(each, array)
    assert backend.rows_contiguous(array).mT.flags.c_contiguous


@pytest.mark.torch
def test_as_like_copies_type_and_never_shares_memory_with_torch():
    torch = pytest.importorskip("torch")
    values = np.arange(3.0)
    values.setflags(write=False)  # released numbers are read-only; torch would warn
    like = torch.zeros(2, dtype=torch.float32)
    made = as_like(values, like)
    assert made.dtype == torch.float32
    double = as_like(values, torch.zeros(1, dtype=torch.float64))
    double += 1.0
    np.testing.assert_array_equal(values, [0.0, 1.0, 2.0])
    assert as_like([1, 2], np.zeros(1, dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize("held", [1, 300, 10**6])
@pytest.mark.parametrize("rows", [1, 16, 1000])
def test_blocks_hold_every_row_once(rows, held):
    x = np.zeros((rows, 2))
    blocks = backend.row_blocks(rows, held, x)
    assert [i for block in blocks for i in range(rows)[block]] == list(range(rows))
    longest = max(block.stop - block.start for block in blocks)
    assert longest <= 16 or longest * held <= backend._CACHED + 16 * held


@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=pytest.mark.torch)])
def test_what_is_not_kept_is_infinite(library):
    values, kept = np.array([[0.25, -3.0, 0.0]]), np.array([[True, False, True]])
    if library == "torch":
        torch = pytest.importorskip("torch")
        made = backend.or_infinite(torch.asarray(kept), torch.asarray(values)).numpy()
    else:
        made = backend.or_infinite(kept, values)
    np.testing.assert_array_equal(made, [[0.25, np.inf, 0.0]])
