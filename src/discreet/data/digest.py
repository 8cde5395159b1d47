"""The content of a labelled set in one line: equal digests are equal sets."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

FORMAT = b"discreet-data/1"


def content_digest(contexts: Any, labels: Any, n_actions: int) -> str:
    """SHA-256, in hex, of the format, (n, d, A), the contexts row by row and the labels.

    Numbers are written as little-endian float64 and int64 whatever they were stored as, and −0
    as 0, so that the digest depends neither on the file format nor on the machine. Rows count in
    their order: a run permutes them by position.
    """
    shape = np.asarray([*contexts.shape, n_actions], dtype="<i8")
    numbers = np.ascontiguousarray(contexts, dtype="<f8") + 0.0  # −0 + 0 = 0
    found = hashlib.sha256(FORMAT)
    for part in (shape, numbers, np.ascontiguousarray(labels, dtype="<i8")):
        found.update(part.tobytes())
    return found.hexdigest()
