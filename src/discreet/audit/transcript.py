"""Whole runs on neighbouring streams: what the sequence of releases reveals about one record.

Exactly: with noise that the auditor knows taken away, a record shows in the release of its own
batch and nowhere else, and so does each draw of noise. Measured: a linear rule over all releases,
learnt from pilot runs, so that a record that leaks into a later release, or twice into its own,
would show.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.audit.attack import learnt_rule, sentence
from discreet.audit.confidence_bounds import (
    Hits,
    gaussian_epsilon,
    gaussian_hits,
    measured_epsilon,
    unlucky,
)
from discreet.audit.finding import FAILS, HOLDS, POWER, ROUNDING, Finding, measured_verdict
from discreet.audit.neighbouring_runs import Play, Scenario
from discreet.audit.noise_sources import Chosen, DrawnAhead
from discreet.privacy.events import Event
from discreet.privacy.noise import SecureNoise
from discreet.releases.released import Released
from discreet.types import NumpyArray


@dataclass
class Remembered(Chosen):
    """Noise that the auditor knows, and that passes for secure: every draw is kept."""

    kept: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    rng: Any = field(default_factory=lambda: np.random.default_rng(0))

    def claim(self, event: Event) -> Event:
        return event

    def normal(self, name: str, shape: tuple[int, ...]) -> Any:
        self.kept[name].append(self.rng.standard_normal(shape))
        return self.kept[name][-1]

    def of_releases(self) -> list[NumpyArray]:
        """Draws for Gram, response and loss sums, as they are read."""
        drawn = [self.kept[name] for name in ("gram", "response", "told") if name in self.kept]
        return [
            np.concatenate([each.reshape(-1) for each in one]) for one in zip(*drawn, strict=True)
        ]


def enters_once(scenario: Scenario, epsilon: float) -> Finding:
    """The record, and each draw of noise, moves only its own batch's release, and once."""
    wrong = []
    for version in (scenario.first, scenario.second):
        noise = Remembered()
        play = Play(scenario, epsilon, noise)
        released = play.releases(version)
        drawn = noise.of_releases()
        if len(drawn) != len(released.items):
            wrong.append("noise is not drawn once for each release")
        left = play.residuals(released, drawn)
        own = play.statistics(version, released)
        for number, residual in enumerate(left, start=1):
            expected = own if number == play.batch else np.zeros_like(residual)
            if np.abs(residual - expected).max() > ROUNDING:
                wrong.append(f"release {number} shows more, or less, than its records and noise")
    return Finding(
        "transcript",
        f"{scenario.mechanism}, bandit",
        f"{scenario.name}: enters once",
        FAILS if wrong else HOLDS,
        "; ".join(dict.fromkeys(wrong))
        or "it shows in the release of its batch alone, and so does the noise of each release",
        level=epsilon,
    )


def transcript(scenario: Scenario, epsilon: float, trials: int, alpha: float) -> Finding:
    """Lower bound on ε from whole transcripts of two neighbouring streams."""
    pilots = trials // 2
    play = Play(scenario, epsilon, DrawnAhead(SecureNoise(), pilots))

    def runs(count: int) -> list[list[Released]]:
        versions = scenario.first, scenario.second
        return [[play.releases(version) for _ in range(count)] for version in versions]

    worlds = runs(pilots)
    shift = float(np.mean([play.shift(each) for world in worlds for each in world]))
    seen = [[play.projections(each) for each in world] for world in worlds]
    rule = learnt_rule(*seen)
    one, two = (
        sum(rule.statistic(play.projections(each)) > rule.threshold for each in world)
        for world in runs(trials)
    )
    hits = Hits(one, two, trials)
    budget = play.plan.budget

    def proven(some: Hits) -> float:
        return measured_epsilon(some, budget, alpha, gaussian=True)

    declared = gaussian_hits(_learnt(shift, pilots, seen[0][0].size), trials)
    measured, attainable = proven(hits), proven(declared)
    halved = proven(gaussian_hits(2.0 * shift, trials))
    enough = min(POWER * attainable, unlucky(declared, proven, alpha))
    verdict = measured_verdict(measured, epsilon, enough)
    return Finding(
        "transcript",
        f"{scenario.mechanism}, bandit",
        scenario.name,
        verdict,
        sentence(measured, budget, hits, alpha, verdict),
        claimed=epsilon,
        exact=gaussian_epsilon(shift, budget.delta),
        measured=measured,
        attainable=attainable,
        halved=halved,
        trials=trials,
        alpha=alpha,
        level=epsilon,
    )


def _learnt(shift: float, pilots: int, numbers: int) -> float:
    """The shift along a direction that was learnt from so many pilot runs of each world.

    Each further number among k dilutes it: its square keeps the share s/(s + k), s = shift²·n/2.
    """
    signal = shift**2 * pilots / 2
    return shift * math.sqrt(signal / (signal + numbers)) if shift else 0.0
