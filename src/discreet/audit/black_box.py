"""An attacker who sees releases only, on worst pairs, with the shipped noise.

For each mechanism the score of a release is chosen before any trial: the projection on the
difference of the worlds for Gaussian releases, the exact log-likelihood ratio for objective
perturbation, the chosen function for a finite class. So are two sets of rates: those of the
mechanism as declared, which say what the attack can show, and those of half the noise, which say
what it would catch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.audit import finding
from discreet.audit.gaussian import GaussianRelease, shift_of
from discreet.audit.noise_sources import EXACT, FAST, Trials, choice_of, sampler
from discreet.audit.objective import Objective
from discreet.audit.subjects import Subject, joined
from discreet.batch import Batch
from discreet.batches.users import PeopleRegistry
from discreet.oracles import Mechanism
from discreet.plan.plan import Plan
from discreet.privacy.accounting import person_event
from discreet.privacy.budget import Participation
from discreet.privacy.noise import Noise, SecureNoise, SeededNoise
from discreet.releases.statistics import Statistics
from discreet.types import NumpyArray

TRIALS = 10_000
"""Releases of each world at ε = 2; worlds of a smaller ε lie closer, and need more."""
_AT_ONCE = 10_000
_POINTS = 2**15
"""Seeded draws from which the rates of objective perturbation are estimated."""
OFTEN = Participation(batches=3, records=2)
Score = Callable[[finding.Published], NumpyArray]


@dataclass(frozen=True)
class AttackPlan:
    """An attack on a mechanism, complete before its first trial.

    ``batches`` are those of the first world, those of the second, and a score for the release of
    each: scores that add up to more than 0 mean the second world.
    """

    mechanism: Mechanism
    batches: Sequence[tuple[Batch, Batch, Score]]
    expected: tuple[finding.Hits, finding.Hits]
    earlier: Sequence[Statistics] = ()
    gaussian: bool = True
    points: int = 0

    def finding(
        self,
        subject: Subject,
        question: str,
        trials: int,
        noise: Noise,
        alpha: float,
        before: str = "",
    ) -> finding.Finding:
        """Return the finding that follows from so many trials in both worlds."""
        hits = [0, 0]
        for start in range(0, trials, _AT_ONCE):
            source = Trials(noise, min(_AT_ONCE, trials - start))
            for world in (0, 1):
                total = np.zeros(source.count)
                for *worlds, score in self.batches:
                    total += score(self.mechanism.fit(worlds[world], source, self.earlier))
                hits[world] += int((total > 0.0).sum())
        return finding.hits_finding(
            ("black box", subject.name, question),
            finding.Hits(hits[0], hits[1], trials),
            subject.budget,
            alpha,
            self.expected,
            gaussian=self.gaussian,
            points=self.points,
            before=before,
        )


def trials_for(subject: Subject) -> int:
    """Attacks on a perturbed objective are weaker and its fits are cheap: ten times as many."""
    more = 10 if subject.mechanism.startswith("logistic") else 1
    return TRIALS * more * math.ceil(max(1.0, (2.0 / subject.epsilon) ** 2))


def black_box(
    subject: Subject, alpha: float, trials: int = 0, noise: SecureNoise = EXACT
) -> finding.Finding:
    """The lower bound on ε that hits prove for one subject."""
    trials = trials or trials_for(subject)
    if subject.ridge:
        mechanism = subject.calibrated
        shift = shift_of(mechanism.event)
        plan = _gaussian_plan(subject, mechanism, [subject.worst_pair()], shift, trials)
    elif subject.mechanism == "finite":
        plan = _choice_plan(subject, trials)
    else:
        plan = _objective_plan(subject, trials)
    question = f"which of two batches was it{sampler(noise)}"
    return plan.finding(subject, question, trials, noise, alpha)


def which_life(subject: Subject, alpha: float, trials: int = 0) -> finding.Finding:
    """The lower bound on ε that hits prove for all records of one person."""
    trials = trials or trials_for(subject)
    made = user_plan(subject)
    shift = shift_of(person_event(made.event, OFTEN))
    plan = _gaussian_plan(subject, made.mechanism, lives(subject), shift, trials)
    question, before = "which of two lives did a person have", f"{OFTEN.text}; "
    return plan.finding(subject, question, trials, FAST, alpha, before)


def user_plan(subject: Subject) -> Plan:
    """The plan of a subject for people who take part so often."""
    return subject.plan(
        unit="user", batches_per_user=OFTEN.batches, records_per_batch=OFTEN.records
    )


def lives(subject: Subject) -> list[tuple[Batch, Batch]]:
    """All batches of a person, who asks once too often in each and in one batch too many."""
    registry, requests = PeopleRegistry(OFTEN), ["the person"] * (OFTEN.records + 1)
    counted = [registry.hand_out(requests, number) for number in range(1, OFTEN.batches + 2)]

    def made(record: Batch, counts: NumpyArray) -> Batch:
        void = replace(record, observed=np.zeros_like(record.observed))
        return joined(*(record if each else void for each in counts))

    one, two = subject.worst_pair()
    return [(made(one, counts), made(two, counts)) for counts in counted]


def _gaussian_plan(
    subject: Subject,
    mechanism: Any,
    worlds: Sequence[tuple[Batch, Batch]],
    shift: float,
    trials: int,
) -> AttackPlan:
    """For each batch the best direction, scaled equally in all of them, and its midpoint.

    Every batch has the same public past: which one is for the attacker to choose.
    """
    seen = GaussianRelease(mechanism, worlds[0][0].records, subject.earlier)

    def score_of(first: Batch, second: Batch) -> Score:
        one, two = seen.mean(first), seen.mean(second)
        direction = (two - one) / seen.sigma**2
        return lambda release: seen.read(release) @ direction - float(direction @ (one + two)) / 2

    batches = [(*pair, score_of(*pair)) for pair in worlds]
    expected = finding.expected_of_gaussian(shift, trials)
    return AttackPlan(mechanism, batches, expected, subject.earlier)


def _objective_plan(subject: Subject, trials: int) -> AttackPlan:
    objective = Objective(subject, 1)
    first, second = subject.worst_pair()
    draw = SeededNoise(0).normal if objective.gaussian else SeededNoise(0).ball
    draws = draw(objective.tilt, (_POINTS, *objective.names[objective.tilt]))

    def ratios(world: Batch, share: float) -> NumpyArray:
        theta = objective.fit(world, {objective.tilt: share * draws})
        return objective.log_ratio(theta, first, second)

    declared, halved = ([ratios(world, share) for world in (first, second)] for share in (1, 0.5))
    threshold = _best_threshold((declared, halved), subject, trials)

    def score(release: finding.Published) -> NumpyArray:
        return objective.log_ratio(release.predictor.weights, first, second) - threshold

    expected = _expected(declared, threshold, trials), _expected(halved, threshold, trials)
    batches = [(first, second, score)]
    return AttackPlan(subject.calibrated, batches, expected, gaussian=False, points=_POINTS)


def _best_threshold(cases: Sequence[list[NumpyArray]], subject: Subject, trials: int) -> float:
    """The threshold at which expected hits prove most, with the declared noise and half of it."""
    candidates = np.quantile(np.concatenate(cases[0]), np.linspace(0.05, 0.95, 91))

    def proven(threshold: float) -> float:
        hits = [_expected(both, threshold, trials) for both in cases]
        return sum(
            finding.measured_epsilon(each, subject.budget, 1e-6, gaussian=False) for each in hits
        )

    return float(max(candidates, key=proven))


def _expected(both: list[NumpyArray], threshold: float, trials: int) -> finding.Hits:
    first, second = (float((each > threshold).mean()) for each in both)
    return finding.expected_hits(first, second, trials)


def _choice_plan(subject: Subject, trials: int) -> AttackPlan:
    """f = 0 is chosen more often when losses are 0, the second world."""
    first, second = subject.worst_pair()

    def rate(world: Batch, sharper: float) -> float:
        return math.exp(choice_of(subject.calibrated, world).log_law(sharper)[0])

    def score(release: finding.Published) -> NumpyArray:
        return np.asarray(0.5 - release.predictor.weights[..., 0, 0])

    declared, halved = (
        finding.expected_hits(rate(first, sharper), rate(second, sharper), trials)
        for sharper in (1.0, 2.0)
    )
    batches, expected = [(first, second, score)], (declared, halved)
    return AttackPlan(subject.calibrated, batches, expected, gaussian=False)
