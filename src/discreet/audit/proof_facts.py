"""Facts on which the proofs rest, checked on the shipped fit: frames, blocks, legal rows, costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.audit.attack import flat
from discreet.audit.finding import FAILS, HOLDS, ROUNDING, Finding
from discreet.audit.gaussian import GaussianRelease, shift_of
from discreet.audit.noise_sources import Chosen
from discreet.audit.second_accountant import AGREE, agree, epsilon_of
from discreet.audit.subjects import Subject
from discreet.features.unit_ball import UnitBall
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import to_json
from discreet.rows.batch import Batch

HOSTILE = 200
MANY_ROWS = 120_001
"""More than floating-point numbers could add up exactly, squares of losses included."""


def isometry(subject: Subject) -> Finding:
    """In svec coordinates the noise has one variance in every direction, and no correlation."""
    seen = GaussianRelease(subject)
    sigma = seen.read.sigma
    error = np.abs(seen.covariance / np.outer(sigma, sigma) - np.eye(len(sigma))).max()
    return _fact(
        subject,
        "equal noise in all directions (svec)",
        error <= ROUNDING,
        f"covariance differs from the declared one by {error:.0e}",
    )


def blocks(subject: Subject) -> Finding:
    """Off-block entries are zero for every batch, and a bandit row enters one block."""
    rng = np.random.default_rng(0)
    A, p = subject.n_actions, subject.dimension + 1
    inside = np.kron(np.eye(A), np.ones((p, p))) > 0
    kept = True
    for rows in [3] * 20 + [1] * 20:
        gram = subject.fit(_wild(rng, rows, A, p, 1.0), Chosen()).gram
        values = np.asarray(gram.values)
        if gram.dense:
            kept &= not values[~inside].any()
            values = np.stack([values[a * p : (a + 1) * p, a * p : (a + 1) * p] for a in range(A)])
        if subject.feedback == "bandit" and rows == 1:
            kept &= int(values.any(axis=(-1, -2)).sum()) <= 1
    return _fact(
        subject,
        "zero outside the blocks",
        kept,
        "off-block entries are exactly zero, and one row enters one block"
        if kept
        else "a record reaches more than its own block",
    )


def hostile(subject: Subject) -> Finding:
    """Illegal rows (huge, infinite, not numbers, several actions) move a release no further."""
    rng = np.random.default_rng(1)
    A, p = subject.n_actions, subject.dimension + 1
    seen, worst = GaussianRelease(subject), 0.0
    for _ in range(HOSTILE):
        pair = [_wild(rng, 1, A, p, 10.0 ** rng.uniform(-3, 200)) for _ in range(2)]
        try:
            worst = max(worst, seen.distance(*pair))
        except (ArithmeticError, ValueError):  # NumPy's LinAlgError is a ValueError
            worst = math.inf  # an error is a release that nothing covers
    share = worst / shift_of(subject.calibrated.event)
    return _fact(
        subject,
        "rows that break the rules",
        share <= 1.0 + ROUNDING,
        f"{HOSTILE} hostile pairs reach {share:.3f} of the declared distance",
    )


def exact_sums(subject: Subject) -> Finding:
    """Statistics are the same bits in any order of many rows: no rounding is left to the data."""
    rng, A, p = np.random.default_rng(2), subject.n_actions, subject.dimension + 1
    contexts = 10.0 * rng.normal(size=(MANY_ROWS, p - 1))  # nearly all of length 1
    observed = np.arange(A) == rng.integers(A, size=MANY_ROWS)[:, None]
    observed |= subject.feedback == "full"
    losses = rng.beta(0.2, 0.2, size=(MANY_ROWS, A))  # many near the ends: squares are large
    rows = UnitBall(p - 1).map(contexts), losses, observed
    order = np.argsort(contexts[:, 0])
    one, two = (
        flat(subject.fit(Batch(*parts), Chosen()))
        for parts in (rows, tuple(part[order] for part in rows))
    )
    return _fact(
        subject,
        "the same sums in any order",
        bool(np.array_equal(one, two)),
        f"{MANY_ROWS:,} rows in two orders have releases that differ by "
        f"{np.abs(one - two).max():.0e}",
    )


def calibration(subject: Subject) -> Finding:
    """The cost of its event, computed a second time by dp_accounting, is within the claim."""
    event, delta = subject.calibrated.event, subject.budget.delta
    ours, theirs = epsilon(event, delta), epsilon_of([to_json(event)], delta)
    kept = agree(ours, theirs) and theirs <= subject.epsilon * (1.0 + AGREE)
    return Finding(
        "exact",
        subject.name,
        "cost of its event, recomputed",
        HOLDS if kept else FAILS,
        f"ledger {ours:.5f}, recomputed {theirs:.5f}",
        claimed=subject.epsilon,
        level=subject.epsilon,
    )


def _wild(rng: Any, rows: int, A: int, p: int, size: float) -> Batch:
    features = rng.normal(size=(rows, p)) * size
    if size != 1.0:
        features[rng.random(features.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    return Batch(features, rng.normal(size=(rows, A)) * 5.0, rng.random((rows, A)) < 0.8)


def _fact(subject: Subject, question: str, kept: bool, said: str) -> Finding:
    verdict = HOLDS if kept else FAILS
    return Finding("exact", subject.name, question, verdict, said, level=subject.epsilon)
