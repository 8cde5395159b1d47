"""Generated sets: the law that they promise, in numbers that a wrong law would miss."""

import math

import numpy as np
import pytest

from discreet import UnitBall
from discreet.arrays.backend import sigmoid
from discreet.data import fried, linear, logistic, ringnorm, twonorm, waveform
from discreet.data.generators import FRIED_MEAN
from tolerances import EXACT

GENERATORS = [fried, linear, logistic, ringnorm, twonorm, waveform]
ROWS = 40_000
# A mean of ROWS independent 0/1 values leaves ±BOUND with probability below 1e-6 (Hoeffding).
BOUND = math.sqrt(math.log(2e6) / (2 * ROWS))


def test_fried_has_the_class_order_of_openml():
    data = fried(ROWS)
    x = data.contexts
    curve = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    curve += 10 * x[:, 3] + 5 * x[:, 4]
    surely_below, surely_above = curve < FRIED_MEAN - 6, curve > FRIED_MEAN + 6
    assert surely_below.sum() > 1000
    assert surely_above.sum() > 1000
    # Six standard deviations of the noise: each row errs with probability 1e-9.
    assert (data.labels[surely_below] == 1).all()
    assert (data.labels[surely_above] == 0).all()


@pytest.mark.parametrize("generate", GENERATORS)
def test_labels_follow_the_expected_losses(generate):
    data = generate(ROWS)
    right = data.labels[:, None] == np.arange(data.n_actions)
    # In every part of the contexts, not only on the whole: split along the first coordinates.
    for axis in range(2):
        upper = data.contexts[:, axis] > np.median(data.contexts[:, axis])
        for part in (upper, ~upper):
            gap = (~right - data.expected)[part].mean(axis=0)
            assert np.abs(gap).max() < BOUND * math.sqrt(2)


@pytest.mark.parametrize("generate", GENERATORS)
def test_expected_losses_are_probabilities_of_one_label(generate):
    data = generate(500)
    assert data.expected.min() >= 0.0
    assert np.abs((1 - data.expected).sum(axis=-1) - 1).max() < EXACT
    assert 0.0 < data.best_loss < 1 - 1 / data.n_actions


@pytest.mark.parametrize(("generate", "link"), [(linear, lambda s: s), (logistic, sigmoid)])
def test_weights_are_the_truth_for_the_features_of_the_package(generate, link):
    data = generate(500)
    features = UnitBall(data.dimension).map(data.contexts)
    assert np.abs(link(features @ data.weights.T) - data.expected).max() < EXACT


@pytest.mark.parametrize("generate", GENERATORS)
def test_a_seed_names_the_data(generate):
    again, other = generate(50), generate(50, seed=1)
    assert (generate(50).contexts == again.contexts).all()
    assert (generate(50).labels == again.labels).all()
    assert (other.contexts != again.contexts).any()


def test_sets_do_not_share_their_draws():
    first = linear(100).contexts
    second = logistic(100).contexts
    assert np.abs(first[:, 0] - second[:, 0]).min() > 0
