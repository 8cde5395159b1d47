"""Gaussian noise on second moments: blocks on the grid, or the paper's dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.backend import as_like, lift, namespace
from discreet.linalg import identity, triangle, unpack
from discreet.oracles.moments import Moments
from discreet.privacy.noise import Noise
from discreet.types import Array


def noisy_gram(moments: Moments, sigma: Any, noise: Noise, like: Array) -> Array:
    """Blocks plus symmetric noise of standard deviation σ in svec coordinates.

    Privacy: svec weights off-diagonal entries by √2, so ‖svec(ΔG)‖ = ‖ΔG‖_F and an
    off-diagonal entry itself carries σ/√2. [docs/privacy/ridge.md]
    """
    blocks, p = moments.gram.shape[-3], moments.gram.shape[-1]
    rows, columns = triangle(p)
    law = np.where(rows == columns, 1.0, np.sqrt(0.5))
    scale = np.asarray(sigma)[..., None, None] * law / moments.gram_unit
    drawn = noise.gaussian("gram", (blocks, rows.size), scale)
    return _join(moments.gram, drawn, moments.gram_unit, noise, like, p)


def noisy_response(moments: Moments, sigma: Any, noise: Noise, like: Array) -> Array:
    """Responses plus independent noise of standard deviation σ."""
    scale = np.asarray(sigma)[..., None, None] / moments.response_unit
    drawn = noise.gaussian("response", tuple(moments.response.shape[-2:]), scale)
    return _join(moments.response, drawn, moments.response_unit, noise, like)


def _join(
    values: Array, drawn: Any, unit: float, noise: Noise, like: Array, p: int | None = None
) -> Array:
    if noise.exact:
        # Integers plus integers; the conversion to floats is post-processing.
        total = values + (drawn if p is None else unpack(drawn, p))
        return total.astype(np.float64) * unit
    drawn = as_like(drawn, like)
    return values + (drawn if p is None else unpack(drawn, p))


def dense_noisy_gram(blocks: Array, n_actions: int, sigma: Any, noise: Noise) -> Array:
    """The whole (Ap)² matrix plus E = σ(W + Wᵀ)/2, zeros outside the blocks noised too."""
    gram = block_diagonal(blocks, n_actions)
    size = gram.shape[-1]
    w = as_like(noise.normal("dense gram", (size, size)), gram)
    symmetric = (w + namespace(gram).moveaxis(w, -1, -2)) / 2.0
    return gram + lift(sigma, gram, 2) * symmetric


def block_diagonal(blocks: Array, n_actions: int) -> Array:
    """(..., A or 1, p, p) -> (..., Ap, Ap) with zeros outside the blocks."""
    p = blocks.shape[-1]
    eye = identity(n_actions, blocks)
    spread = eye[:, None, :, None] * blocks[..., :, :, None, :]  # (..., A, p, A, p)
    return spread.reshape(*blocks.shape[:-3], n_actions * p, n_actions * p)
