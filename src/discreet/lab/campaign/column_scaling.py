"""Scaling of columns by ranges, for evaluation: a labelled set has no declared ranges.

A deployer declares public ranges (``Schema``). Here the least and the greatest value of a column
stand for them, which looks at the data, so results are not private. [docs/data.md]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.features.schema import FEW_NUMBERS

FEATURES = ("raw", "ranges", "wide")
NOT_PRIVATE = "columns were scaled with the data's own ranges, which is not private"


def scaled(contexts: np.ndarray[Any, Any], features: str) -> np.ndarray[Any, Any]:
    """Return contexts (n, d) with scaled columns, before ``UnitBall`` maps them.

    ``raw`` leaves them alone. ``ranges`` maps each column to [−1, 1] by its own range, adds squares
    of few columns and divides, as ``Schema`` does with declared ranges; ``wide`` takes ranges three
    times as wide, which reach further above the data than below. Two are for comparison: ``linear``
    is ``ranges`` without squares, ``standard`` takes means and deviations.

    >>> scaled(np.array([[0.0], [1.0], [4.0]]), "linear").ravel()
    array([-1. , -0.5,  1. ])
    """
    if features == "raw":
        return contexts
    low, high = contexts.min(axis=0), contexts.max(axis=0)
    width = high - low
    if features == "wide":
        low, high = low - 0.5 * width, high + 1.5 * width
    middle, half = (low + high) / 2, (high - low) / 2
    if features == "standard":
        middle, half = contexts.mean(axis=0), contexts.std(axis=0)
    half = np.where(width > 0.0, half, np.inf)  # a constant column says nothing
    columns = (contexts - middle) / half
    if features in ("ranges", "wide") and columns.shape[1] <= FEW_NUMBERS:
        squares = np.where(width > 0.0, 1.5 * columns**2 - 0.5, 0.0)
        columns = np.stack([columns, squares], axis=-1).reshape(len(columns), -1)
    return np.asarray(columns / columns.shape[1] ** 0.5)
