"""Findings of an audit, the attack behind many of them, and the ε that an attacker's hits prove.

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
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from discreet.errors import InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import need_delta
from discreet.releases.release import Fit, Predictor, Release
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics
from discreet.text import epsilon_text
from discreet.types import JsonObject, NumpyArray
from discreet.validate import whole

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
    text: str,
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
    return Finding(part, subject.name, question, words, text, level=subject.epsilon, **numbers)


def listed(
    subject: Any, question: str, wrong: Sequence[str], correct: str, part: str = "exact"
) -> Finding:
    """A finding that names what is wrong, each once; ``correct`` if nothing is."""
    text = "; ".join(list(dict.fromkeys(wrong))[:3]) or correct
    return computed(subject, question, not wrong, text, part=part)


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
    return expected_hits(float(ndtr(-shift / 2)), float(ndtr(shift / 2)), trials)


def expected_of_gaussian(shift: float, trials: int) -> tuple[Hits, Hits]:
    """Expected hits with the declared noise, and with half of it."""
    return gaussian_hits(shift, trials), gaussian_hits(2.0 * shift, trials)


def unlucky(
    declared: Hits, proven: Callable[[Hits], float], alpha: float, points: int = 0
) -> float:
    """The bound that the attack proves of the declared mechanism with probability 1 − ``alpha``.

    Exact binomial tails of both worlds share ``alpha``, so their hits may depend on each other.
    Declared rates that were averaged over so many ``points`` have a separate tail.
    """
    n, tail = declared.trials, alpha / (4 if points else 2)
    # Expected hits are rounded to whole numbers.
    first, second = min(1.0, (declared.first + 1) / n), max(0.0, (declared.second - 1) / n)
    if points:
        first = clopper_pearson(math.ceil(first * points), points, tail)[1]
        second = clopper_pearson(math.floor(second * points), points, tail)[0]
    return proven(Hits(int(binom.isf(tail, n, first)), int(binom.ppf(tail, n, second)), n))


Published = Any
"""A published result: a Release or Fit, an array, a number, or a list of these."""
FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Rule:
    """ "Second world" if ``statistic(release)`` exceeds ``threshold``; fixed before the trials."""

    statistic: Callable[[Published], float]
    threshold: float


def attack(
    fit: Callable[[Any], Published],
    first: Any,
    second: Any,
    budget: Budget,
    *,
    trials: int = 1000,
    rule: Rule | None = None,
    gaussian: bool = False,
    false_alarm: float = FALSE_ALARM,
    subject: str = "a mechanism",
) -> Finding:
    """Lower bound on ε from ``trials`` releases of each of two neighbouring batches.

    Without a ``rule`` one is learnt from as many further releases. ``gaussian`` tests the claim
    that releases are those of a Gaussian mechanism with this ε at δ, which is sharper; the
    default tests (ε, δ) alone. The bound exceeds the true ε with probability ``false_alarm``.

    >>> from discreet import Budget
    >>> def leaky(batch):
    ...     return batch.sum() + np.random.default_rng().normal()
    >>> worlds, claim = (np.zeros(3), np.array([9.0, 0.0, 0.0])), Budget(1.0, 1e-5)
    >>> finding = attack(leaky, *worlds, claim, trials=400)
    >>> finding.verdict, finding.measured > 1.0
    ('FAILS', True)

    Args:
        fit: From a batch to a release, with fresh noise at every call.
        first: A batch.
        second: A neighbour of it.
        budget: What the mechanism claims.
        trials: Releases of each batch.
        rule: The attacker's test between the two worlds.
        gaussian: Whether the sharper claim is tested.
        false_alarm: How often the bound may be wrong.
        subject: What the finding calls the mechanism.

    Returns:
        A ``Finding``; ``measured`` is the ε that was proven.
    """
    whole("trials", trials, 10)
    if not budget.private:
        raise InvalidInput(
            f"epsilon must be finite for an attack; got {budget.epsilon!r}. "
            "Claim the ε that the mechanism promises."
        )
    if gaussian:
        need_delta(budget, "a Gaussian claim")
    chosen = rule or learnt_rule(*([fit(x) for _ in range(trials)] for x in (first, second)))
    one, two = (
        sum(bool(chosen.statistic(fit(world)) > chosen.threshold) for _ in range(trials))
        for world in (first, second)
    )
    about, hits = ("black box", subject, "which of two batches was it"), Hits(one, two, trials)
    return hits_finding(about, hits, budget, false_alarm, gaussian=gaussian)


def hits_finding(
    about: tuple[str, str, str],
    hits: Hits,
    budget: Budget,
    alpha: float,
    expected: tuple[Hits, Hits] | None = None,
    *,
    gaussian: bool = True,
    points: int = 0,
    before: str = "",
    exact: float | None = None,
    level: float | None = None,
) -> Finding:
    """Return the finding of an attack: the ε that hits prove, compared with the claim.

    ``about`` are part, subject and question; ``expected`` the hits of the declared mechanism and of
    half its noise; ``points`` those over which they were averaged.
    """

    def proven(some: Hits) -> float:
        return measured_epsilon(some, budget, alpha, gaussian=gaussian)

    measured, enough, attainable, halved = proven(hits), 0.0, None, None
    if expected is not None:
        attainable, halved = map(proven, expected)
        enough = min(POWER * attainable, unlucky(expected[0], proven, alpha, points))
    verdict = measured_verdict(measured, budget.epsilon, enough)
    comparison = {HOLDS: "within the claim", WEAK: "less than it should", FAILS: "above the claim"}
    text = (
        f"{before}hits {hits.first:,} and {hits.second:,} of {hits.trials:,} prove ε ≥ "
        f"{epsilon_text(measured, 3)}, wrong once in {1 / alpha:,.0f}: "
        f"{comparison[verdict]} of {epsilon_text(budget.epsilon)}"
    )
    numbers: dict[str, Any] = {"measured": measured, "attainable": attainable, "halved": halved}
    numbers |= {"claimed": budget.epsilon, "exact": exact, "level": level or budget.epsilon}
    return Finding(*about, verdict, text, trials=hits.trials, alpha=alpha, **numbers)


def learnt_rule(first: Iterable[Published], second: Iterable[Published]) -> Rule:
    """Fisher's linear rule between pilot releases of two worlds.

    Numbers that never vary inside a world but differ between worlds get all the weight: a
    release without noise identifies its world with certainty.
    """
    one, two = (np.stack([*map(numbers, world)]) for world in (first, second))
    centre = (one.mean(axis=0) + two.mean(axis=0)) / 2
    spread = np.sqrt((one.var(axis=0) + two.var(axis=0)) / 2)
    difference = two.mean(axis=0) - one.mean(axis=0)
    size = np.where(spread > 0, spread, np.abs(difference))
    size = np.where(size > 0, size, 1.0)
    pooled = (np.cov(one / size, rowvar=False) + np.cov(two / size, rowvar=False)) / 2
    pooled = np.atleast_2d(pooled) + 1e-6 * np.eye(one.shape[1])
    weights = np.linalg.solve(pooled, difference / size) / size
    return Rule(lambda release: float((numbers(release) - centre) @ weights), 0.0)


def numbers(release: Published) -> NumpyArray:
    """A release as one vector, with a mark for every exact zero: they betray branches and gaps."""
    values = np.nan_to_num(flat(release), nan=0.0, posinf=1e100, neginf=-1e100)
    return np.concatenate([values, values == 0.0])


def flat(release: Published) -> NumpyArray:
    """Every number of a release in a row."""
    if isinstance(release, Released):
        release = list(release.items)
    elif isinstance(release, (Fit, Release)):
        seen = release.statistics
        sums = [] if seen is None else [getattr(seen, each.name) for each in fields(Statistics)]
        found = [None if release.gram is None else release.gram.values, *sums]
        release = [release.predictor, *(each for each in found if each is not None)]
    elif isinstance(release, Predictor):
        release = release.weights
    if isinstance(release, (list, tuple)):
        return np.concatenate([np.empty(0), *map(flat, release)])
    return np.asarray(release, dtype=np.float64).reshape(-1)
