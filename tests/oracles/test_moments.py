"""Second moments in floating point, against the design and with any leading axes."""

import numpy as np
import pytest

from catalogue import ACTIONS, SHAPES, WIDTH, batch
from discreet.oracles.mechanisms import moments
from discreet.oracles.mechanisms.moments import floating_moments, second_moments
from reference.design import design
from tolerances import EXACT


@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
@pytest.mark.parametrize("rows", [1, 2, 60])
def test_floating_moments_are_the_sums_of_the_design(feedback, losses, rows):
    data = batch(rows, feedback, 1, losses)
    made = floating_moments(data, feedback, 0.5)
    X, y = design(data.features, data.losses, data.observed)
    gram, response = X.T @ X, X.T @ (y - 0.5)
    for action in range(ACTIONS):
        block = slice(action * WIDTH, (action + 1) * WIDTH)
        shared = made.gram[0 if feedback == "full" else action]
        np.testing.assert_allclose(shared, gram[block, block], rtol=0, atol=EXACT * rows)
        np.testing.assert_allclose(
            made.response[action], response[block], rtol=0, atol=EXACT * rows
        )


@pytest.mark.parametrize(
    ("lead_x", "lead_w"),
    [((), ()), ((), (4,)), ((2, 1), (2, 4)), ((2, 4), (2, 4)), ((2, 1), (2, 1)), ((4,), (2, 4))],
)
@pytest.mark.parametrize("held", [2**22, 10])
def test_second_moments_broadcast_over_leading_axes(lead_x, lead_w, held, monkeypatch):
    monkeypatch.setattr(moments, "_HELD_NUMBERS", held)
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(*lead_x, 150, 3)), rng.random((*lead_w, 150, 2))
    gram = second_moments(x, w)
    expected = np.zeros((*lead_w, 2, 3, 3))
    spread = np.broadcast_to(x, (*lead_w, 150, 3))
    for index in np.ndindex(lead_w):
        for i in range(150):
            for a in range(2):
                expected[(*index, a)] += w[(*index, i, a)] * np.outer(
                    spread[(*index, i)], spread[(*index, i)]
                )
    np.testing.assert_allclose(gram, expected, rtol=0, atol=150 * EXACT)
