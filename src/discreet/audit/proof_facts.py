"""Facts on which the proofs rest, checked on the shipped fit: frames, blocks, legal rows, costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.audit.finding import (
    HOLDS,
    ROUNDING,
    WEAK,
    Finding,
    computed,
    exact_verdict,
    flat,
    listed,
)
from discreet.audit.gaussian import SLOTS, GaussianRelease, releases_of, shift_of
from discreet.audit.noise_sources import Chosen, choice_of
from discreet.audit.second_accountant import AGREE, agree, epsilon_of
from discreet.audit.subjects import JOINT, Subject, constants
from discreet.batch import Batch
from discreet.errors import PrivateData
from discreet.features.unit_ball import UnitBall
from discreet.oracles import FiniteClass
from discreet.oracles.mechanisms.geometry import publishable
from discreet.oracles.mechanisms.legal_rows import GRID, legal_rows
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import event_json
from discreet.privacy.sensitivities import centre
from discreet.releases.statistics import Statistics

HOSTILE = 200
MANY_ROWS = 120_001
"""More than floating-point numbers could add up exactly, squares of losses included."""


def isometry(subject: Subject) -> Finding:
    """In svec coordinates the noise has one variance in every direction, and no correlation."""
    seen = releases_of(subject)
    sigma = seen.sigma
    error = np.abs(seen.covariance / np.outer(sigma, sigma) - np.eye(len(sigma))).max()
    text = f"covariance differs from the declared one by {error:.0e}"
    return computed(subject, "equal noise in all directions (svec)", error <= ROUNDING, text)


def blocks(subject: Subject) -> Finding:
    """Off-block entries are zero for every batch, and a bandit row enters one block."""
    rng = np.random.default_rng(0)
    A, p = subject.n_actions, subject.dimension + 1
    inside = np.kron(np.eye(A), np.ones((p, p))) > 0
    holds = True
    for rows in [3] * 20 + [1] * 20:
        gram = subject.fit(_wild(rng, rows, A, p, 1.0), Chosen()).gram
        values = np.asarray(gram.values)
        if gram.dense:
            holds &= not values[~inside].any()
            values = values.reshape(A, p, A, p)[range(A), :, range(A)]
        if subject.feedback == "bandit" and rows == 1:
            holds &= int(values.any(axis=(-1, -2)).sum()) <= 1
    text = "off-block entries are exactly zero, and one row enters one block"
    text = text if holds else "a record reaches more than its own block"
    return computed(subject, "zero outside the blocks", holds, text)


def hostile(subject: Subject) -> Finding:
    """Illegal rows (huge, infinite, not numbers, several actions) move a release no further."""
    rng = np.random.default_rng(1)
    A, p = subject.n_actions, subject.dimension + 1
    seen, worst = releases_of(subject), 0.0
    for _ in range(HOSTILE):
        pair = [_wild(rng, 1, A, p, 10.0 ** rng.uniform(-3, 200)) for _ in range(2)]
        try:
            worst = max(worst, seen.distance(*pair))
        except (ArithmeticError, ValueError):  # NumPy's LinAlgError is a ValueError
            worst = math.inf  # an error is a release that nothing covers
    share = worst / shift_of(subject.calibrated.event)
    text = f"{HOSTILE} hostile pairs reach {share:.3f} of the declared distance"
    return computed(subject, "rows that break the rules", share <= 1.0 + ROUNDING, text)


def exact_sums(subject: Subject) -> Finding:
    """Statistics are the same bits in any order of many rows: no rounding is left to the data."""
    rng, A, p = np.random.default_rng(2), subject.n_actions, subject.dimension + 1
    contexts = 10.0 * rng.normal(size=(MANY_ROWS, p - 1))  # nearly all of length 1
    observed = np.arange(A) == rng.integers(A, size=MANY_ROWS)[:, None]
    observed |= subject.feedback == "full"
    losses = rng.beta(0.2, 0.2, size=(MANY_ROWS, A))  # many near the ends: squares are large
    rows = UnitBall(p - 1).map(contexts), losses, observed
    ordered = [part[np.argsort(contexts[:, 0])] for part in rows]
    one, two = (flat(subject.fit(Batch(*parts), Chosen())) for parts in (rows, ordered))
    text = f"{MANY_ROWS:,} rows in two orders have releases that differ by "
    text += f"{np.abs(one - two).max():.0e}"
    return computed(subject, "the same sums in any order", np.array_equal(one, two), text)


def calibration(subject: Subject) -> Finding:
    """The cost of its event, computed a second time by dp_accounting, is within the claim."""
    event, delta = subject.calibrated.event, subject.budget.delta
    ours, theirs = epsilon(event, delta), epsilon_of([event_json(event)], delta)
    holds = agree(ours, theirs) and theirs <= subject.epsilon * (1.0 + AGREE)
    text = f"ledger {ours:.5f}, recomputed {theirs:.5f}"
    return computed(subject, "cost of its event, recomputed", holds, text, claimed=subject.epsilon)


def _wild(rng: np.random.Generator, rows: int, A: int, p: int, size: float) -> Batch:
    features = rng.normal(size=(rows, p)) * size
    if size != 1.0:
        features[rng.random(features.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    return Batch(features, rng.normal(size=(rows, A)) * 5.0, rng.random((rows, A)) < 0.8)


RECORDS = 24
_NEAR = 16.0 / GRID
"""Tolerance of the entries of v vᵀ: rows are rounded by two steps of 1/GRID, then by one."""


def rows_as_published(subject: Subject) -> Finding:
    """Rows and losses are made with the published matrix and bounds; no row is longer than one."""
    rng, wrong = np.random.default_rng(3), list[str]()
    pasts = _pasts(subject, rng)
    for earlier in pasts:
        matrix = np.asarray(earlier[-1].following if earlier else np.eye(subject.dimension + 1))
        for number, size in enumerate(10.0 ** rng.uniform(-6.0, 1.0, size=RECORDS)):
            context = size * rng.normal(size=subject.dimension)
            record = subject.record(context, rng.random(subject.n_actions))
            after = GaussianRelease(subject.calibrated, (1, SLOTS)[number % 2], earlier)
            batch = after.batch(record)
            seen: Any = after.fit(batch).statistics
            if seen.matrix is None or seen.matrix.tobytes() != matrix.tobytes():
                wrong.append("a release names another matrix than the one published before it")
            if np.trace(seen.gram[0]) > 1.0:  # a whole number of steps, and exact
                wrong.append("a row is longer than one")
            wrong += _differing(subject, seen, record, row_bounds(subject, batch.records, earlier))
    try:
        subject.calibrated.fit(record, Chosen(), subject.past(np.pi * matrix))
        wrong.append("a matrix with more bits than a release publishes is used")
    except PrivateData:
        pass
    correct = f"{RECORDS} records after each of {len(pasts)} pasts: rows and losses between the "
    correct += "published bounds, and no norm above one"
    return listed(subject, "rows stretched by the published matrix", wrong, correct)


def row_bounds(
    subject: Subject, records: int, earlier: Sequence[Statistics]
) -> tuple[float, float]:
    """Low and high by the formula of docs/privacy/ridge.md, "Rows between two lengths"."""
    if subject.mechanism == JOINT:
        return 1.0, 1.0
    signal = earlier[-1].signal if earlier else None
    clear = 1.0 if signal is None else float(signal[0])
    factor = 3.0 ** (1.0 - clear) * 1000.0**clear
    more = factor * (subject.dimension + 1) * subject.calibrated.gram**2
    return records / (records + more), (records + more) / records


def _differing(
    subject: Subject, seen: Statistics, record: Batch, bounds: tuple[float, float]
) -> list[str]:
    """Parts of the statistics of one record that are not those of its row and its losses."""
    low, high = bounds
    legal, wrong = legal_rows(record, subject.feedback, subject.losses), []
    row = np.asarray(seen.matrix) @ legal.grid[0] / (math.sqrt(2.0) * GRID)
    length = float(np.linalg.norm(row))
    v = row / max(low, length)
    if np.abs(seen.gram[0] - np.outer(v, v)).max() > _NEAR:
        wrong.append("a row is not M b/max(low, ‖M b‖) for the matrix M published before")
    observed = np.broadcast_to(legal.weights > 0.0, legal.targets.shape)[0]
    centred = np.where(observed, legal.targets[0] - centre(subject.losses, subject.n_actions), 0.0)
    losses = centred * min(1.0, high / length)
    if np.abs(seen.response - losses[:, None] * v).max() > _NEAR:
        wrong.append("a loss is not multiplied by min(1, high/‖M b‖)")
    if seen.outcome_sums is not None:
        by_action = np.stack([0.5 * centred, 0.5 * observed], axis=-1).ravel()
        expected = [1.0, 2.0 * (centred**2).sum(), *by_action]
        if np.abs(seen.outcome_sums - expected).max() > _NEAR:
            wrong.append("sums of losses, counts and squares are not those of the record")
    return wrong


def _pasts(subject: Subject, rng: np.random.Generator) -> list[tuple[Statistics, ...]]:
    """Nothing; the subject's own; a matrix like any other; one far from even; one far too long.

    The last three with each signal that a release before may have published.
    """
    p = subject.dimension + 1
    one, two = (np.linalg.qr(rng.normal(size=(p, p)))[0] for _ in range(2))
    far = (one * np.geomspace(2.0**-8, 2.0**8, p)) @ two
    matrices = rng.normal(size=(p, p)), far, 2.0**10 * rng.normal(size=(p, p))
    made = [
        subject.past(publishable(each), clear) for each in matrices for clear in subject.signals
    ]
    return [(), subject.earlier, *made]


MANY = 20_000
"""Copies of one function, which fix the normaliser: then the ratio comes close to ε."""


def exact_choice(subject: Subject) -> Finding:
    """The largest log ratio of probabilities over pairs of records, for two classes."""
    rng = np.random.default_rng(0)
    random = rng.normal(size=(6, subject.n_actions, subject.dimension + 1))
    hard = constants([0.0] + [1.0] * MANY, subject.n_actions, subject.dimension + 1)
    actions = [0, None] if subject.feedback == "full" else [0, 1, None]
    corners = list(itertools.product((-1.0, 1.0), (0.0, 0.37, 1.0), actions))
    found = 0.0
    for weights in (random, hard):
        mechanism = FiniteClass(weights).calibrate(subject.problem, subject.budget)
        laws = [choice_of(mechanism, subject.record([c], y, a)).log_law() for c, y, a in corners]
        found = max(found, float(np.ptp(laws, axis=0).max()))
    verdict = exact_verdict(found, subject.epsilon)
    if verdict == HOLDS and found < 0.99 * subject.epsilon:
        verdict = WEAK
    text = f"found {found:.4f} over {len(corners) ** 2:,} pairs of records and two classes"
    return computed(subject, "largest ratio of probabilities", verdict, text, exact=found)
