"""Intervals for a lift: sampling and privacy noise together, at one time and at any time.

Functions of published numbers with any leading axes, so that one call serves thousands of
simulated runs. Every constant is derived in docs/privacy/lift.md, "Intervals".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from discreet.privacy.budget import Participation
from discreet.releases.statistics import COUNT_VARIANCE
from discreet.types import Numbers

TIGHTEST = 0.02
"""The standard error at which the interval for any time is tightest: public, fixed in advance."""
ENOUGH = 3.0
"""Counts within so many standard deviations of their own noise tell no difference."""
SPREAD = 10.0
"""So many releases spend half of the error together, where people return."""
MANY = 512
"""Beyond so many batches most have one size, so that their people may be the same in all."""
ROUNDS = 8
"""How often a half-width narrows the range of differences for which its variance is computed."""
JOINT = 0.05
"""The share of the error that a second quantity takes where an interval combines two."""
DIFFERENCE, POLICY, CONTROL = np.array([[1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
"""Weights of the mean losses of policy and control in what an interval is about."""


class PooledSums:
    """Sums of all batches up to each one, and half-widths of what is computed from them.

    ``sums`` (..., B, 2, 2) are Q and N of policy and control, ``variance`` (..., B) that of the
    noise in Q, ``slots`` (..., B, 2) about how many each part has, ``often`` in how many batches
    one person may be, and with how many records. The estimate is [Mantel and Haenszel 1959]

        Σ a (w₀·Q₀·N₁ + w₁·Q₁·N₀) / Σ a N₀·N₁,

    an average of w₀e₀ + w₁e₁ within batches, e the mean loss of a part less ½: batch b has the
    weight a·c₀·c₁, where c counts the losses observed in each part. Weights of 1 and −1 give the
    difference; 1 and 0, or 0 and 1, the mean of one part. ``excess`` (..., B, 2) are e of both
    parts, NaN where the counts are within their noise; half-widths are infinite there.
    """

    def __init__(
        self, sums: Numbers, variance: Numbers, slots: Numbers, often: Participation
    ) -> None:
        self._often = often
        factor = batch_factors(sums, variance, slots, often.records)[..., None]
        losses, counts = sums[..., 0], sums[..., 1]
        noise = COUNT_VARIANCE * np.asarray(variance)[..., None]
        each = factor * counts[..., ::-1]  # the coefficient of one loss
        pairs = np.cumsum(each * counts, axis=-2)[..., 0]
        self._each, self._losses, self._counts, self._noise = each, losses, counts, noise
        # The variance of the noise at a value δ: constant + linear·δ + square·δ², for each part.
        self._square, self._linear, self._constant = (
            np.cumsum(factor**2 * noise * part, axis=-2)
            for part in (
                counts**2,
                -2.0 * losses * counts,
                counts[..., ::-1] ** 2 / COUNT_VARIANCE + losses**2,
            )
        )
        self._enough = pairs > ENOUGH * np.sqrt(self._square.sum(-1))
        self._pairs = pairs = np.where(self._enough, pairs, 1.0)
        excess = np.where(self._enough[..., None], np.cumsum(each * losses, axis=-2), np.nan)
        self.excess = excess / pairs[..., None]

    def half_width(
        self, weights: Numbers, shrink: float, limit: Callable[[Numbers], Numbers]
    ) -> Numbers:
        """Half-width (..., B) for the means with these weights, and this limit of a variance."""
        middle, reach = self.excess @ weights, np.abs(weights).sum() / 2.0
        known = self._each, self._counts, self._losses, self._noise
        sampling = _sampling(*known, self._often, shrink) @ weights**2
        square, linear = self._square.sum(-1), self._linear @ weights
        constant, half = self._constant @ weights**2, np.asarray(np.inf)
        for _ in range(ROUNDS):  # no value is beyond ±reach; each round holds if the last did
            ends = (np.clip(middle + sign * half, -reach, reach) for sign in (-1.0, 1.0))
            noisy = np.maximum(*(constant + end * (linear + end * square) for end in ends))
            half = limit(sampling + noisy) / self._pairs
        return np.where(self._enough, half, np.inf)

    def fixed(self, weights: Numbers, alpha: float) -> Numbers:
        """Half-width for one look at a time that was fixed before."""
        normal = _quantile(alpha)
        return self.half_width(weights, float(normal) ** 2, lambda total: normal * np.sqrt(total))

    def anytime(self, weights: Numbers, alpha: float) -> Numbers:
        """Half-width for all looks together."""
        spent = _quantile(error_of_release(np.arange(1, self._pairs.shape[-1] + 1), alpha))
        # Batches without a person in common make a martingale; others share the error.
        return self.half_width(
            weights,
            -2.0 * math.log(alpha / 2),
            lambda total: (
                boundary(total, alpha) if self._often.batches == 1 else spent * np.sqrt(total)
            ),
        )

    def answers(self, alpha: float) -> tuple[Numbers, Numbers]:
        """Losses of the policy observed so far, and the half-width that their noise leaves."""
        noise = np.sqrt(np.cumsum(self._noise[..., 0], axis=-1))
        looks = error_of_release(np.arange(1, noise.shape[-1] + 1), alpha)
        return np.cumsum(self._counts[..., 0], axis=-1), _quantile(looks) * noise


class LiftEstimate(NamedTuple):
    """A value within an interval that is valid at any time; NaN where it is not known."""

    value: float
    low: float
    high: float

    def figures(self, figure: Callable[[float], str], why: str) -> tuple[str, str]:
        """The value and its interval in words, or that it is not known, and why."""
        if math.isnan(self.value):
            return "not known yet", why
        value, low, high = (figure(each).replace("-", "−") for each in self)
        return value, f"{low} to {high}"


UNKNOWN = LiftEstimate(math.nan, math.nan, math.nan)


def quotient(low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """The ends of [low, high] over [least, most], where 0 < least."""
    return low / (most if low > 0 else least), high / (least if high > 0 else most)


def more_decisions(
    sums: Numbers,
    variance: Numbers,
    slots: Numbers,
    often: Participation,
    confidence: float,
    coming: Numbers,
) -> int | None:
    """Decisions until the interval for any time is half as wide, or known if it is not yet.

    ``sums`` are of one run, and ``coming`` (K, 2) are the slots of the next batches. Each is taken
    to have the share of answers, the means and the noise of those before; all answer, with means
    of ½, where these are not known yet. None if K batches do not suffice.
    """
    found, count = PooledSums(sums, variance, slots, often), len(sums)
    now = found.anytime(DIFFERENCE, 1.0 - confidence)[-1]
    rate, excess = np.ones(2), np.zeros(2)
    if math.isfinite(now):
        rate = np.clip(sums[..., 1].sum(0) / slots.sum(0), 0.0, 1.0)
        excess = np.clip(found.excess[-1], -0.5, 0.5)
    counts = rate * coming
    sums = np.concatenate([sums, np.stack([excess * counts, counts], -1)])
    variance = np.concatenate([variance, np.full(len(coming), variance[-1])])
    later = PooledSums(sums, variance, np.concatenate([slots, coming]), often)
    widths = later.anytime(DIFFERENCE, 1.0 - confidence)[count:]
    (reached,) = np.nonzero(widths <= (now / 2.0 if math.isfinite(now) else np.finfo(float).max))
    return round(float(coming[: reached[0] + 1].sum())) if len(reached) else None


def batch_factors(sums: Numbers, variance: Numbers, slots: Numbers, records: int) -> Numbers:
    """a_b (..., B): the weight of a batch over the product of its two counts.

    c₀·c₁ over the variance of Q₀·N₁ − Q₁·N₀, for the counts and variances that *earlier* releases
    forecast, so that a batch has no say in its own factor.
    """
    noise = COUNT_VARIANCE * np.asarray(variance)[..., None]
    parts = sums[..., 0], sums[..., 1], slots, noise
    losses, counts, taken, noisy = (np.cumsum(part, axis=-2) - part for part in parts)
    counts = np.maximum(counts, 0.0)
    rate = np.minimum(1.0, (counts + ENOUGH * np.sqrt(noisy) + 1.0) / (taken + 1.0))
    certain = counts > ENOUGH * np.sqrt(noisy)
    excess = np.where(certain, losses / np.where(certain, counts, 1.0), 0.0)
    known = counts**2 / np.maximum(counts + 4.0 * noisy, 1.0)
    spread = records * largest_variance(excess, known, -2.0 * math.log(0.025))
    count, noise = rate * slots, noise[..., 0]
    other = count[..., ::-1]
    whole = (count * other**2 * spread).sum(-1) + noise * (count**2).sum(-1) + 1.5 * noise**2
    return count.prod(-1) / np.where(whole > 0.0, whole, 1.0)


def largest_variance(excess: Numbers, known: Numbers, shrink: float) -> Numbers:
    """Variance of one loss, at most: m(1 − m), which no loss in [0, 1] with mean m exceeds.

    m = ½ + ``excess`` is an estimate, as good as ``known`` losses without noise make it. It is
    drawn toward ½, where the variance is largest, as if ``shrink`` more losses had been observed
    there. [Agresti and Coull 1998]
    """
    return 0.25 - (np.clip(excess, -0.5, 0.5) * known / (known + shrink)) ** 2


def _sampling(
    each: Numbers,
    counts: Numbers,
    losses: Numbers,
    noise: Numbers,
    often: Participation,
    shrink: float,
) -> Numbers:
    """Variance (..., B, 2) that the sampling of each part gives Σ a·Q₀·N₁ and Σ a·Q₁·N₀, at most.

    The losses of a person are taken to be equal. Of two bounds the smaller counts: M batches of a
    person vary at most M times as much as batches of different people; and two batches have at
    most as many people in common as the smaller one has.
    """
    batches, records = often.batches, often.records

    def bound(add: Callable[[Numbers, int], Numbers], repeats: Numbers) -> Numbers:
        """Σ t·c·v at most; ``add(x, i)`` is Σ tⁱ·x for the weights t of the bound."""
        number = np.maximum(add(counts, 1), 0.0)
        spread = records * repeats * np.maximum(add(counts, 2), 0.0) + 4.0 * add(noise, 2)
        known = number**2 / np.where(spread > 0.0, spread, np.inf)
        excess = add(losses, 1) / np.where(number > 0.0, number, np.inf)
        return records * number * largest_variance(excess, known, shrink)

    def separate(values: Numbers, power: int) -> Numbers:
        return np.cumsum(each ** (2 * power) * values, axis=-2)

    count = each.shape[-2]
    repeats = np.minimum(batches, np.arange(1, count + 1))
    disjoint = repeats[:, None] * bound(separate, repeats[:, None])
    if batches == 1 or count > MANY:
        return disjoint
    shared = _shared(np.abs(each), counts, ENOUGH * np.sqrt(noise))

    def nested(values: Numbers, power: int) -> Numbers:
        return np.einsum("...bjp,...bp->...jp", shared**power, np.broadcast_to(values, each.shape))

    return np.minimum(disjoint, bound(nested, repeats[:, None]))


def _shared(each: Numbers, counts: Numbers, margin: Numbers) -> Numbers:
    """The weight t (..., b, j, 2) of batch b among those up to batch j, where b ≤ j.

    |u_b|·Σ_{i ≤ j} |u_i|·min(1, c_i/c_b), u the coefficient of one loss, with the largest ratio
    that the noise allows.
    """
    ratio = (counts + margin)[..., None, :, :] / np.maximum(counts - margin, 1e-9)[..., None, :]
    ratio = np.clip(ratio, 0.0, 1.0)  # at most 1, and so for a batch and itself
    upto = np.triu(np.ones(ratio.shape[-3:-1]))[..., None]
    return upto * np.cumsum(each[..., None, :] * each[..., None, :, :] * ratio, axis=-2)


def boundary(variance: Numbers, alpha: float) -> Numbers:
    """Limit that a martingale of this variance keeps within at all times, with probability 1 − α.

    √((V + ρ²)·log((V + ρ²)/(ρ²α²))), the normal mixture.
    [Robbins 1970; Howard et al. 2021; Waudby-Smith et al. 2024]
    """
    rho2 = 1.0 / (TIGHTEST**2 * (2.0 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha))))
    return np.sqrt((variance + rho2) * (np.log1p(variance / rho2) - 2.0 * math.log(alpha)))


def error_of_release(number: Numbers, alpha: float) -> Numbers:
    """The part of α that the look after release b spends: α·s/((b + s − 1)(b + s)), s = 10.

    The sum over all b is α, since s/((b + s − 1)(b + s)) = s/(b + s − 1) − s/(b + s).
    """
    return alpha * SPREAD / ((number + SPREAD - 1.0) * (number + SPREAD))


def _quantile(alpha: Numbers) -> Numbers:
    """z with P(|Z| > z) = α."""
    from scipy.special import ndtri

    return -ndtri(np.asarray(alpha) / 2.0)
