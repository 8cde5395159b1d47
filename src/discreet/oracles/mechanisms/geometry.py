"""Learned geometry: public numbers in, the public matrix that stretches the next batch out.

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

from discreet.arrays.backend import as_like, at_least, at_most, namespace, padded, per_run
from discreet.arrays.linear_algebra import raised_eigenvalues
from discreet.oracles.mechanisms.legal_rows import matrix_bits
from discreet.releases.forgetting import remembered
from discreet.releases.statistics import Statistics
from discreet.types import Array

FLOOR = 0.3
"""Variances below this share of their noise are taken to be as large as it."""
ENOUGH = 3.0
"""A count is taken to be at least so many standard deviations of its noise."""
NONE = 2.0**-20
"""Of the slots, at least this share counts as answered, so that lengths stay finite."""
LEAST = 2.0**-32
"""No variance is believed below this share of a row's: directions without any stay bounded."""


RC, RE = 0.25, 1.0
RM, PN, KE, KN, KS, ES, EC, CN = 0.0, 0.3, 1.0, 3.0, 1.0, 5.0, 0.3, 0.0
CLEAR_SPREAD = 0.06
"""A spread of predicted losses between actions from which on contexts count as clear, and twice
this is fully clear. [docs/results/rewards.md]"""
LEAST_VARIANCE = 1e-12
"""No variance of losses is believed below this."""


@dataclass(frozen=True)
class Pool:
    """Σ_i w_i·C_i(G̃_i, q̃_i) over releases, in the coordinates of ``matrix``.

    ``noise`` (...) is the expected operator norm of the noise in the Gram, ``records`` Σ_i w_i·n_i
    over slots, ``heard`` the same over losses observed: the noisy count, at least three standard
    deviations of its noise, and at most ``records``. ``told`` (..., 3) are the pooled sums of
    losses, counts and squares, with noise of variance ``told_variance``.
    """

    gram: Array
    response: Array
    noise: Any
    records: Any
    heard: Any
    matrix: Any
    inverse: Any
    told: Any = None
    told_variance: Any = None

    def following(self, share: Any = None) -> Array:
        """The matrix of the next batch: T₊^(−½)·M, scaled so that rows have about length one.

        c is the length of today's rows, and in only Σ λ/λ₊ of p directions do they reach above the
        noise. ``share`` (...) is the least part of a row's squared length that the constant has.
        """
        raised, axes = self._spread
        p = axes.shape[-1]
        half = per_run((self.heard / p) ** 0.5, axes, 1) * raised**-0.5
        reached = at_least(((self.gram.sum(-3) @ axes) * axes).sum(-2), 0.0) / raised
        size = (p / at_least(reached.sum(-1), 1.0)) ** 0.5 / self.typical_length()
        half = half * size[..., None]
        made = (axes * half[..., None, :]) @ axes.mT @ self.matrix
        if share is None:
            return made
        # The constant feature is the same in every row: its direction is row 0 of the inverse.
        along = (((self.inverse[..., :1, :] @ axes) / half[..., None, :]) @ axes.mT)[..., 0, :]
        squares = (along * along).sum(-1)
        own = 0.5 / squares
        rest = at_least(1.0 - own, 0.05)
        stretch = at_least((share / (1.0 - share) * rest / own) ** 0.5, 1.0)
        shorter = ((rest + own) / (rest + own * stretch**2)) ** 0.5
        direction = along / squares[..., None] ** 0.5
        added = (direction[..., None, :] @ made) * ((stretch - 1.0)[..., None] * direction)[
            ..., None
        ]
        return (made + added) * shorter[..., None, None]

    def typical_length(self) -> Array:
        """c ≈ ‖M b‖ (...), read off the constant feature: c² = ½·N / (M⁻¹ T₊ M⁻ᵀ)_00."""
        raised, axes = self._spread
        first = (self.inverse[..., :1, :] @ axes)[..., 0, :]
        return (0.5 * self.heard / (first * first * raised).sum(-1)) ** 0.5

    @property
    def offset(self) -> Array:
        """Mean loss less ½ (...)."""
        return at_most(at_least(2.0 * self.told[..., 2::2].sum(-1) / self.heard, -0.5), 0.5)

    @cached_property
    def sums_error(self) -> Array:
        """Standard deviation of the noise of an action's sum or count (...)."""
        return 2.0 * self.told_variance**0.5

    @cached_property
    def counts(self) -> Array:
        """Noisy counts of each action (..., A), not negative."""
        return at_least(2.0 * self.told[..., 3::2], 0.0)

    @cached_property
    def action_means(self) -> Array:
        """Mean losses less ½ of each action (..., A), drawn toward the mean where counts are noise."""
        m = self.offset[..., None]
        above = 2.0 * self.told[..., 2::2] - m * self.counts
        return at_most(at_least(m + above / (self.counts + KN * self.sums_error[..., None] + KS), -0.5), 0.5)

    @cached_property
    def variance_of_losses(self) -> Array:
        xp, error = namespace(self.offset), self.told_variance**0.5 / self.heard
        bound = 0.25 - at_least(abs(self.offset) - 2.0 * error, 0.0) ** 2
        variance = 0.5 * self.told[..., 1] / self.heard - self.offset**2
        variance = at_least(variance, 0.0) + 0.5 * error
        return at_least(xp.where(variance < bound, variance, bound), LEAST_VARIANCE)

    @cached_property
    def _plain_spread(self):
        raised, ax = self._spread
        half = self.inverse @ ax
        return (half * raised[..., None, :]) @ half.mT

    def _covariance(self, length):
        """Of b, columns alone (..., p−1, p−1) and its form in pool coordinates."""
        T = self._plain_spread
        n0 = T[..., :1, :1]
        cov = 0.5 * (T[..., 1:, 1:] / n0 - (T[..., 1:, :1] / n0) * (T[..., :1, 1:] / n0))
        M = self.matrix / per_run(length, self.matrix)
        return cov, M[..., :, 1:] @ cov @ M[..., :, 1:].mT

    def slope_noise(self, values, axes, weights, length):
        """(..., A): expected variance over contexts of a prediction's contextual part, from noise."""
        _, K = self._covariance(length)
        var = self.noise**2 / (2 * self.gram.shape[-1])
        g = 0.25 + (weights**2).sum(-1).mean(-1) / 2
        along = (axes * (K[..., None, :, :] @ axes)).sum(-2)
        vi = per_run(var * g, values, 2) / values**2 + per_run(self.variance_of_losses / at_least(self.typical_length(), 1.0) ** 2, values, 2) / values
        return (vi * along).sum(-1)

    def cautious(self, values, axes, weights, length):
        """Plain weights (..., A, p) around action means, their error, and the share of slopes."""
        xp = namespace(weights)
        M = self.matrix / per_run(length, self.matrix)
        plain = weights @ M  # (..., A, p)
        slopes = plain[..., 1:]
        inv = self.inverse
        T = self._plain_spread
        P = inv[..., None, :, :] @ self.gram @ inv[..., None, :, :].mT  # (..., A, p, p)
        n0 = T[..., :1, :1]
        cov, _ = self._covariance(length)
        A, d = slopes.shape[-2:]
        noise_a = self.slope_noise(values, axes, weights, length) + 1e-300
        wa = 1.0 / noise_a
        share = (wa / wa.sum(-1)[..., None])[..., None]
        mean = (share * slopes).sum(-2)[..., None, :]
        dev = slopes - mean
        obs = ((dev @ cov) * dev).sum(-1)
        # each: obs_a ~ sig + noise_a; weights 1/noise_a^2
        excess = ((obs / noise_a - 1.0) * wa).sum(-1)  # sum (obs-noise)/noise^2
        total = (wa**2).sum(-1)
        est = excess / total
        err = (2.0 / d / total) ** 0.5 * ES
        sig = 0.5 * (est + (est**2 + err**2) ** 0.5)  # smooth positive part
        rho = sig[..., None] / (sig[..., None] + noise_a)
        slopes = mean + rho[..., None] * dev
        err = self.sums_error[..., None, None]
        h = (KN * err) / self.heard[..., None, None] + 0.0 * P[..., :, 0, :1]
        cbar = (P[..., 0, 1:] + h * T[..., None, 0, 1:]) / at_least(P[..., 0, :1] + h * n0, 1e-12 * n0 + 0 * h)
        count = self.counts + KE * self.sums_error[..., None] + 1.0
        tau2 = self.variance_of_losses
        samp = tau2[..., None] / count
        priv = self.sums_error[..., None] ** 2 * (1 + self.offset[..., None] ** 2) / count**2
        mu = self.action_means
        if RM:
            noise_m = samp + priv
            wm = 1.0 / noise_m
            centre = ((wm * mu).sum(-1) / wm.sum(-1))[..., None]
            est = ((((mu - centre) ** 2 / noise_m) - (1 - 1 / A)) * wm).sum(-1) / (wm**2).sum(-1)
            err = (2.0 / (wm**2).sum(-1)) ** 0.5 * RM
            sigm = 0.5 * (est + (est**2 + err**2) ** 0.5)
            mu = centre + (mu - centre) * sigm[..., None] / (sigm[..., None] + noise_m)
        base = mu - (slopes * cbar).sum(-1) * 0.5**0.5
        out = xp.concat([2.0**0.5 * base[..., None], slopes], axis=-1)
        own = samp + PN * priv + EC * rho * noise_a
        e2 = own.mean(-1)
        return out, e2**0.5, rho.mean(-1), own**0.5

    def signal(self, weights: Array, noise: Any = 0.0) -> Array:
        """(..., 2): how clear contexts are, from 0 to 1, and the standard deviation of losses.

        ``weights`` (..., A, p) predict losses in the coordinates of the pool. Contexts are clear
        where predictions differ between actions by 0.16 and more, and unclear below 0.08.
        """
        raised, axes = self._spread
        apart = weights - weights.mean(-2, keepdims=True)
        along = (apart @ axes) ** 2 * (raised / per_run(self.heard, raised, 1))[..., None, :]
        spread = along.sum((-2, -1)) / weights.shape[-2]
        spread = at_least(spread - CN * noise, 0.0)
        clear = at_most(at_least(spread**0.5 / CLEAR_SPREAD - 1.0, 0.0), 1.0)
        if RC:
            A = weights.shape[-2]
            error = RE * (A * self.told_variance) ** 0.5 * 2.0 / self.heard
            reward = 0.5 - self.offset + error
            clear = clear * at_most(at_least(A * reward / RC - 1.0, 0.0), 1.0)
        xp = namespace(clear)
        return xp.stack(xp.broadcast_arrays(clear, self.variance_of_losses**0.5), axis=-1)

    @cached_property
    def _spread(self) -> tuple[Array, Array]:
        """T₊ as eigenvalues and axes: how rows are spread, whatever their action."""
        # One row, spread evenly, is what is known of a direction that no row has shown.
        floor = FLOOR * self.gram.shape[-3] ** 0.5 * self.noise + 1.0 / self.gram.shape[-1]
        # In plain coordinates: a multiple of the identity, relative to the longest direction.
        least = LEAST * (self.records + floor) * (self.inverse * self.inverse).sum((-2, -1))
        return raised_eigenvalues(
            self.gram.sum(-3) + per_run(least, self.matrix) * (self.matrix @ self.matrix.mT), floor
        )


def constant_share(offset: Array) -> Array:
    """The share of the constant feature with which a linear predictor has the least noise.

    With the share k and the offset m of losses, the variance of a predicted loss is proportional
    to (¼ + m²/(2k))/(1 − k): of responses, and of the Gram times the weights that carry m.
    [docs/privacy/ridge.md, "The share of the constant"]

    >>> constant_share(np.array([0.0, 0.5])).round(3)
    array([0.   , 0.366])
    """
    squared = offset * offset
    return 2.0 * ((squared * squared + 0.5 * squared) ** 0.5 - squared)


def pooled(statistics: Sequence[Statistics], clear: Any, half_life: int | None = None) -> Pool:
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
    told: Any = 0.0
    told_variance: Any = 0.0
    for each, share in remembered(statistics, half_life):
        # Directly from its own coordinates: by way of plain ones rounding would grow with ‖M‖².
        one_gram, noise = padded(each.gram, newest.gram.shape, (-3,)), each.variance
        one_response = padded(each.response, newest.response.shape, (-2,))
        if matrix is not None:
            change = matrix @ each.inverse
            clear = per_run(clear, matrix, 0)
            noise = own = as_like(noise, change)
            noise = noise * at_least((change * change).sum((-2, -1)) / p, 1.0) ** 2
            there = change[..., None, :, :]
            one_gram, one_response = there @ one_gram @ there.mT, one_response @ change.mT
        weight = share * each.records / (each.records + clear * p * noise)
        gram = gram + per_run(weight, one_gram, 3) * one_gram
        response = response + per_run(weight, one_response, 2) * one_response
        records, variance = records + weight * each.records, variance + weight**2 * noise
        heard = heard + weight * each.heard
        if each.told is not None:
            told = told + per_run(weight, each.told, 1) * each.told
            told_variance = told_variance + weight**2 * own
    noise = (2 * p * variance) ** 0.5
    if newest.told is None:
        return Pool(gram, response, noise, records, heard, matrix, newest.inverse)
    # Kept within its bounds once, in the sum: batch by batch a floor would add up.
    least = ENOUGH * told_variance**0.5 + NONE * records
    heard = at_most(at_least(heard, least), records)
    sums = told, told_variance
    return Pool(gram, response, noise, records, heard, matrix, newest.inverse, *sums)


def publishable(matrix: Array) -> np.ndarray[Any, Any]:
    """The matrix as it is published and used: small integers times a power of two.

    Rounded toward zero, since the largest entry must not reach the next power of two. Eigenvectors
    differ between machines in the last bits; what was published does not.
    """
    unit = matrix_bits(matrix.shape[-1]) - math.frexp(float(np.abs(matrix).max()))[1]
    return np.asarray(np.ldexp(np.trunc(np.ldexp(matrix, unit)), -unit))


import os as _os

for _each in filter(None, _os.environ.get("KNOBS", "").split(",")):
    _name, _, _value = _each.partition("=")
    if _name in globals():
        globals()[_name] = float(_value)
