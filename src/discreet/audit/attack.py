"""The attack, for any ``fit(batch) -> release``: which of two neighbouring batches was it?

>>> import numpy as np
>>> from discreet import Budget
>>> def leaky(batch):
...     return batch.sum() + np.random.default_rng().normal()
>>> finding = attack(leaky, np.zeros(3), np.array([9.0, 0.0, 0.0]), Budget(1.0, 1e-5), trials=400)
>>> finding.verdict, finding.measured > 1.0
('FAILS', True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from discreet.audit.finding import (
    FAILS,
    HOLDS,
    POWER,
    WEAK,
    Finding,
    Hits,
    measured_epsilon,
    measured_verdict,
    unlucky,
)
from discreet.errors import InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import need_delta
from discreet.releases.release import Fit, Predictor, Release
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics
from discreet.text import epsilon_text
from discreet.types import NumpyArray
from discreet.validate import whole

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

    measured, attainable, halved, enough = proven(hits), None, None, 0.0
    if expected is not None:
        attainable, halved = (proven(each) for each in expected)
        enough = min(POWER * attainable, unlucky(expected[0], proven, alpha, points))
    verdict = measured_verdict(measured, budget.epsilon, enough)
    comparison = {HOLDS: "within the claim", WEAK: "less than it should", FAILS: "above the claim"}
    said = (
        f"{before}hits {hits.first:,} and {hits.second:,} of {hits.trials:,} prove ε ≥ "
        f"{epsilon_text(measured, 3)}, wrong once in {1 / alpha:,.0f}: "
        f"{comparison[verdict]} of {epsilon_text(budget.epsilon)}"
    )
    return Finding(
        *about,
        verdict,
        said,
        claimed=budget.epsilon,
        exact=exact,
        measured=measured,
        attainable=attainable,
        halved=halved,
        trials=hits.trials,
        alpha=alpha,
        level=budget.epsilon if level is None else level,
    )


def learnt_rule(first: Iterable[Published], second: Iterable[Published]) -> Rule:
    """Fisher's linear rule between pilot releases of two worlds.

    Numbers that never vary inside a world but differ between worlds get all the weight: a
    release without noise identifies its world with certainty.
    """
    one, two = (np.stack([numbers(release) for release in world]) for world in (first, second))
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
        return flat(list(release.items))
    if isinstance(release, (Fit, Release)):
        found = [None if release.gram is None else release.gram.values]
        if release.statistics is not None:
            found += [getattr(release.statistics, each.name) for each in fields(Statistics)]
        return flat([release.predictor, *(each for each in found if each is not None)])
    if isinstance(release, Predictor):
        return flat(release.weights)
    if isinstance(release, (list, tuple)):
        parts = [flat(each) for each in release]
        return np.concatenate(parts) if parts else np.empty(0)
    return np.asarray(release, dtype=np.float64).reshape(-1)
