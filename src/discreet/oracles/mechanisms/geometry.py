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
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays.backend import as_like, at_least, at_most, lift, padded
from discreet.arrays.linear_algebra import raised_eigenvalues
from discreet.oracles.mechanisms.legal_rows import matrix_bits
from discreet.releases.forgetting import remembered
from discreet.releases.statistics import Statistics, times_power_of_two
from discreet.types import Array

FLOOR = 0.3
"""Variances below this share of their noise are taken to be as large as it."""
ENOUGH = 3.0
"""A count is taken to be at least so many standard deviations of its noise."""
LEAST = 2.0**-32
"""No variance is believed below this share of a row's: directions without any stay bounded."""


@dataclass(frozen=True)
class Pool:
    """Σ_i w_i·C_i(G̃_i, q̃_i) over releases, in the coordinates of ``matrix``.

    ``noise`` (...) is the expected operator norm of the noise in the Gram, ``records`` Σ_i w_i·n_i
    over slots, ``heard`` the same over losses observed: the noisy count, at least three standard
    deviations of its noise, and at most ``records``.
    """

    gram: Array
    response: Array
    noise: Any
    records: Any
    heard: Any
    matrix: Any
    inverse: Any
    alike: bool = False
    """Whether losses were shortened as rows were."""

    def following(self) -> Array:
        """The matrix of the next batch: √(N/p)·T₊^(−½)·M, so that pooled rows are round."""
        raised, axes = self._spread
        p = axes.shape[-1]
        half = lift(self.records / p, axes) ** 0.5 * raised[..., None, :] ** -0.5
        made = (axes * half) @ axes.mT @ self.matrix
        if not self.alike:
            return made
        # Rows of about length one: c is what shortened them, and in only Σ λ/λ₊ of p directions
        # do they reach above the noise.
        told = at_least(((self.gram.sum(-3) @ axes) * axes).sum(-2), 0.0) / raised
        return made * lift((p / at_least(told.sum(-1), 1.0)) ** 0.5 / self.typical_length(), made)

    def typical_length(self) -> Array:
        """c ≈ ‖M b‖ (...), read off the constant feature: c² = ½·N / (M⁻¹ T₊ M⁻ᵀ)_00."""
        raised, axes = self._spread
        first = (self.inverse[..., :1, :] @ axes)[..., 0, :]
        return (0.5 * self.heard / (first * first * raised).sum(-1)) ** 0.5

    @cached_property
    def _spread(self) -> tuple[Array, Array]:
        """T₊ as eigenvalues and axes: how rows are spread, whatever their action."""
        floor = FLOOR * self.gram.shape[-3] ** 0.5 * self.noise
        # In plain coordinates: a multiple of the identity, relative to the longest direction.
        least = LEAST * (self.records + floor) * (self.inverse * self.inverse).sum((-2, -1))
        return raised_eigenvalues(
            self.gram.sum(-3) + lift(least, self.matrix) * (self.matrix @ self.matrix.mT), floor
        )


def pooled(
    statistics: Sequence[Statistics],
    clear: Any,
    half_life: int | None = None,
    alike: bool = False,
) -> Pool:
    """Everything released that still counts, in the coordinates of the newest batch.

    w_i = s_i·n_i/(n_i + clear·p·σ²·κ_i²), where κ_i ≥ 1 says how much the change of coordinates
    C_i = M M_i⁻¹ stretches the noise of batch i, and s_i = 2^(−age/half_life), or 1 without one.
    """
    newest = statistics[-1]
    p, matrix = newest.response.shape[-1], newest.matrix
    gram: Any = 0.0
    response: Any = 0.0
    records: Any = 0.0
    heard: Any = 0.0
    variance: Any = 0.0
    count_variance: Any = 0.0
    kept = remembered(statistics, half_life)
    taken_out = _taken_out([each for each, _ in kept], scaled=matrix is not None and not alike)
    for (each, share), power in zip(kept, taken_out, strict=True):
        # Directly from its own coordinates: by way of plain ones rounding would grow with ‖M‖².
        one_gram, noise = padded(each.gram, newest.gram.shape, (-3,)), each.variance
        one_response = padded(each.response, newest.response.shape, (-2,))
        if matrix is not None:
            change = times_power_of_two(matrix @ each.inverse, power)
            clear = lift(clear, matrix, 0)
            noise = own = as_like(noise, change)
            noise = noise * at_least((change * change).sum((-2, -1)) / p, 1.0) ** 2
            there = change[..., None, :, :]
            one_gram, one_response = there @ one_gram @ there.mT, one_response @ change.mT
        weight = share * each.records / (each.records + clear * p * noise)
        gram = gram + lift(weight, one_gram, 3) * one_gram
        response = response + lift(weight, one_response, 2) * one_response
        records, variance = records + weight * each.records, variance + weight**2 * noise
        heard = heard + weight * each.heard
        if each.told is not None:
            count_variance = count_variance + weight**2 * own
    noise = (2 * p * variance) ** 0.5
    # Kept within its bounds once, in the sum: batch by batch a floor would add up.
    if newest.told is not None:
        heard = at_most(at_least(heard, ENOUGH * count_variance**0.5), records)
    return Pool(gram, response, noise, records, heard, matrix, newest.inverse, alike)


def _taken_out(statistics: Sequence[Statistics], scaled: bool) -> list[Any]:
    """The powers of two that were taken out of the matrices between each batch and the newest."""
    powers: list[Any] = [0] * len(statistics)
    if scaled:
        for place in range(len(statistics) - 2, -1, -1):
            powers[place] = powers[place + 1] + statistics[place].excess
    return powers


def publishable(matrix: Array) -> np.ndarray[Any, Any]:
    """The matrix as it is published and used: small integers times a power of two.

    Rounded toward zero, since the largest entry must not reach the next power of two. Eigenvectors
    differ between machines in the last bits; what was published does not.
    """
    unit = matrix_bits(matrix.shape[-1]) - math.frexp(float(np.abs(matrix).max()))[1]
    return np.asarray(np.ldexp(np.trunc(np.ldexp(matrix, unit)), -unit))
