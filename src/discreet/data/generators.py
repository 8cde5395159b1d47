"""Sets we generate, so that the truth is known and nothing has to be downloaded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.data.dataset import Dataset
from discreet.validate import whole

FRIED_MEAN = 14.413297342419856
"""E f(x) = 10·Cin(π)/π + 20/12 + 10/2 + 5/2, with Cin(π) = ∫₀^π (1 − cos t)/t dt."""


def fried(rows: int = 20_000, *, seed: int = 0) -> Dataset:
    """Friedman's function of ten uniform numbers, cut into two classes at its mean.

    y = 10 sin(πx₁x₂) + 20(x₃ − ½)² + 10x₄ + 5x₅ + N(0, 1); five columns say nothing. Label 1
    is y below the mean and label 0 the rest, the class order N, P of OpenML's set 901 (which
    cuts at its sample mean). No linear rule is perfect here. [Friedman 1991, section 4.3]

    >>> fried(1000).contexts.shape, fried(1000).n_actions
    ((1000, 10), 2)
    """
    from scipy.special import ndtr

    rng = stream("fried", rows, seed)
    x = rng.random((rows, 10))
    curve = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    curve += 10 * x[:, 3] + 5 * x[:, 4]
    labels = curve + rng.standard_normal(rows) < FRIED_MEAN
    below = ndtr(FRIED_MEAN - curve)
    return Dataset("fried", x, labels.astype(np.int64), 2, np.stack([below, 1 - below], axis=-1))


def linear(rows: int = 20_000, *, seed: int = 0) -> Dataset:
    """Three actions whose expected losses are exactly linear in a context on the unit sphere.

    P(label = a | c) = 1/3 + s_a·c, where the s_a have length 1/3 and lie 120° apart in the plane
    of the first two of three coordinates. Hence E ℓ(c, a) = 2/3 − s_a·c = θ_a·(1, c)/√2.
    """
    rng = stream("linear", rows, seed)
    contexts = _sphere(rng, rows, 3)
    angles = 2 * np.pi * np.arange(3) / 3
    slopes = np.stack([np.cos(angles), np.sin(angles), np.zeros(3)], axis=-1) / 3
    chances = 1 / 3 + contexts @ slopes.T
    labels = (rng.random(rows)[:, None] > np.cumsum(chances, axis=-1)[:, :-1]).sum(axis=-1)
    weights = math.sqrt(2) * np.concatenate([np.full((3, 1), 2 / 3), -slopes], axis=-1)
    return Dataset("linear", contexts, labels, 3, 1 - chances, weights)


def logistic(rows: int = 20_000, *, seed: int = 0) -> Dataset:
    """Two actions whose expected losses are exactly logistic in a context on the unit sphere.

    P(label = 1 | c) = σ(1 + 8·(c₁ + c₂)/√2), so E ℓ(c, 0) = σ(θ_0·(1, c)/√2) and θ_1 = −θ_0;
    three of five coordinates say nothing.
    """
    from scipy.special import expit

    rng = stream("logistic", rows, seed)
    contexts = _sphere(rng, rows, 5)
    steep = 8 / math.sqrt(2)
    chance = expit(1 + contexts[:, :2].sum(axis=-1) * steep)
    labels = (rng.random(rows) < chance).astype(np.int64)
    weights = math.sqrt(2) * np.array([[1, steep, steep, 0, 0, 0]]) * np.array([[1], [-1]])
    return Dataset(
        "logistic", contexts, labels, 2, np.stack([chance, 1 - chance], axis=-1), weights
    )


def stream(name: str, rows: int, seed: int) -> np.random.Generator:
    """Draws of one set: equal seeds must not make two sets share theirs."""
    whole("rows", rows, 1)
    return np.random.default_rng([*name.encode(), seed])


def _sphere(rng: np.random.Generator, rows: int, dimension: int) -> Any:
    directions = rng.standard_normal((rows, dimension))
    return directions / np.linalg.norm(directions, axis=-1, keepdims=True)
