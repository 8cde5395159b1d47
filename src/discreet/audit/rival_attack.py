"""An attack on the runner of rivals: which of two records did the first person have?

The sums of the first people, their clock and their noise are the shipped ones. The attacker reads
every sum that holds the first person and projects it on the difference of the worlds.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from discreet.audit.attack import sentence
from discreet.audit.confidence_bounds import Hits, gaussian_hits, measured_epsilon, unlucky
from discreet.audit.finding import POWER, Finding, measured_verdict
from discreet.audit.rival_subjects import ACTIONS, DIMENSION, RivalSubject
from discreet.lab.rivals.runner import noisy_sums

TRIALS = 10_000


def black_box_rival(subject: RivalSubject, alpha: float, trials: int = TRIALS) -> Finding:
    """What hits prove about one rival."""
    one, two = subject.worst_pair
    direction = (two - one) / np.linalg.norm(two - one)
    middle = len(subject.ends) * float(direction @ (one + two)) / 2
    told = [
        int((_read(subject, world, trials) @ direction > middle).sum())
        for world in (subject.worst_records[0], subject.worst_records[1])
    ]
    hits, budget = Hits(told[0], told[1], trials), subject.claimed

    def proven(some: Hits) -> float:
        return measured_epsilon(some, budget, alpha, gaussian=True)

    declared = gaussian_hits(subject.shift, trials)
    measured, attainable = proven(hits), proven(declared)
    enough = min(POWER * attainable, unlucky(declared, proven, alpha))
    verdict = measured_verdict(measured, budget.epsilon, enough)
    return Finding(
        "black box",
        subject.name,
        "which of two records was it",
        verdict,
        sentence(measured, budget, hits, alpha, verdict),
        claimed=budget.epsilon,
        measured=measured,
        attainable=attainable,
        halved=proven(gaussian_hits(2.0 * subject.shift, trials)),
        trials=trials,
        alpha=alpha,
        level=subject.epsilon,
    )


def _read(subject: RivalSubject, record: Any, trials: int) -> np.ndarray[Any, Any]:
    """Σ over the sums that hold the person, in units of the declared noise: (trials, numbers)."""
    p = DIMENSION + 1
    packed = p * (p + 1) // 2
    rng = np.random.default_rng()
    scale = {name: np.full((1, 1, 1, 1), value) for name, value in asdict(subject.scales).items()}
    b, loss, action = record
    rows, columns = np.triu_indices(p)
    gram, response = np.zeros((1, 1, ACTIONS, packed)), np.zeros((1, 1, ACTIONS, p))
    gram[..., action, :] = np.outer(b, b)[rows, columns]
    response[..., action, :] = loss * b
    drawn = subject.rival.clock(subject.rounds).noise(
        subject.ends, lambda _: rng.standard_normal((trials, 1, ACTIONS, packed + p))
    )
    law = np.where(rows == columns, subject.scales.diagonal, subject.scales.gram / math.sqrt(2.0))
    total: Any = 0.0
    for noise in drawn:
        noisy, centred = noisy_sums(gram, response, noise, scale, p)
        seen = np.concatenate([noisy / law, centred / subject.scales.response], axis=-1)
        total = total + seen.reshape(trials, -1)
    return np.asarray(total)
