"""How sure a lift is: sampling and privacy noise together, at one time and at any time.

Functions of public numbers with any leading axes, so that one call answers 2,000 simulated runs.
[docs/privacy/lift.md, "Intervals"]
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from discreet.releases.part_losses import COUNT_VARIANCE

TIGHTEST = 0.02
"""The standard error at which the interval for any time is tightest: public, fixed in advance."""
LEAST_HEARD = 0.125
"""At least this share of a part's slots is taken to be heard, whatever the noisy count says."""


class Pooled(NamedTuple):
    """Up to each batch (..., B): mean losses (..., B, 2), their difference and half-widths."""

    means: Any
    difference: Any
    fixed: Any
    anytime: Any


def weights(variance: Any, slots: Any, records: int) -> Any:
    """How much each batch (..., B) tells: the inverse of the variance of its difference at most.

    Public, as ``slots`` (..., B, 2) are; ``records`` is how many one person may have in a batch.
    """
    noise = np.asarray(variance)[..., None] * (1.0 + COUNT_VARIANCE / 4.0) / slots**2
    return 1.0 / (0.25 * records / slots + noise).sum(-1)


def pooled(
    sums: Any, variance: Any, slots: Any, often: tuple[int, int], confidence: float
) -> Pooled:
    """Batches (..., B, 2, 2) added up one after the other, with public weights.

    ``variance`` (..., B) is that of the noise, ``slots`` (..., B, 2) about how many each part has,
    ``often`` in how many batches one person may be, and with how many records.
    """
    from scipy.special import ndtri

    batches, records = often
    weight = weights(variance, slots, records)[..., None]
    total = np.cumsum(weight, axis=-2)
    each = weight / slots  # the weight of one loss
    noisy = np.asarray(variance)[..., None] * each**2
    losses, heard, spread, noise = (
        np.cumsum(part, axis=-2)
        for part in (each * sums[..., 0], each * sums[..., 1], each**2 * slots, noisy)
    )
    heard = np.maximum(heard, LEAST_HEARD * total)
    excess = losses / heard
    inside = np.clip(excess, -0.5, 0.5)
    spread = spread / (heard * total)  # the variance of a mean of losses with variance 1
    noise = noise * (1.0 + COUNT_VARIANCE * inside**2) / heard**2
    normal, alpha = float(ndtri(0.5 + confidence / 2)), 1.0 - confidence
    # At most so many records of one person are in what is added up: their losses may be alike.
    alike = records * np.minimum(batches, np.arange(1, total.shape[-2] + 1))
    sampling = (spread * _variance(inside, spread, noise, normal**2)).sum(-1)
    fixed = normal * np.sqrt(alike * sampling + noise.sum(-1))
    careful = (spread * _variance(inside, spread, noise, -2.0 * math.log(alpha / 2))).sum(-1)
    scale = total[..., 0]
    anytime = boundary(scale**2 * careful, scale**2 * noise.sum(-1), batches * records, alpha)
    return Pooled(0.5 + excess, excess[..., 0] - excess[..., 1], fixed, anytime / scale)


def _variance(excess: Any, spread: Any, noise: Any, shrink: float) -> Any:
    """Of one loss, at most: m(1 − m), which 0/1 losses have, and no loss in [0, 1] exceeds.

    m = ½ + ``excess`` is known up to noise, so it is drawn toward ½, where the variance is largest,
    as if ``shrink`` losses more had been heard there. [Agresti and Coull 1998]
    """
    known = 1.0 / (spread + 4.0 * noise)  # as many losses as would tell m as well, without noise
    return 0.25 - (excess * known / (known + shrink)) ** 2


def boundary(sampling: Any, noise: Any, repeats: int, alpha: float) -> Any:
    """What a sum of batches stays within at all times, with probability 1 − α.

    √((V + ρ²)·log((V + ρ²)/(ρ²α²))) for a martingale of variance V, the normal mixture.
    [Robbins 1970; Howard et al. 2021; Waudby-Smith et al. 2024]
    Where one person may have J records, the first, second, … J-th records of everybody and the
    noise are J + 1 martingales, each of which stays within its boundary with α/(J + 1).
    """
    rho2 = 1.0 / (TIGHTEST**2 * (2.0 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha))))

    def mixture(variance: Any, scale: float, error: float) -> Any:
        return np.sqrt((variance + scale) * (np.log1p(variance / scale) - 2.0 * math.log(error)))

    if repeats == 1:
        return mixture(sampling + noise, rho2, alpha)
    error = alpha / (repeats + 1)
    alike = repeats * mixture(sampling / repeats, rho2 / repeats, error)
    return alike + np.where(np.asarray(noise) > 0.0, mixture(noise, rho2, error), 0.0)
