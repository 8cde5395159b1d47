"""Success of the best attacker: ε in words that anyone can check by counting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.privacy.accounting import epsilon
from discreet.privacy.events import (
    Event,
    Gaussian,
    NonPrivate,
    ObjectivePerturbation,
    flattened,
    is_renyi,
    pure_epsilon,
)

_DELTAS = tuple(10.0 ** (-step / 8) for step in range(1, 81))
"""Values of δ at which a guarantee is turned into a bound on the attacker; the best is kept."""


@dataclass(frozen=True)
class Attacker:
    """Attacker who chooses between two given contents of one unit, each with probability ½.

    ``success`` is ½ + ½·δ(0) of the event: the share of right choices of the best attacker, or a
    bound on it if not ``exact``. ``mu`` is the shift of a Gaussian that reveals at least as much,
    None where none is known. ``zcdp`` is ρ. Shift and ρ are those of ideal samplers.
    """

    success: float
    exact: bool
    mu: float | None
    zcdp: float

    def sentence(self, unit: str = "decision") -> str:
        """Describe the attacker in one sentence, in counts of one hundred.

        >>> "is right 55 times in 100" in attacker(Gaussian(1 / 0.26805, 1.0)).sentence()
        True
        """
        what = "two given records" if unit == "decision" else f"two given histories of one {unit}"
        often = "" if self.exact else "at most "
        return (
            f"An attacker who reads all releases and must choose between {what}, both equally "
            f"likely, is right {often}{hundredths(self.success, self.exact)} times in 100; "
            "a guess without them, 50 times."
        )


def hundredths(success: float, exact: bool) -> int:
    """Return ``success`` in counts of one hundred, rounded if exact; a bound is rounded up.

    >>> hundredths(0.731, exact=True), hundredths(0.731, exact=False), hundredths(0.99999, False)
    (73, 74, 100)
    """
    return round(100 * success) if exact else math.ceil(100 * Fraction(success))


def odds_text(unit: str, right: int, *, exact: bool) -> str:
    """Describe an attacker who is right so many times in a hundred, to a person in the data.

    >>> odds_text("user", 55, exact=True)
    'Someone who sees everything published can tell whether your data are in it 55 times in 100; \
a coin gives 50.'
    """
    what = "your data are" if unit == "user" else f"the data of one {unit} about you are"
    return (
        f"Someone who sees everything published can tell whether {what} in it "
        f"{'' if exact else 'at most '}{right} times in 100; a coin gives 50."
    )


def attacker(event: Event) -> Attacker:
    """Return the best attacker on releases of this event.

    Privacy: with equal odds the best test is right with probability ½ + ½·TV, and the total
    variation TV is δ at ε = 0. [docs/privacy/users.md, "The attacker"]

    >>> ten_batches = attacker(Gaussian(1 / 0.26805 / math.sqrt(10), 1.0))
    >>> round(ten_batches.success, 2)
    0.66
    """
    parts = flattened(event)
    if any(isinstance(part, NonPrivate) for part in parts):
        return Attacker(1.0, True, None, math.inf)
    gaussians = [part for part in parts if isinstance(part, Gaussian)]
    objectives = [part for part in parts if is_renyi(part)]
    pure = [level for level in map(pure_epsilon, parts) if level]
    mu = math.sqrt(math.fsum(part.multiplier**-2 for part in gaussians))
    # Two samplers, each as far from its ideal as the event says, add twice the distance.
    samplers = 2.0 * math.fsum(part.sampler_distance for part in gaussians)
    rho = mu**2 / 2 + math.fsum(each**2 / 2 for each in pure)
    rho += math.fsum(map(objective_divergence, objectives))
    if objectives:
        variation = _bounded(event, mu, pure, objectives, samplers)
        return Attacker(0.5 + 0.5 * variation, False, None, rho)
    variation = min(1.0, mixed_variation(math.fsum(pure), mu) + samplers)
    whole = math.hypot(mu, pure_shift(math.fsum(pure)))
    return Attacker(0.5 + 0.5 * variation, not pure, whole, rho)


def mixed_variation(pure: float, mu: float) -> float:
    """δ(0) of a randomised response of ``pure`` together with a Gaussian of shift ``mu``.

    Of all pure mechanisms the randomised response reveals most. Its privacy loss is ±ε, and
    δ(0) = q·δ_μ(−ε) + (1 − q)·δ_μ(ε) with q = e^ε/(1 + e^ε). [Kairouz et al. 2015]
    """
    if mu == 0.0:
        return math.tanh(pure / 2)
    q = 1.0 / (1.0 + math.exp(-pure))
    return q * _hockey_stick(-pure, mu) + (1.0 - q) * _hockey_stick(pure, mu)


def pure_shift(pure: float) -> float:
    """The least μ whose Gaussian reveals as much as any ``pure``-DP release: 2Φ⁻¹(e^ε/(1 + e^ε)).

    The trade-off of a randomised response has three corners, and this Gaussian's passes through
    all of them; both are convex, so the Gaussian's lies below. [Dong et al. 2022]
    """
    from scipy.special import ndtri_exp

    return -2.0 * float(ndtri_exp(-math.log1p(math.exp(pure)))) if pure < 700.0 else math.inf


def objective_divergence(part: ObjectivePerturbation) -> float:
    """The Rényi curve of a Gaussian objective at α → 1; at any α it is at most α times this.

    log 2Φ(r) ≤ r·√(2/π) turns the curve into κ + m·√(2/π) + α·m²/2 per block.
    [docs/privacy/users.md, "The attacker"]
    """
    m = part.shift
    return part.blocks * (part.kappa + m * math.sqrt(2.0 / math.pi) + m**2 / 2)


def _bounded(
    event: Event,
    mu: float,
    pure: list[float],
    objectives: list[ObjectivePerturbation],
    samplers: float,
) -> float:
    """The least of three bounds on total variation: Pinsker, Bretagnolle–Huber, and by (ε, δ)."""
    divergence = mu**2 / 2 + math.fsum(each * math.tanh(each / 2) for each in pure)
    divergence += math.fsum(map(objective_divergence, objectives))
    bounds = [math.sqrt(divergence / 2) + samplers, math.sqrt(-math.expm1(-divergence)) + samplers]
    for delta in _DELTAS:
        level = epsilon(event, delta)  # pays for the samplers already
        if math.isfinite(level):
            bounds.append(math.tanh(level / 2) + 2.0 * delta / (1.0 + math.exp(min(level, 700.0))))
    return min(1.0, *bounds)


def _hockey_stick(level: float, mu: float) -> float:
    """δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ). [Balle and Wang 2018]"""
    from scipy.special import log_ndtr, ndtr

    tail = math.exp(level + float(log_ndtr(-mu / 2 - level / mu)))
    return max(0.0, float(ndtr(mu / 2 - level / mu)) - tail)
