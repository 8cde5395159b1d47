"""How the next batch's rows are stretched: public numbers in, a public matrix out.

Noise has the same size in every direction; contexts have not. Earlier releases tell how contexts
are spread, so the next batch's rows are stretched where they are short, and normalised, before
they are summed. The noise stays as it was; what lay below it is now as long as the rest.
[docs/privacy/ridge.md, "Learned geometry"]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays.backend import as_like, at_least, lift, namespace
from discreet.arrays.linear_algebra import inverse, raised_eigenvalues
from discreet.privacy.sensitivities import GRID_BITS
from discreet.releases.statistics import Statistics
from discreet.types import Array

FLOOR = 0.3
"""Variances below this share of their noise are taken to be as large as it."""
CLEAR = 2.0
"""Nothing is stretched until the largest variance exceeds this multiple of its noise."""
SPREAD = 3.0
"""Nor where the largest variance is less than this multiple of the least."""


CAP = 4096.0
"""No direction is stretched more than so many times as much as another."""


@dataclass(frozen=True)
class Pool:
    """Σ_i w_i·C_i(G̃_i, q̃_i) over all releases, in the coordinates of ``matrix``.

    ``noise`` (...) is the expected operator norm of the noise in the Gram, ``records`` Σ_i w_i·n_i
    over slots, ``heard`` the same over losses heard, as far as releases tell.
    """

    gram: Array
    response: Array
    noise: Any
    records: Any
    heard: Any
    matrix: Array | None

    def following(self) -> Array:
        """The matrix of the next batch."""
        assert self.matrix is not None
        p, blocks = self.gram.shape[-1], self.gram.shape[-3]
        total, noise = self.gram.sum(-3), blocks**0.5 * self.noise
        values, raised, axes = raised_eigenvalues(total, FLOOR * noise)
        half = lift(self.records / p, total) ** 0.5 * raised[..., None, :] ** -0.5
        stretched = _capped((axes * half) @ axes.mT @ self.matrix)
        learned = (values[..., -1] > CLEAR * noise) & (raised[..., -1] > SPREAD * raised[..., 0])
        return namespace(total).where(learned[..., None, None], stretched, self.matrix)

    def typical_length(self) -> Array:
        """c ≈ ‖M b‖ (...), read off the constant feature: c² = ½·N / (M⁻¹ (Σ_a S_a) M⁻ᵀ)_00."""
        assert self.matrix is not None
        noise = self.gram.shape[-3] ** 0.5 * self.noise
        _, raised, axes = raised_eigenvalues(self.gram.sum(-3), FLOOR * noise)
        first = (inverse(self.matrix)[..., :1, :] @ axes)[..., 0, :]
        return (0.5 * self.heard / (first * first * raised).sum(-1)) ** 0.5


def pooled(statistics: Sequence[Statistics], clear: Any) -> Pool:
    """Everything released, in the coordinates of the newest batch.

    w_i = n_i/(n_i + clear·p·σ²·κ_i²), where κ_i ≥ 1 says how much the change of coordinates
    C_i = M M_i⁻¹ stretches the noise of batch i.
    """
    newest = statistics[-1]
    p, matrix = newest.response.shape[-1], newest.matrix
    gram: Any = 0.0
    response: Any = 0.0
    records: Any = 0.0
    heard: Any = 0.0
    variance: Any = 0.0
    for each in statistics:
        noise = each.variance
        if matrix is not None:
            change = matrix @ each.inverse
            noise = as_like(noise, change) * at_least((change * change).sum((-2, -1)) / p, 1.0) ** 2
        weight = each.records / (each.records + clear * p * noise)
        plain_gram, plain_response = each.plain
        gram = gram + lift(weight, plain_gram, 3) * plain_gram
        response = response + lift(weight, plain_response, 2) * plain_response
        records, variance = records + weight * each.records, variance + weight**2 * noise
        heard = heard + weight * each.heard
    if matrix is not None:
        there = matrix[..., None, :, :]
        gram, response = there @ gram @ there.mT, response @ matrix.mT
    return Pool(gram, response, (2 * p * variance) ** 0.5, records, heard, matrix)


def _capped(matrix: Array) -> Array:
    """The matrix with its singular values at most ``CAP`` times the least."""
    xp = namespace(matrix)
    squares, axes = xp.linalg.eigh(matrix.mT @ matrix)
    most = CAP**2 * at_least(squares[..., :1], 0.0)
    shrink = xp.where(squares > most, most / squares, 1.0) ** 0.5
    return matrix @ ((axes * shrink[..., None, :]) @ axes.mT)


def publishable(matrix: Array) -> np.ndarray[Any, Any]:
    """The matrix as it is published and used: integers of at most 2^20 times a power of two.

    Eigenvectors differ between machines in the last bits; what was published does not.
    """
    _, exponent = math.frexp(float(np.abs(matrix).max()))
    unit = GRID_BITS - exponent
    return np.asarray(np.ldexp(np.rint(np.ldexp(matrix, unit)), -unit))
