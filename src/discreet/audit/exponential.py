"""The exponential mechanism, exactly: probabilities from the scores and the scale of a fit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from discreet.audit.finding import HOLDS, WEAK, Finding, exact_verdict
from discreet.audit.noise_sources import Chosen
from discreet.audit.subjects import Subject, constants
from discreet.oracles import FiniteClass, Mechanism
from discreet.rows.batch import Batch

MANY = 20_000
"""Copies of one function, which fix the normaliser: then the ratio comes close to ε."""


def log_probabilities(mechanism: Mechanism, batch: Batch) -> np.ndarray[Any, Any]:
    """The probability of each function, from the noise that a fit asks for."""
    asked = Chosen()
    mechanism.fit(batch, asked)
    logits = -asked.scores / asked.scale
    top = logits.max()
    return np.asarray(logits - top - np.log(np.exp(logits - top).sum()))


def exact_choice(subject: Subject) -> Finding:
    """The largest log ratio of probabilities over pairs of records, for two classes."""
    rng = np.random.default_rng(0)
    random = rng.normal(size=(6, subject.n_actions, subject.dimension + 1))
    hard = constants([0.0] + [1.0] * MANY, subject.n_actions, subject.dimension + 1)
    actions = [0, None] if subject.feedback == "full" else [0, 1, None]
    corners = [(c, y, a) for c in (-1.0, 1.0) for y in (0.0, 0.37, 1.0) for a in actions]
    found = 0.0
    for weights in (random, hard):
        mechanism = FiniteClass(weights).calibrate(subject.problem, subject.budget)
        laws = [log_probabilities(mechanism, subject.record([c], y, a)) for c, y, a in corners]
        worst = max(float((one - two).max()) for one, two in itertools.product(laws, repeat=2))
        found = max(found, worst)
    verdict = exact_verdict(found, subject.epsilon)
    if verdict == HOLDS and found < 0.99 * subject.epsilon:
        verdict = WEAK
    return Finding(
        "exact",
        subject.name,
        "largest ratio of probabilities",
        verdict,
        f"found {found:.4f} over {len(corners) ** 2:,} pairs of records and two classes",
        claimed=subject.epsilon,
        exact=found,
        level=subject.epsilon,
    )
