"""Rows after learned geometry: stretched by the matrix that was published, none longer than one.

One record at a time, without noise, after several public pasts. The audit computes M b/‖M b‖
itself. The pasts publish matrices that do not follow from their own statistics, so a matrix that
is computed again, or from the batch, is another one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.audit.finding import FAILS, HOLDS, Finding
from discreet.audit.noise_sources import Chosen
from discreet.audit.subjects import JOINT, Subject
from discreet.errors import PrivateData
from discreet.oracles.mechanisms.geometry import publishable
from discreet.oracles.mechanisms.legal_rows import GRID, legal_rows
from discreet.releases.statistics import Statistics

RECORDS = 60
_NEAR = 16.0 / GRID
"""How far entries of v vᵀ may lie off: rows are rounded by two steps of 1/GRID, then by one."""


def rows_as_published(subject: Subject) -> Finding:
    """The matrix that a release names and uses is the published one; rows have norm at most one."""
    rng, wrong = np.random.default_rng(3), []
    for earlier in _pasts(subject, rng):
        matrix: Any = earlier[-1].following if earlier else np.eye(subject.dimension + 1)
        for size in 10.0 ** rng.uniform(-6.0, 1.0, size=RECORDS):
            context = size * rng.normal(size=subject.dimension)
            record = subject.record(context, rng.integers(2, size=subject.n_actions))
            seen = subject.calibrated.fit(record, Chosen(), earlier).statistics
            gram = seen.gram[0]
            row = matrix @ legal_rows(record, subject.feedback, subject.losses).grid[0]
            if seen.matrix is None or seen.matrix.tobytes() != matrix.tobytes():
                wrong.append("a release names another matrix than the one published before it")
            if np.trace(gram) > 1.0:  # a whole number of steps, and exact
                wrong.append("a row is longer than one")
            squared = float(row @ row)
            if subject.mechanism == JOINT:  # b is z/(2^20·√2), and rows are never made longer
                squared = max(squared, 2.0 * GRID**2)
            if np.abs(gram - np.outer(row, row) / squared).max() > _NEAR:
                wrong.append("a row is not M b/‖M b‖ for the matrix M published before")
            if subject.mechanism == JOINT:
                told = (record.losses[0, 0] - 0.5) * math.sqrt(2.0) * GRID * row / squared
                if np.abs(seen.response[0] - told).max() > _NEAR:
                    wrong.append("a loss is not shortened as its row is")
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
        or f"{RECORDS} records after each of four pasts: M b/‖M b‖, and no norm above one",
        level=subject.epsilon,
    )


def _pasts(subject: Subject, rng: np.random.Generator) -> list[tuple[Statistics, ...]]:
    """Nothing; the subject's own; a matrix like any other; and one that is far from even."""
    p = subject.dimension + 1
    one, two = (np.linalg.qr(rng.normal(size=(p, p)))[0] for _ in range(2))
    far = (one * np.geomspace(2.0**-8, 2.0**8, p)) @ two
    matrices = rng.normal(size=(p, p)), far
    return [(), subject.earlier, *(subject.past(publishable(each)) for each in matrices)]
