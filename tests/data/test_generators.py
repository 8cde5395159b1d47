"""Generated sets: the law that they promise, in numbers that a wrong law would miss."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from discreet import UnitBall
from discreet.arrays.backend import sigmoid
from discreet.data import fried, linear, logistic, ringnorm, twonorm, waveform
from discreet.data.generators import FRIED_MEAN, PAIRS, WAVES, _losses, _segment_density
from tolerances import EXACT, SOLVER

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
    assert min(surely_below.sum(), surely_above.sum()) > 1000
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


def test_a_seed_names_the_data_and_sets_do_not_share_draws():
    assert linear(100).digest == linear(100).digest != linear(100, seed=1).digest
    assert np.abs(linear(100).contexts[:, 0] - logistic(100).contexts[:, 0]).min() > 0


# --- Breiman's sets: means, covariances and posteriors against their definitions

# An entry leaves 6.5 standard errors with probability 8e-11, and one of the 1,400 entries of a set
# with 1e-7.
DEVIATIONS = 6.5

ONES = np.ones(20)
TOPS = {"h1": 11, "h2": 15, "h3": 7}


def wave(name):
    return np.array([max(6 - abs(point - TOPS[name]), 0) for point in range(1, 22)], dtype=float)


def mixture(first, second):
    """Mean and covariance of u·first + (1 − u)·second + N(0, I), u uniform: Var u = 1/12."""
    gap = wave(first) - wave(second)
    return (wave(first) + wave(second)) / 2, np.eye(21) + np.outer(gap, gap) / 12


LAWS = {
    twonorm: [(2 / math.sqrt(20) * ONES, np.eye(20)), (-2 / math.sqrt(20) * ONES, np.eye(20))],
    ringnorm: [(0 * ONES, 4 * np.eye(20)), (2 / math.sqrt(20) * ONES, np.eye(20))],
    waveform: [mixture("h1", "h2"), mixture("h1", "h3"), mixture("h2", "h3")],
}


@pytest.mark.parametrize("generate", LAWS)
def test_means_and_covariances(generate):
    data, laws = generate(ROWS), LAWS[generate]
    assert data.n_actions == len(laws)
    for label, (mean, covariance) in enumerate(laws):
        own = data.contexts[data.labels == label]
        share = len(own) / ROWS - 1 / len(laws)
        assert abs(share) < DEVIATIONS * 0.5 / math.sqrt(ROWS)
        spread = np.sqrt(np.diag(covariance))
        assert np.all(np.abs(own.mean(axis=0) - mean) < DEVIATIONS * spread / math.sqrt(len(own)))
        # The error of an entry of a covariance has variance (σ_ii σ_jj + σ_ij²)/n under a normal
        # law, and less where a uniform number mixes two waves.
        error = np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / len(own))
        assert np.all(np.abs(np.cov(own.T) - covariance) < DEVIATIONS * error)


@pytest.mark.parametrize("generate", [twonorm, ringnorm])
def test_posteriors_of_gaussians(generate):
    data = generate(200)
    densities = [multivariate_normal(*law).pdf(data.contexts) for law in LAWS[generate]]
    posterior = np.stack(densities, axis=-1) / np.sum(densities, axis=0)[:, None]
    assert np.abs(1 - data.expected - posterior).max() < SOLVER


def test_posteriors_of_waves():
    data = waveform(40)
    pairs = [("h1", "h2"), ("h1", "h3"), ("h2", "h3")]
    for x, expected in zip(data.contexts, data.expected, strict=True):

        def density(u, first, second, x=x):
            gap = x - u * wave(first) - (1 - u) * wave(second)
            return math.exp(10 - gap @ gap / 2)  # e^10 keeps the numbers near one

        found = [quad(density, 0, 1, pair, epsabs=0, epsrel=1e-11)[0] for pair in pairs]
        assert np.abs(1 - expected - np.array(found) / sum(found)).max() < SOLVER


def test_a_context_far_from_every_wave_has_a_posterior():
    far = np.full((1, 21), 500.0) * np.sign(np.arange(21) - 10)
    logs = [_segment_density(far, WAVES[first], WAVES[second]) for first, second in PAIRS]
    losses = _losses(np.stack(logs, axis=-1))
    assert np.isfinite(losses).all()
    assert abs((1 - losses).sum() - 1) < SOLVER
