"""Rows after learned geometry: stretched by the matrix that was published, none longer than one.

One record at a time, without noise, after several public pasts, in batches of one slot and of many.
The audit computes M b/max(low, ‖M b‖) and (y − ½)·min(1, high/‖M b‖) itself. The pasts publish
matrices and signals that do not follow from their own statistics, so that one which is computed
again, or from the batch, is another one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.audit.finding import FAILS, HOLDS, Finding
from discreet.audit.gaussian import SLOTS
from discreet.audit.noise_sources import Chosen
from discreet.audit.release_reading import reader_of
from discreet.audit.subjects import JOINT, Subject
from discreet.errors import PrivateData
from discreet.oracles.mechanisms.geometry import publishable
from discreet.oracles.mechanisms.legal_rows import GRID, legal_rows
from discreet.privacy.sensitivities import centre
from discreet.releases.statistics import Statistics
from discreet.rows.batch import Batch

RECORDS = 24
_NEAR = 16.0 / GRID
"""How far entries of v vᵀ may lie off: rows are rounded by two steps of 1/GRID, then by one."""


def rows_as_published(subject: Subject) -> Finding:
    """Rows and losses are made with the published matrix and bounds; no row is longer than one."""
    rng, wrong = np.random.default_rng(3), list[str]()
    pasts = _pasts(subject, rng)
    for earlier in pasts:
        matrix: Any = earlier[-1].following if earlier else np.eye(subject.dimension + 1)
        for number, size in enumerate(10.0 ** rng.uniform(-6.0, 1.0, size=RECORDS)):
            context = size * rng.normal(size=subject.dimension)
            record = subject.record(context, rng.random(subject.n_actions))
            batch = _among(subject, record, (1, SLOTS)[number % 2])
            seen = subject.calibrated.fit(batch, Chosen(), earlier).statistics
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
    return Finding(
        "exact",
        subject.name,
        "rows stretched by the published matrix",
        FAILS if wrong else HOLDS,
        "; ".join(dict.fromkeys(wrong))
        or f"{RECORDS} records after each of {len(pasts)} pasts: rows and losses between the "
        "published bounds, and no norm above one",
        level=subject.epsilon,
    )


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


def _among(subject: Subject, record: Batch, slots: int) -> Batch:
    """One record, and void slots."""
    p = subject.dimension + 1
    return reader_of(subject.calibrated, slots, subject.n_actions, p).batch(record)


def _differing(
    subject: Subject, seen: Statistics, record: Batch, bounds: tuple[float, float]
) -> list[str]:
    """Parts of the statistics of one record that are not those of its row and its losses."""
    low, high = bounds
    legal, wrong = legal_rows(record, subject.feedback, subject.losses), []
    row: Any = seen.matrix @ legal.grid[0] / (math.sqrt(2.0) * GRID)
    length = float(np.linalg.norm(row))
    v = row / max(low, length)
    if np.abs(seen.gram[0] - np.outer(v, v)).max() > _NEAR:
        wrong.append("a row is not M b/max(low, ‖M b‖) for the matrix M published before")
    observed = np.broadcast_to(legal.weights > 0.0, legal.targets.shape)[0]
    centred = np.where(observed, legal.targets[0] - centre(subject.losses, subject.n_actions), 0.0)
    losses = centred * min(1.0, high / length)
    if np.abs(seen.response - losses[:, None] * v).max() > _NEAR:
        wrong.append("a loss is not multiplied by min(1, high/‖M b‖)")
    if seen.told is not None:
        by_action = np.stack([0.5 * centred, 0.5 * observed], axis=-1).ravel()
        told = [1.0, 2.0 * (centred**2).sum(), *by_action]
        if np.abs(seen.told - told).max() > _NEAR:
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
