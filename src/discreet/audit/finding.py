"""Findings of an audit, one per question with a verdict, and the ε that an attacker's hits prove.

An attacker says "second world" when a number computed from the release exceeds a threshold; both
were fixed in advance. Hits in the second world over hits in the first bound ε from below:

- for an (ε, δ) claim, P₂(S) ≤ e^ε P₁(S) + δ, and the same for the complement;
- for a Gaussian claim, Φ⁻¹(P₂(S)) − Φ⁻¹(P₁(S)) ≤ μ, which is turned into ε at δ.

Rates are replaced by one-sided Clopper–Pearson limits, half of the error probability each, so
a bound is wrong with at most the stated probability, for every distribution of releases.
[Clopper and Pearson 1934; Kairouz et al. 2015; Nasr et al. 2023]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from discreet.privacy.budget import Budget
from discreet.types import JsonObject

HOLDS, WEAK, FAILS = "holds", "weak", "FAILS"
POWER = 0.7
"""An attack that shows less than this share of what it should has lost its power."""
ROUNDING = 1e-6
"""Relative tolerance for floating-point rounding where two exact numbers are compared."""


@dataclass(frozen=True)
class Finding:
    """One question about one mechanism, and its answer.

    ``claimed``, ``exact``, ``measured``, ``attainable`` and ``halved`` are values of ε: what is
    promised, what is true by computation, what an attacker proved, what the same attack should
    prove of the mechanism as declared, and what it would have proved of half the noise. A number
    that the question does not have is None. ``statements`` counts what was tested at ``alpha``.
    """

    part: str
    subject: str
    question: str
    verdict: str
    said: str
    claimed: float | None = None
    exact: float | None = None
    measured: float | None = None
    attainable: float | None = None
    halved: float | None = None
    trials: int = 0
    alpha: float = 0.0
    level: float | None = None

    @property
    def failed(self) -> bool:
        return self.verdict == FAILS

    def to_json(self) -> JsonObject:
        return asdict(self)


def computed(
    subject: Any,
    question: str,
    verdict: str | bool,
    said: str,
    *,
    part: str = "exact",
    **numbers: Any,
) -> Finding:
    """A finding about a subject, which has a ``name`` and an ``epsilon``, with other ``numbers``.

    An ``exact`` ε is compared with that of the subject, unless another one is ``claimed``.
    """
    words = verdict if isinstance(verdict, str) else HOLDS if verdict else FAILS
    if "exact" in numbers:
        numbers = {"claimed": subject.epsilon, **numbers}
    return Finding(part, subject.name, question, words, said, level=subject.epsilon, **numbers)


def listed(
    subject: Any, question: str, wrong: Sequence[str], kept: str, part: str = "exact"
) -> Finding:
    """A finding that names what is wrong, each once; ``kept`` if nothing is."""
    said = "; ".join(list(dict.fromkeys(wrong))[:3]) or kept
    return computed(subject, question, not wrong, said, part=part)


def worst(verdicts: Collection[str]) -> str:
    """The gravest of the verdicts; ``holds`` if there is none."""
    return next((each for each in (FAILS, WEAK) if each in verdicts), HOLDS)


def exact_verdict(found: float, claimed: float) -> str:
    """A computed bound must not exceed the claim."""
    return HOLDS if found <= claimed * (1.0 + ROUNDING) else FAILS


def measured_verdict(measured: float, claimed: float, enough: float = 0.0) -> str:
    """A proven lower bound above the claim refutes it; below ``enough`` the attack is broken."""
    if measured > claimed:
        return FAILS
    return WEAK if measured < enough else HOLDS


@dataclass(frozen=True)
class Hits:
    """Counts of the answer "second world", of ``trials`` releases of each world."""

    first: int
    second: int
    trials: int


def clopper_pearson(hits: int, trials: int, alpha: float) -> tuple[float, float]:
    """Limits (low, high) of a rate, each wrong with probability at most ``alpha``.

    >>> [round(limit, 4) for limit in clopper_pearson(50, 100, 0.005)]
    [0.3689, 0.6311]
    """
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, alpha))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1.0 - alpha))
    return low, high


def limits(hits: Hits, alpha: float) -> tuple[float, float]:
    """The first world's rate from above, the second's from below, wrong together at ``alpha``."""
    _, first = clopper_pearson(hits.first, hits.trials, alpha / 2)
    second, _ = clopper_pearson(hits.second, hits.trials, alpha / 2)
    return first, second


def epsilon_bound(hits: Hits, delta: float, alpha: float) -> float:
    """ε that an (ε, δ)-private mechanism must have; 0 if the hits prove nothing."""
    first, second = limits(hits, alpha)
    ratios = [0.0]
    for more, less in ((second, first), (1.0 - first, 1.0 - second)):
        if more > delta and less > 0.0:
            ratios.append(math.log((more - delta) / less))
    return max(ratios)


def shift_bound(hits: Hits, alpha: float) -> float:
    """μ that a Gaussian mechanism must have; 0 if the hits prove nothing."""
    from scipy.special import ndtri

    first, second = limits(hits, alpha)
    if second <= 0.0 or first >= 1.0:
        return 0.0
    return max(0.0, float(ndtri(second) - ndtri(first)))


def gaussian_epsilon(shift: float, delta: float) -> float:
    """ε at δ of a Gaussian mechanism whose worlds lie ``shift`` standard deviations apart.

    >>> round(gaussian_epsilon(0.26805, 1e-5), 3)
    1.0
    """
    import dp_accounting

    if shift <= 0.0 or math.isinf(shift):
        return max(0.0, shift)
    return float(dp_accounting.get_epsilon_gaussian(1.0 / shift, delta))


def measured_epsilon(hits: Hits, budget: Budget, alpha: float, *, gaussian: bool) -> float:
    """The lower bound on ε that the hits prove, for the kind of claim that was made."""
    if gaussian:
        return gaussian_epsilon(shift_bound(hits, alpha), budget.delta)
    return epsilon_bound(hits, budget.delta, alpha)


def expected_hits(first_rate: float, second_rate: float, trials: int) -> Hits:
    """The hits of an attack whose rates are known."""
    return Hits(round(first_rate * trials), round(second_rate * trials), trials)


def gaussian_hits(shift: float, trials: int) -> Hits:
    """Expected hits of the midpoint threshold between two Gaussian worlds."""
    from scipy.special import ndtr

    return expected_hits(float(ndtr(-shift / 2)), float(ndtr(shift / 2)), trials)


def expected_of_gaussian(shift: float, trials: int) -> tuple[Hits, Hits]:
    """Expected hits with the declared noise, and with half of it."""
    return gaussian_hits(shift, trials), gaussian_hits(2.0 * shift, trials)


def unlucky(
    declared: Hits, proven: Callable[[Hits], float], alpha: float, points: int = 0
) -> float:
    """The bound that the attack proves of the declared mechanism with probability 1 − ``alpha``.

    Exact binomial tails of both worlds share ``alpha``, so their hits may depend on each other.
    Declared rates that were averaged over so many ``points`` have a tail of their own.
    """
    from scipy.stats import binom

    n, tail = declared.trials, alpha / (4 if points else 2)
    # Expected hits are rounded to whole numbers.
    first, second = min(1.0, (declared.first + 1) / n), max(0.0, (declared.second - 1) / n)
    if points:
        first = clopper_pearson(math.ceil(first * points), points, tail)[1]
        second = clopper_pearson(math.floor(second * points), points, tail)[0]
    return proven(Hits(int(binom.isf(tail, n, first)), int(binom.ppf(tail, n, second)), n))
