"""An attacker who sees releases only, on worst pairs, with the shipped noise.

For each mechanism the statistic and its threshold are computed before any trial: the projection
on the difference of the worlds for Gaussian releases, the exact log-likelihood ratio for
objective perturbation, the chosen function for a finite class. So are two sets of rates: those of
the mechanism as declared, which say what the attack can show, and those of half the noise, which
say what it would catch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.audit.attack import Published, hits_finding
from discreet.audit.finding import Finding, Hits, expected_hits, gaussian_hits, measured_epsilon
from discreet.audit.gaussian import GaussianRelease, shift_of
from discreet.audit.noise_sources import Chosen, Replayed, Trials
from discreet.audit.objective import Objective
from discreet.audit.subjects import Subject
from discreet.batch import Batch
from discreet.privacy.noise import Noise, SecureNoise
from discreet.types import NumpyArray

_AT_ONCE = 10_000
_POINTS = 2**15
"""Quasi-random points for the rates of objective perturbation, with at most the error of as many
draws."""


@dataclass(frozen=True)
class AttackPlan:
    """An attack on one subject, complete before its first trial."""

    first: Batch
    second: Batch
    statistic: Callable[[Published], NumpyArray]
    threshold: float
    declared: Hits
    halved: Hits
    gaussian: bool = False
    points: int = 0


def trials_for(subject: Subject) -> int:
    """10,000 releases per world; more below ε = 2, where worlds lie ε/4 deviations apart.

    Attacks on a perturbed objective are weaker and its fits are cheap: ten times as many.
    """
    more = 10 if subject.mechanism.startswith("logistic") else 1
    return 10_000 * more * math.ceil(max(1.0, (2.0 / subject.epsilon) ** 2))


def black_box(
    subject: Subject, alpha: float, trials: int = 0, noise: Noise | None = None, name: str = ""
) -> Finding:
    """The lower bound on ε that hits prove for one subject."""
    trials = trials or trials_for(subject)
    make = _gaussian_plan if subject.ridge else _PLANS[subject.mechanism]
    plan = make(subject, trials)
    hits = _hits(subject, plan, trials, noise or SecureNoise())
    return hits_finding(
        ("black box", subject.name, f"which of two batches was it{name}"),
        hits,
        subject.budget,
        alpha,
        (plan.declared, plan.halved),
        gaussian=plan.gaussian,
        points=plan.points,
    )


def _hits(subject: Subject, plan: AttackPlan, trials: int, noise: Noise) -> Hits:
    """Hits of both worlds, which meet the same noise: each rate is judged by itself.

    Drawing it exactly is most of the work. What luck does to one world it does to the other, so
    the attack proves no less than with noise of their own.
    """
    hits = [0, 0]
    for start in range(0, trials, _AT_ONCE):
        drawn = Replayed(noise)
        for number, world in enumerate((plan.first, plan.second)):
            drawn.rewind()
            release = subject.fit(world, Trials(drawn, min(_AT_ONCE, trials - start)))
            hits[number] += int((plan.statistic(release) > plan.threshold).sum())
    return Hits(hits[0], hits[1], trials)


def _gaussian_plan(subject: Subject, trials: int) -> AttackPlan:
    seen = GaussianRelease(subject)
    first, second = subject.worst_pair()
    direction, threshold = seen.direction(first, second)
    shift = shift_of(subject.calibrated.event)
    return AttackPlan(
        first,
        second,
        lambda release: seen.read(release) @ direction,
        threshold,
        gaussian_hits(shift, trials),
        gaussian_hits(2.0 * shift, trials),
        gaussian=True,
    )


def _objective_plan(subject: Subject, trials: int) -> AttackPlan:
    objective = Objective(subject, 1)
    first, second = subject.worst_pair()
    draws = _spread_draws(objective)

    def ratios(world: Batch, share: float) -> NumpyArray:
        theta = objective.fit(world, {objective.tilt: share * draws})
        return objective.log_ratio(theta, first, second)

    declared, halved = ([ratios(world, share) for world in (first, second)] for share in (1, 0.5))
    threshold = _best_threshold((declared, halved), subject, trials)
    one, two = (_expected(both, threshold, trials) for both in (declared, halved))
    return AttackPlan(
        first,
        second,
        lambda release: objective.log_ratio(release.predictor.weights, first, second),
        threshold,
        one,
        two,
        points=_POINTS,
    )


def _spread_draws(objective: Objective) -> NumpyArray:
    """Draws of the objective's noise that fill its law evenly, the same at every call."""
    from scipy.special import gammaincinv, ndtri
    from scipy.stats import qmc

    shape = objective.names[objective.tilt]
    blocks, size = math.prod(shape[:-1]), shape[-1]
    points = qmc.Sobol(blocks * (size + 1), seed=0).random(_POINTS)
    points = np.clip(points.reshape(_POINTS, blocks, size + 1), 1e-12, 1 - 1e-12)
    normal = ndtri(points[..., :size])
    if not objective.gaussian:
        radius = gammaincinv(size, points[..., size:])
        normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True) * radius
    return np.asarray(normal.reshape(_POINTS, *shape))


def _best_threshold(cases: Sequence[list[NumpyArray]], subject: Subject, trials: int) -> float:
    """The threshold at which expected hits prove most, with the declared noise and half of it."""
    candidates = np.quantile(np.concatenate(cases[0]), np.linspace(0.05, 0.95, 91))

    def proven(threshold: float) -> float:
        hits = [_expected(both, threshold, trials) for both in cases]
        return sum(measured_epsilon(each, subject.budget, 1e-6, gaussian=False) for each in hits)

    return float(max(candidates, key=proven))


def _expected(both: list[NumpyArray], threshold: float, trials: int) -> Hits:
    first, second = (float((each > threshold).mean()) for each in both)
    return expected_hits(first, second, trials)


def _choice_plan(subject: Subject, trials: int) -> AttackPlan:
    """f = 0 is chosen more often when losses are 0, the second world."""
    first, second = subject.worst_pair()

    def rate(world: Batch, sharper: float) -> float:
        noise = Chosen()
        subject.fit(world, noise)
        logits = -sharper * noise.scores / noise.scale
        law = np.exp(logits - logits.max())
        return float(law[0] / law.sum())

    declared, halved = (
        expected_hits(rate(first, sharper), rate(second, sharper), trials) for sharper in (1.0, 2.0)
    )
    return AttackPlan(
        first, second, lambda release: -release.predictor.weights[..., 0, 0], -0.5, declared, halved
    )


_PLANS: dict[str, Callable[[Subject, int], AttackPlan]] = {
    "logistic-gamma": _objective_plan,
    "logistic-gaussian": _objective_plan,
    "logistic-paper": _objective_plan,
    "finite": _choice_plan,
}
