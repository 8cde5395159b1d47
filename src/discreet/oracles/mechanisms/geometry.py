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

import numpy as np

from discreet.arrays.backend import at_least, at_most, namespace, padded, per_run
from discreet.arrays.linear_algebra import identity, raised_eigenvalues
from discreet.oracles.mechanisms.legal_rows import matrix_bits
from discreet.releases.statistics import Statistics, remembered
from discreet.types import Array, Numbers, NumpyArray

FLOOR = 0.3
"""Variances below this share of their noise are taken to be as large as it."""
ENOUGH = 3.0
"""A count is taken to be at least so many standard deviations of its noise."""
NONE = 2.0**-20
"""Of the slots, at least this share counts as answered, so that lengths stay finite."""
LEAST = 2.0**-32
"""No variance is believed below this share of a row's: directions without any stay bounded."""

CLEAR_SPREAD = 0.06
"""A spread of predicted losses between actions from which on contexts count as clear, and twice
this is fully clear. [docs/results/rewards.md]"""
RARE_REWARD = 0.4
"""Mean rewards below this share of 1/A are rare: contexts are not clear then."""
DOUBT = 5.0
"""Standard errors by which the variance of slopes between actions may be larger than measured."""
SLOPE_ERROR = 0.1
"""Share of the variance of slopes that counts in the error of an action."""
LEAST_VARIANCE = 1e-12
"""No variance of losses is believed below this."""
_TINY = 1e-300


@dataclass(frozen=True)
class Pool:
    """Σ_i w_i·C_i(G̃_i, q̃_i) over releases, in the coordinates of ``matrix``.

    ``noise`` (...) is the expected operator norm of the noise in the Gram, ``records`` Σ_i w_i·n_i
    over slots, ``observed_count`` the same over observed losses: the noisy count, at least three
    standard deviations of its noise, and at most ``records``. ``outcome_sums`` (..., 2 + 2A) are
    the pooled count, squares, and half sums and half counts of each action, with noise of
    ``outcome_variance``. ``constant_variance`` (..., 2) is that of the noise that the constant
    feature of Gram blocks and responses has: Σ w_i²σ²·‖√2·(M_i⁻¹)_0‖^k for k = 4 and 2.
    """

    gram: Array
    response: Array
    noise: Numbers
    records: Numbers
    observed_count: Numbers
    matrix: Numbers
    inverse: Numbers
    outcome_sums: Numbers = None
    outcome_variance: Numbers = None
    constant_variance: Numbers = None

    def following(self, share: Numbers = None) -> Array:
        """The matrix of the next batch: T₊^(−½)·M, scaled so that rows have about length one.

        c is the length of today's rows, and in only Σ λ/λ₊ of p directions do they reach above the
        noise. ``share`` (...) is the least part of a row's squared length that the constant has.
        """
        raised, axes = self._spread
        p = axes.shape[-1]
        half = per_run((self.observed_count / p) ** 0.5, axes, 1) * raised**-0.5
        reached = at_least(((self._total @ axes) * axes).sum(-2), 0.0) / raised
        size = (p / at_least(reached.sum(-1), 1.0)) ** 0.5 / self.typical_length
        half = half * per_run(size, half, 1)
        made = (axes * half[..., None, :]) @ axes.mT @ self.matrix
        if share is None:
            return made
        # The constant feature is the same in every row: its direction is row 0 of the inverse.
        along = ((self._constant / half[..., None, :]) @ axes.mT)[..., 0, :]
        squares = (along * along).sum(-1)
        own = 0.5 / squares
        rest = at_least(1.0 - own, 0.05)
        stretch = at_least((share / (1.0 - share) * rest / own) ** 0.5, 1.0)
        shorter = ((rest + own) / (rest + own * stretch**2)) ** 0.5
        direction = along / per_run(namespace(squares).sqrt(squares), along, 1)
        longer = per_run(stretch - 1.0, along, 1) * direction
        added = (direction[..., None, :] @ made) * longer[..., None]
        return (made + added) * per_run(shorter, made)

    @cached_property
    def typical_length(self) -> Array:
        """c ≈ ‖M b‖ (...), read off the constant feature: c² = ½·N / (M⁻¹ T₊ M⁻ᵀ)_00."""
        raised, first = self._spread[0], self._constant[..., 0, :]
        return (0.5 * self.observed_count / (first * first * raised).sum(-1)) ** 0.5

    @cached_property
    def offset(self) -> Array:
        """Mean loss less ½ (...)."""
        return at_most(
            at_least(2.0 * self.outcome_sums[..., 2::2].sum(-1) / self.observed_count, -0.5), 0.5
        )

    @cached_property
    def variance_of_losses(self) -> Array:
        """Variance of losses (...): at most ¼ − m² with the offset m, within the noise."""
        error = self.outcome_variance**0.5 / self.observed_count
        bound = 0.25 - at_least(abs(self.offset) - 2.0 * error, 0.0) ** 2
        variance = 0.5 * self.outcome_sums[..., 1] / self.observed_count - self.offset**2
        variance = at_least(variance, 0.0) + 0.5 * error
        return at_least(at_most(variance, bound), LEAST_VARIANCE)

    def clear(self, weights: Array) -> Array:
        """Clearness λ of contexts (...), from 0 to 1.

        ``weights`` (..., A, p) predict losses in the coordinates of the pool. Contexts are clear
        where predictions differ between actions by 0.12 and more, and unclear below 0.06. They are
        unclear, too, where the mean reward is less than 0.4/A: people for whom one of A actions is
        right have a mean reward of 1/A under a uniform draw.
        """
        raised, axes = self._spread
        actions = weights.shape[-2]
        apart = weights - weights.sum(-2, keepdims=True) / actions
        shares = raised / per_run(self.observed_count, raised, 1)
        along = (apart @ axes) ** 2 * shares[..., None, :]
        spread = (along.sum((-2, -1)) / actions) ** 0.5
        error = 2.0 * (actions * self.outcome_variance) ** 0.5 / self.observed_count
        reward = 0.5 - self.offset + error
        return _ramp(spread / CLEAR_SPREAD) * _ramp(actions * reward / RARE_REWARD)

    def cautious(
        self, values: Array, axes: Array, weights: Array, length: Array, *, errors_alone: bool
    ) -> tuple[Array | None, Array]:
        """Weights in plain coordinates that start from action means, and errors (..., A).

        Slopes of the actions are drawn toward their mean, each as far as its noise asks for, and
        the constant is such that the mean prediction over the records of an action is its mean
        loss. ``values`` and ``axes`` are those with which ``weights`` were solved. There are no
        weights with ``errors_alone``.
        [docs/privacy/ridge.md, "Predictions around action means"]
        """
        scaled = self.matrix / per_run(length, self.matrix)
        slopes = (weights @ scaled)[..., 1:]
        # T₊ without its floor in plain coordinates, and the mean of the columns of b.
        raised, along = self._spread
        half = self.inverse @ along
        total = (half * raised[..., None, :]) @ half.mT
        total = total - per_run(self._least, total) * identity(total.shape[-1], total)
        constant = total[..., :1, :1]
        centre = total[..., :1, 1:] / constant
        # Of the columns of b, in plain coordinates, and as a form in those of the pool.
        covariance = 0.5 * (total[..., 1:, 1:] / constant - centre.mT * centre)
        form = scaled[..., 1:] @ covariance @ scaled[..., 1:].mT
        noise = self._slope_noise(values, axes, weights, form)
        precision = 1.0 / noise
        mean = (precision[..., None] * slopes).sum(-2) / per_run(precision.sum(-1), slopes, 1)
        apart = slopes - mean[..., None, :]
        measured = ((apart @ covariance) * apart).sum(-1)
        sharpness = (precision * precision).sum(-1)
        excess = ((measured * precision - 1.0) * precision).sum(-1) / sharpness
        doubt = DOUBT * (2.0 / slopes.shape[-1] / sharpness) ** 0.5
        signal = per_run(0.5 * (excess + (excess * excess + doubt * doubt) ** 0.5), noise, 1)
        kept = signal / (signal + noise)
        # Row 0 of M⁻¹ S_a M⁻ᵀ (..., A, p): of the constant, in plain coordinates.
        first = self.inverse[..., None, :1, :] @ self.gram @ self.inverse[..., None, :, :].mT
        first = first[..., 0, :]
        counts = at_least(2.0 * self.outcome_sums[..., 3::2], 0.0)
        above, of_sums = self._excess_losses(2.0 * first[..., 0], counts)
        of_sums = per_run(of_sums, counts, 1)
        count = counts + of_sums + 1.0
        squares = per_run(self.variance_of_losses, count, 1) / count + (of_sums / count) ** 2
        errors = (squares + SLOPE_ERROR * kept * noise) ** 0.5
        if errors_alone:
            return None, errors
        slopes = mean[..., None, :] + kept[..., None] * apart
        # Mean contexts of the records of each action, drawn toward the mean of all.
        drawn = ENOUGH * self._sum_noise / self.observed_count
        at_all = per_run(constant[..., 0, 0] * drawn, first)
        contexts = (first[..., 1:] + at_all * centre) / at_least(first[..., :1] + at_all, _TINY)
        contexts = at_most(at_least(contexts, -1.0), 1.0)
        # An action whose count is not far above its noise is drawn toward the mean of all.
        means = above / (counts + ENOUGH * of_sums + 1.0)
        means = at_most(at_least(per_run(self.offset, means, 1) + means, -0.5), 0.5)
        start = means - (slopes * contexts).sum(-1) * 0.5**0.5
        made = namespace(weights).concat([2.0**0.5 * start[..., None], slopes], axis=-1)
        return made, errors

    def _excess_losses(self, gram: Array, counts: Array) -> tuple[Array, Array]:
        """Σ(y − mean loss of all) of each action (..., A), and the deviation of its noise (...).

        Two released numbers say it, with independent noise: the sums of losses, and the constant
        feature of Gram blocks, which is ``gram``, and responses. Each is weighted by the noise of
        the other. [docs/privacy/ridge.md, "Predictions around action means"]
        """
        mean, noise = self.offset, self._sum_noise
        sums = 2.0 * self.outcome_sums[..., 2::2] - per_run(mean, counts, 1) * counts
        of_sums = noise * noise * (1.0 + mean * mean)
        response = 2.0**0.5 * (self.response @ self.inverse[..., :1, :].mT)[..., 0]
        of_gram, of_response = self.constant_variance[..., 0], self.constant_variance[..., 1] / 4
        root = namespace(of_gram).sqrt
        total = at_least(gram.sum(-1), ENOUGH * root(gram.shape[-1] * of_gram) + NONE)
        own = at_most(at_least(response.sum(-1) / total, -0.5), 0.5)
        scale = self.observed_count / total
        of_constant = scale * scale * (of_response + own * own * of_gram)
        share = (of_constant + _TINY) / (of_sums + of_constant + _TINY)
        above = response - per_run(own, gram, 1) * gram
        above = per_run(share, sums, 1) * sums + per_run((1.0 - share) * scale, above, 1) * above
        return above, root(share * of_sums)

    @property
    def _sum_noise(self) -> Array:
        """Standard deviation of the noise in the sum or the count of one action (...)."""
        return 2.0 * self.outcome_variance**0.5

    def _slope_noise(self, values: Array, axes: Array, weights: Array, form: Array) -> Array:
        """Variance over contexts that noise alone gives to the predictions of an action (..., A).

        Of responses and of the Gram times the weights, by the privacy noise; and of the losses.
        """
        private = self.noise**2 / (2 * self.gram.shape[-1])
        squares = (weights * weights).sum(-1).sum(-1) / weights.shape[-2]
        private = private * (0.25 + 0.5 * squares)
        losses = self.variance_of_losses / at_least(self.typical_length, 1.0) ** 2
        along = (axes * (form[..., None, :, :] @ axes)).sum(-2)
        values = at_least(values, 1.0 / values.shape[-1])  # one row, as in ``_spread``
        each = per_run(private, values, 2) / values**2 + per_run(losses, values, 2) / values
        return at_least((each * along).sum(-1), LEAST_VARIANCE**2)

    @cached_property
    def _constant(self) -> Array:
        """The constant along the axes of T₊ (..., 1, p): row 0 of M⁻¹."""
        return self.inverse[..., :1, :] @ self._spread[1]

    @cached_property
    def _spread(self) -> tuple[Array, Array]:
        """T₊ as eigenvalues and axes: the spread of rows of all actions."""
        return raised_eigenvalues(self._raised_total, self._floor)

    def axes_of_actions(self, floor: Numbers) -> tuple[Array, Array]:
        """Eigenvalues of the Gram (..., A or 1, p), at least ``floor`` (...), and their axes.

        T₊ is decomposed in the same call, since a call costs more than a matrix.
        """
        total = self._raised_total[..., None, :, :]
        xp = namespace(self.gram)
        values, axes = xp.linalg.eigh(xp.concat([self.gram, total], axis=-3))
        least = per_run(self._floor, values, 1)
        vars(self)["_spread"] = at_least(values[..., -1, :], least), axes[..., -1, :, :]
        return at_least(values[..., :-1, :], per_run(floor, values)), axes[..., :-1, :, :]

    @property
    def _raised_total(self) -> Array:
        """T: the Gram of all actions, and the least variance in every direction."""
        least = per_run(self._least, self.matrix) * (self.matrix @ self.matrix.mT)
        return self._total + least

    @cached_property
    def _total(self) -> Array:
        """Gram of all actions (..., p, p)."""
        return self.gram.sum(-3)

    @cached_property
    def _floor(self) -> Numbers:
        """One row, spread evenly, is what is known of a direction that no row has shown."""
        return FLOOR * self.gram.shape[-3] ** 0.5 * self.noise + 1.0 / self.gram.shape[-1]

    @cached_property
    def _least(self) -> Array:
        """In plain coordinates, a multiple of the identity, relative to the longest direction."""
        squares = (self.inverse * self.inverse).sum((-2, -1))
        return LEAST * (self.records + self._floor) * squares


def _ramp(ratio: Array) -> Array:
    """Return 0 up to a ratio of 1, 1 from 2 on, and a straight line in between."""
    return at_most(at_least(ratio - 1.0, 0.0), 1.0)


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


def pooled(statistics: Sequence[Statistics], clear: Numbers, half_life: int | None = None) -> Pool:
    """Everything released that still counts, in the coordinates of the newest batch.

    w_i = s_i·n_i/(n_i + clear·p·σ²·κ_i²), where κ_i ≥ 1 says how much the change of coordinates
    C_i = M M_i⁻¹ stretches the noise of batch i, and s_i = 2^(−age/half_life), or 1 without one.
    """
    newest = statistics[-1]
    p, matrix = newest.response.shape[-1], newest.matrix
    gram: Numbers = 0.0
    response: Numbers = 0.0
    records: Numbers = 0.0
    observed_count: Numbers = 0.0
    variance: Numbers = 0.0
    outcome_sums: Numbers = 0.0
    outcome_variance: Numbers = 0.0
    constant_variance: Numbers = 0.0
    if matrix is not None:
        clear = per_run(clear, matrix, 0)
    for each, share in remembered(statistics, half_life):
        one_gram, one_response, squares = _in_newest(each, newest)
        noise = each.variance
        if squares is not None:
            own = per_run(noise, squares, 0)
            noise = own * at_least(squares / p, 1.0) ** 2
        weight = share * each.records / (each.records + clear * p * noise)
        gram = gram + per_run(weight, one_gram, 3) * one_gram
        response = response + per_run(weight, one_response, 2) * one_response
        squared = weight**2
        records, variance = records + weight * each.records, variance + squared * noise
        observed_count = observed_count + weight * each.observed_count
        if each.outcome_sums is not None:
            sums, powers = each.outcome_sums, each.constant_powers
            if newest.outcome_sums is not None:
                sums = padded(sums, newest.outcome_sums.shape, (-1,))
            outcome_sums = outcome_sums + per_run(weight, sums, 1) * sums
            outcome_variance = outcome_variance + squared * own
            constant_variance = constant_variance + per_run(squared * own, powers, 1) * powers
    noise = (2 * p * variance) ** 0.5
    if newest.outcome_sums is None:
        return Pool(gram, response, noise, records, observed_count, matrix, newest.inverse)
    # Kept within its bounds once, in the sum: batch by batch a floor would add up.
    least = ENOUGH * outcome_variance**0.5 + NONE * records
    observed_count = at_most(at_least(observed_count, least), records)
    sums = outcome_sums, outcome_variance, constant_variance
    return Pool(gram, response, noise, records, observed_count, matrix, newest.inverse, *sums)


def _in_newest(each: Statistics, newest: Statistics) -> tuple[Array, Array, Array | None]:
    """Return Gram C S Cᵀ, response q Cᵀ and Σ C² of a batch, with C = M M_i⁻¹.

    Directly from its own coordinates: by way of plain ones rounding would grow with ‖M‖².
    """
    gram = padded(each.gram, newest.gram.shape, (-3,))
    response = padded(each.response, newest.response.shape, (-2,))
    if newest.matrix is None:
        return gram, response, None
    change = newest.matrix @ each.inverse
    there = change[..., None, :, :]
    return there @ gram @ there.mT, response @ change.mT, (change * change).sum((-2, -1))


def publishable(matrix: Array) -> NumpyArray:
    """The matrix as it is published and used: small integers times a power of two.

    Rounded toward zero, since the largest entry must not reach the next power of two. Eigenvectors
    differ between machines in the last bits; what was published does not.
    """
    unit = matrix_bits(matrix.shape[-1]) - math.frexp(float(np.abs(matrix).max()))[1]
    return np.asarray(np.ldexp(np.trunc(np.ldexp(matrix, unit)), -unit))
