"""An attacker who asks which of two lives a person had, and sees releases only.

The person asks for more slots than may count: in one batch more than M, and in each of them once
more than k. What the registry lets count says one thing in the first world and another in the
second, in all slots at once: the worst pair of records. Each release has the shipped noise of a
plan for users. The statistic adds up the projections of all releases on the difference of worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.audit.attack import sentence
from discreet.audit.confidence_bounds import Hits, gaussian_hits, measured_epsilon, unlucky
from discreet.audit.finding import POWER, Finding, measured_verdict
from discreet.audit.gaussian import shift_of
from discreet.audit.noise_sources import Chosen, Replayed, Trials
from discreet.audit.release_reading import RidgeReader, reader_of
from discreet.audit.subjects import Subject, joined
from discreet.plan import Plan
from discreet.privacy.groups import person_event
from discreet.privacy.noise import SecureNoise
from discreet.privacy.participation import Participation
from discreet.rows.batch import Batch
from discreet.rows.people_registry import PeopleRegistry

OFTEN = Participation(batches=3, records=2)
TRIALS = 10_000
"""Lives of each world at ε = 2; worlds of a smaller ε lie closer, and need more."""


@dataclass(frozen=True)
class TwoLives:
    """All batches of a person in both worlds, and how their releases are read."""

    subject: Subject

    @cached_property
    def plan(self) -> Plan:
        return self.subject.plan(
            unit="user", batches_per_user=OFTEN.batches, records_per_batch=OFTEN.records
        )

    @cached_property
    def batches(self) -> list[tuple[Batch, Batch]]:
        """The batches, each as in the first world and as in the second."""
        registry, asked = PeopleRegistry(OFTEN), ["the person"] * (OFTEN.records + 1)
        numbers = range(1, OFTEN.batches + 2)
        counted = [registry.hand_out(asked, number).tolist() for number in numbers]
        worlds = [[self._batch(record, slots) for slots in counted] for record in self._records]
        return list(zip(*worlds, strict=True))

    @property
    def _records(self) -> tuple[Batch, Batch]:
        return self.subject.worst_pair()

    def _batch(self, record: Batch, slots: list[bool]) -> Batch:
        void = Batch(record.features, record.losses, np.zeros_like(record.observed))
        return joined(*(record if counts else void for counts in slots))

    @cached_property
    def read(self) -> RidgeReader:
        slots, p = OFTEN.records + 1, self.subject.dimension + 1
        return reader_of(self.plan.mechanism, slots, self.subject.n_actions, p)

    @cached_property
    def rules(self) -> list[tuple[np.ndarray[Any, Any], float]]:
        """For each batch the best direction, scaled alike in all of them, and its midpoint."""
        made = []
        for batch in self.batches:
            one, two = (self.read(self._fit(world, Chosen())) for world in batch)
            direction = (two - one) / self.read.sigma**2
            made.append((direction, float(direction @ (one + two)) / 2))
        return made

    def hits(self, world: int, trials: int, noise: Replayed) -> int:
        """How often all releases of this life together look like the second.

        Each rate is judged by itself, so both lives meet the same noise.
        """
        noise.rewind()
        total = np.zeros(trials)
        for batch, (direction, middle) in zip(self.batches, self.rules, strict=True):
            seen = self.read(self._fit(batch[world], Trials(noise, trials)))
            total += seen @ direction - middle
        return int((total > 0.0).sum())

    def _fit(self, batch: Batch, noise: Any) -> Any:
        # Every batch has the same public past: which one is for the attacker to choose.
        return self.plan.mechanism.fit(batch, noise, self.subject.earlier)


def which_life(subject: Subject, alpha: float, trials: int = 0) -> Finding:
    """What hits prove about all that one person contributes."""
    trials = trials or round(TRIALS * max(1.0, (2.0 / subject.epsilon) ** 2))
    lives, noise = TwoLives(subject), Replayed(SecureNoise(fast=True))
    first, second = (lives.hits(world, trials, noise) for world in (0, 1))
    hits = Hits(first, second, trials)

    def proven(some: Hits) -> float:
        return measured_epsilon(some, subject.budget, alpha, gaussian=True)

    shift = shift_of(person_event(lives.plan.event, OFTEN))
    declared = gaussian_hits(shift, trials)
    measured, attainable = proven(hits), proven(declared)
    enough = min(POWER * attainable, unlucky(declared, proven, alpha))
    verdict = measured_verdict(measured, subject.epsilon, enough)
    return Finding(
        "black box",
        subject.name,
        "which of two lives did a person have",
        verdict,
        f"{OFTEN.text}; {sentence(measured, subject.budget, hits, alpha, verdict)}",
        claimed=subject.epsilon,
        measured=measured,
        attainable=attainable,
        halved=proven(gaussian_hits(2.0 * shift, trials)),
        trials=trials,
        alpha=alpha,
        level=subject.epsilon,
    )
