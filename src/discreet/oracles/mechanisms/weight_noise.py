"""How much of the published weights may be noise: from published numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays.backend import padded
from discreet.oracles.mechanisms.geometry import pooled
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.releases.forgetting import remembered
from discreet.releases.statistics import Statistics


def weight_covariance(
    mechanism: PooledStatistics, statistics: Sequence[Statistics]
) -> np.ndarray[Any, Any]:
    """The covariance (A, p, p) that privacy noise gives the weights which follow from statistics.

    To first order θ' = S₊⁻¹ r moves by S₊⁻¹(δr − δS θ'). The noise of batch i is isotropic in its
    own coordinates: σ²/ω² in its response, and E u has the covariance ½σ²(‖u‖²I + uuᵀ) for its
    Gram's noise E, since entries off the diagonal have σ/√2.
    """
    oracle, found = mechanism.oracle, mechanism.solution(statistics)
    pool, axes, values, theta = found.pool, found.axes, found.values, found.weights
    p, actions = pool.gram.shape[-1], pool.response.shape[-2]
    inverse = np.broadcast_to((axes / values[..., None, :]) @ axes.mT, (actions, p, p))
    share = (mechanism.response / mechanism.gram) ** 2 if mechanism.gram > 0.0 else 0.0
    noise = np.zeros((actions, p, p))
    for each, counted in remembered(statistics, mechanism.problem.half_life):
        change = np.eye(p) if pool.matrix is None else pool.matrix @ each.inverse
        stretch = 1.0 if pool.matrix is None else max(1.0, float((change * change).sum()) / p) ** 2
        w = counted * each.records / (each.records + oracle.clear * p * each.variance * stretch)
        u = theta @ change
        squares = share + 0.5 * (u * u).sum(-1)
        own = squares[:, None, None] * np.eye(p) + 0.5 * u[:, :, None] * u[:, None, :]
        heard = padded(np.ones((each.response.shape[-2], 1, 1)), (actions, 1, 1), (-3,))
        noise += w**2 * each.variance * heard * (change @ own @ change.T)
    made = inverse @ noise @ inverse
    if pool.matrix is None:
        return np.asarray(made)
    return np.asarray(pool.matrix.T @ made @ pool.matrix / found.length**2)


def mean_row(mechanism: PooledStatistics, statistics: Sequence[Statistics]) -> np.ndarray[Any, Any]:
    """The mean of all rows (p,) in plain features, as far as pooled Grams tell it.

    The first feature is √½ in every row, so Σ b = √2·(Σ b bᵀ)_0.
    """
    pool = pooled(statistics, mechanism.oracle.clear, mechanism.problem.half_life)
    gram = pool.gram.sum(-3)
    if pool.matrix is not None:
        gram = pool.inverse @ gram @ pool.inverse.T
    constant = max(float(gram[0, 0]), 1e-9)
    return np.asarray(gram[0] / constant * math.sqrt(0.5))
