"""After the noise nothing reads the batch: the same noisy statistics give the same release."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.audit.attack import flat
from discreet.audit.finding import FAILS, HOLDS, ROUNDING, Finding
from discreet.audit.gaussian import GaussianRelease
from discreet.audit.sources import Chosen
from discreet.audit.subjects import Subject


def tells_no_more(subject: Subject) -> Finding:
    """Two batches whose noise makes up for their difference must be released alike.

    Neighbours that lie furthest apart, another action, and an answer against silence, each after
    a release that both share.
    """
    seen, rng = GaussianRelease(subject), np.random.default_rng(0)
    sigma = seen.read.sigma
    first, second = subject.worst_pair()
    losses = 1.0 - np.eye(subject.n_actions)[1]
    others = [subject.record([0.6, 0.8], losses, action) for action in (1, None)]
    past = subject.calibrated.fit(second, _noise(seen, rng.normal(size=sigma.size)))
    apart = 0.0
    for other in (second, *others):
        draws = rng.normal(size=sigma.size)
        made_up = draws + (seen.mean(first) - seen.mean(other)) / sigma
        one, two = (
            flat(subject.calibrated.fit(batch, _noise(seen, each), past.statistics))
            for batch, each in ((first, draws), (other, made_up))
        )
        apart = max(apart, float(np.abs(one - two).max()))
    kept = apart <= ROUNDING
    return Finding(
        "exact",
        subject.name,
        "nothing but its noisy statistics",
        HOLDS if kept else FAILS,
        f"batches with the same noisy statistics have releases that differ by {apart:.0e}",
        level=subject.epsilon,
    )


def _noise(seen: GaussianRelease, draws: np.ndarray[Any, Any]) -> Chosen:
    """Standard draws in the order in which statistics are read: blocks, then responses."""
    asked = Chosen()
    seen.mechanism.fit(seen.read.batch(), asked)
    shape = asked.asked["gram"]
    gram, response = np.split(draws, [math.prod(shape)])
    return Chosen(
        {"gram": gram.reshape(shape), "response": response.reshape(asked.asked["response"])}
    )
