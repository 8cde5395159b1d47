"""Breiman's sets: means, covariances and posteriors against their definitions."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from discreet.data import ringnorm, twonorm, waveform
from tolerances import SOLVER

ROWS = 60_000
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


def check_moments(generate, laws):
    data = generate(ROWS)
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


@pytest.mark.parametrize("generate", LAWS)
def test_means_and_covariances(generate):
    check_moments(generate, LAWS[generate])


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
    from discreet.data.generators import PAIRS, WAVES, _losses, _segment_density

    far = np.full((1, 21), 500.0) * np.sign(np.arange(21) - 10)
    logs = [_segment_density(far, WAVES[first], WAVES[second]) for first, second in PAIRS]
    losses = _losses(np.stack(logs, axis=-1))
    assert np.isfinite(losses).all()
    assert abs((1 - losses).sum() - 1) < SOLVER
