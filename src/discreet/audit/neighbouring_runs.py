"""Whole runs of a learner on neighbouring streams: what its releases reveal about one record.

The attacker knows the plan, the action draws and every record but one, of which two versions are
possible. From the releases so far follow the actions of every slot, and so the statistics of every
batch but for that record. The rest of each release is projected on the difference of the versions.

Exactly: with noise that the auditor knows taken away, a record shows in the release of its own
batch and nowhere else, and so does each draw of noise. Measured: a linear rule over all releases,
learnt from pilot runs, so that a record that leaks into a later release, or twice into its own,
would show.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.audit import finding
from discreet.audit.gaussian import GaussianRelease
from discreet.audit.noise_sources import FAST, Crash, Dying, SharedByBatch
from discreet.audit.subjects import DEFAULT_PLAN, DELTA
from discreet.batch import Batch
from discreet.features.unit_ball import UnitBall
from discreet.learner import Learner
from discreet.oracles import Ridge
from discreet.plan.plan import Plan
from discreet.policies import LinUCB
from discreet.privacy.budget import Budget
from discreet.privacy.noise import Noise
from discreet.releases.released import Released
from discreet.types import NumpyArray

Version = tuple[tuple[float, ...], float | None]
"""One possible content of the record in question: its context, and its loss, None for silence."""


@dataclass(frozen=True)
class Scenario:
    """Two streams that differ in the record of one slot, and the mechanism that meets them."""

    name: str
    slot: int
    first: Version
    second: Version
    interrupted: bool = False
    mechanism: str = "ridge-structured"


_FIRST: Version = (1.0, 0.0), 1.0
_USUAL = _FIRST, ((-0.75, math.sqrt(7.0) / 4), 0.0)
"""Unit contexts at c·c' = −¾: with losses 1 and 0 the worst pair of one action."""
_ACROSS = _FIRST, ((0.0, 1.0), 0.0)
"""The worst pair of one action where responses have half the noise."""
SCENARIOS = (
    Scenario("a record of the first batch", 0, *_USUAL),
    Scenario("a record of the last batch that is fitted", 4, *_USUAL),
    Scenario("a record of the batch that is never fitted", 7, *_USUAL),
    Scenario("opposite contexts, which may change the action", 3, _FIRST, ((-1.0, 0.0), 0.0)),
    Scenario("an answer against silence", 1, _FIRST, ((1.0, 0.0), None)),
    Scenario("through a save, a crash and a reload", 0, *_USUAL, interrupted=True),
    Scenario("a record of the last batch that is fitted", 4, *_ACROSS, mechanism=DEFAULT_PLAN),
    Scenario("through a save, a crash and a reload", 0, *_ACROSS, True, DEFAULT_PLAN),
)
ACTIONS, DIMENSION, FIRST = 2, 2, 2
ROUNDS = 2 + 4 + 2
"""Batches of 2 and 4 records that are fitted, and a last one of 2 that is not."""
_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder in memory, where short-lived files need not wait for a disk."""
_RNG = np.random.default_rng(0)
CONTEXTS, LOSSES = _RNG.normal(size=(ROUNDS, DIMENSION)), _RNG.integers(2, size=(ROUNDS, ACTIONS))
"""Contexts and losses of all other people, which this attacker knows."""


class SameDraws:
    """Action draws that are public and always the same: privacy holds for every value of them."""

    def random(self, shape: tuple[int, ...]) -> NumpyArray:
        return np.full(shape, 0.25)


@dataclass(frozen=True)
class Play:
    """A learner on one stream, and what the attacker makes of its releases.

    ``_known`` has the statistics without noise of the batches that were met before.
    """

    scenario: Scenario
    epsilon: float
    noise: Noise = FAST
    _known: dict[Any, NumpyArray] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.scenario.mechanism}, bandit"

    @cached_property
    def plan(self) -> Plan:
        default = self.scenario.mechanism == DEFAULT_PLAN
        parts: dict[str, Any] = {} if default else {"policy": LinUCB(), "oracle": Ridge()}
        return Plan(
            n_actions=ACTIONS,
            features=UnitBall(DIMENSION),
            budget=Budget(self.epsilon, DELTA),
            first_batch=FIRST,
            growth=2.0,
            horizon=ROUNDS,
            releases="on_request",
            **parts,
        )

    def _slots(self, number: int) -> NumpyArray:
        schedule = self.plan.schedule
        return schedule.start(number) + np.arange(schedule.lengths()[number - 1])

    def releases(self, version: Version) -> Released:
        """One run of the shipped learner."""
        contexts, losses, answered = CONTEXTS.copy(), LOSSES.astype(float), np.ones(ROUNDS, bool)
        context, loss = version
        slot = self.scenario.slot
        contexts[slot], losses[slot], answered[slot] = context, loss or 0.0, loss is not None
        learner = Learner(self.plan, noise=self.noise, draws=SameDraws())
        for number in range(1, len(self.plan.schedule.lengths()) + 1):
            slots = self._slots(number)
            decided = learner.decide(contexts[slots])
            observed = answered[slots] & decided.stored
            learner.observe(decided.id[observed], losses[slots, decided.action][observed])
            if self.plan.schedule.fitted(number):
                if self.scenario.interrupted and slot in slots:
                    learner = self._crash_and_reload(learner)
                learner.close()
                learner.release()
        return learner.released

    def _crash_and_reload(self, learner: Learner) -> Learner:
        """Saved and loaded; the first release dies while it draws noise, the second succeeds."""
        learner = self._reload(learner, Dying(fast=True))  # its draws are not published
        learner.close()
        try:
            learner.release()
        except Crash:
            return self._reload(learner, self.noise)
        raise AssertionError("the release was to crash")

    def _reload(self, learner: Learner, noise: Noise) -> Learner:
        with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as folder:
            path = Path(folder) / "state"
            learner.save(path)
            return Learner.load(path, noise=noise, draws=SameDraws())

    def residuals(self, released: Released, noise: Sequence[NumpyArray] = ()) -> list[NumpyArray]:
        """Each release minus the statistics of all other records and minus known noise."""
        found = []
        for number, release in enumerate(released.items, start=1):
            slots, seen = self._slots(number), self._seen[number]
            theirs = CONTEXTS[slots], LOSSES[slots], slots != self.scenario.slot
            drawn = noise[number - 1] * seen.sigma if number <= len(noise) else 0.0
            found.append(seen.read(release) - self._silent(number, released, *theirs) - drawn)
        return found

    def projections(self, released: Released) -> NumpyArray:
        """Residuals along the difference of the two versions, in deviations of the noise.

        One number for each part of a release: noise may be missing in one of them alone.
        """
        left = self.residuals(released)
        one, two = self._worlds(released)
        if self.batch <= len(left):
            left[self.batch - 1] = left[self.batch - 1] - (one + two) / 2
        seen = self._seen[self.batch]
        directions = np.zeros((seen.sigma.size, len(seen.parts)))
        for column, part in enumerate(seen.parts):
            difference = (two - one)[part] / seen.sigma[part]
            length = np.linalg.norm(difference) or 1.0
            directions[part, column] = difference / seen.sigma[part] / length
        return np.concatenate([each @ directions for each in left])

    @cached_property
    def batch(self) -> int:
        """The number of the batch to which the record belongs."""
        return next(number for number in (1, 2, 3) if self.scenario.slot in self._slots(number))

    def statistics(self, version: Version, released: Released) -> NumpyArray:
        """The statistics that the record adds to its batch, after the releases before it."""
        context, loss = version
        losses, answered = np.full((1, ACTIONS), loss or 0.0), np.array([loss is not None])
        return self._silent(self.batch, released, np.array([context]), losses, answered)

    def _worlds(self, released: Released) -> list[NumpyArray]:
        versions = self.scenario.first, self.scenario.second
        return [self.statistics(version, released) for version in versions]

    def _silent(
        self,
        number: int,
        released: Released,
        contexts: NumpyArray,
        losses: NumpyArray,
        answered: NumpyArray,
    ) -> NumpyArray:
        """Statistics of known records in the batch of this number, without noise.

        Runs differ in the actions that the policy takes after the releases before, of which there
        are few, and in the matrix and the signal that the newest of these published, if it did:
        all other statistics are cached.
        """
        past = replace(released, items=released.items[: number - 1])
        features = self.plan.features.map(contexts)
        uniforms = SameDraws().random((len(features), 2))
        actions = self.plan.played_policy.sample(past, features, uniforms)
        observed = (np.arange(ACTIONS) == actions[:, None]) & answered[:, None]
        public = parts = [features, losses.astype(float), observed]
        for newest in past.statistics[-1:]:
            public = [*parts, newest.following, newest.signal]
        key = number, *(None if each is None else each.tobytes() for each in public)
        if key not in self._known:
            seen = replace(self._seen[number], earlier=past.statistics)
            self._known[key] = seen.read(seen.fit(seen.batch(Batch(*parts))))
        return self._known[key]

    @cached_property
    def _seen(self) -> dict[int, GaussianRelease]:
        """The releases as the attacker reads them, by the number of the batch."""
        length = self.plan.schedule.length
        return {n: GaussianRelease(self.plan.mechanism, length(n)) for n in (1, 2, 3)}

    def shift(self, released: Released) -> float:
        """Deviations between the worlds in the release of the record's batch, after those before.

        What is public by then decides about it: the action, and how rows are stretched.
        """
        if not self.plan.schedule.fitted(self.batch):
            return 0.0
        one, two = self._worlds(released)
        return float(np.linalg.norm((two - one) / self._seen[self.batch].sigma))


def enters_once(scenario: Scenario, epsilon: float) -> finding.Finding:
    """The record, and each draw of noise, moves only its own batch's release, and once."""
    wrong = []
    for version in (scenario.first, scenario.second):
        noise = SharedByBatch()
        play = Play(scenario, epsilon, noise)
        released = play.releases(version)
        if len(noise.batches) != len(released.items) or any(n.repeated for n in noise.batches):
            wrong.append("noise is not drawn once for each release")
        left = play.residuals(released, [each.drawn() for each in noise.batches])
        own = play.statistics(version, released)
        for number, residual in enumerate(left, start=1):
            expected = own if number == play.batch else np.zeros_like(residual)
            if np.abs(residual - expected).max() > finding.ROUNDING:
                wrong.append(f"release {number} shows more, or less, than its records and noise")
    correct = "it shows in the release of its batch alone, and so does the noise of each release"
    return finding.listed(play, f"{scenario.name}: enters once", wrong, correct, part="transcript")


def transcript(scenario: Scenario, alpha: float, epsilon: float, trials: int) -> finding.Finding:
    """Lower bound on ε from whole transcripts of two neighbouring streams."""
    pilots = trials // 2
    play = Play(scenario, epsilon)

    def runs(count: int) -> list[list[Released]]:
        versions = scenario.first, scenario.second
        return [[play.releases(version) for _ in range(count)] for version in versions]

    worlds = runs(pilots)
    shift = float(np.mean([play.shift(each) for world in worlds for each in world]))
    seen = [[play.projections(each) for each in world] for world in worlds]
    rule = finding.learnt_rule(*seen)
    one, two = (
        sum(rule.statistic(play.projections(each)) > rule.threshold for each in world)
        for world in runs(trials)
    )
    declared = finding.gaussian_hits(_learnt(shift, pilots, seen[0][0].size), trials)
    return finding.hits_finding(
        ("transcript", play.name, scenario.name),
        finding.Hits(one, two, trials),
        play.plan.budget,
        alpha,
        (declared, finding.gaussian_hits(2.0 * shift, trials)),
        exact=finding.gaussian_epsilon(shift, play.plan.budget.delta),
    )


def _learnt(shift: float, pilots: int, numbers: int) -> float:
    """The shift along a direction that was learnt from so many pilot runs of each world.

    Each further number among k dilutes it: its square keeps the share s/(s + k), s = shift²·n/2.
    """
    signal = shift**2 * pilots / 2
    return shift * math.sqrt(signal / (signal + numbers)) if shift else 0.0
