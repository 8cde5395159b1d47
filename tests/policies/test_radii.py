"""Radii equal the quadratic form of the whole d × d matrix, whatever form the Grams have."""

from __future__ import annotations

import numpy as np
import pytest

from catalogue import ACTIONS, WIDTH, features, releases
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
from reference.confidence import block_diagonal, radii
from tolerances import EXACT


def whole(gram):
    return gram.values if gram.dense else block_diagonal(gram.values, ACTIONS)


@pytest.mark.parametrize("grams", ["block", "shared", "dense"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_radii_are_the_dense_quadratic_form(grams, count):
    released = releases(count, grams=grams, seed=count)
    x = features(6)
    expected = radii([whole(item.gram) for item in released.items], x, ACTIONS)
    np.testing.assert_allclose(released.radii(x), expected, rtol=0, atol=EXACT)


def with_gram(values, dense, step=2.0):
    predictor = Predictor(np.zeros((ACTIONS, WIDTH)), "identity")
    return Released(ACTIONS).add(Release(1, 1, predictor, Gram(values, dense, step)))


def test_a_negative_quadratic_form_clamps_to_zero_in_a_dense_gram():
    values = -3.0 * np.eye(ACTIONS * WIDTH)
    table = with_gram(values, dense=True).radii(features(3))
    np.testing.assert_array_equal(table, 0.0)


def test_an_indefinite_block_is_repaired_by_its_public_step():
    """I + G = −2I; a step of 2 leaves 0, which is not definite, and 4 leaves 2I."""
    blocks = np.tile(-3.0 * np.eye(WIDTH), (ACTIONS, 1, 1))
    blocks[0] = np.eye(WIDTH)  # this one is sound and must not move
    x = features(4)
    table = with_gram(blocks, dense=False).radii(x)
    squares = (x**2).sum(axis=1)
    np.testing.assert_allclose(table[:, 0] ** 2, squares / 2.0, rtol=0, atol=EXACT)
    np.testing.assert_allclose(table[:, 1] ** 2, squares / (-2.0 + 4.0), rtol=0, atol=EXACT)
