"""Scores as probabilities, by the nearest point of the simplex."""

from __future__ import annotations

import numpy as np

from discreet.types import Floats


def on_the_simplex(scores: Floats) -> Floats:
    """The nearest rows with entries of at least 0 that sum to 1; the largest stays the largest.

    [Duchi et al. 2008, Figure 1]

    >>> on_the_simplex(np.array([[0.5, 0.5], [1.5, 0.1], [0.2, -0.4]]))
    array([[0.5, 0.5],
           [1. , 0. ],
           [0.8, 0.2]])
    """
    falling = -np.sort(-scores, axis=-1)
    counts = np.arange(1, scores.shape[-1] + 1)
    shifts = (np.cumsum(falling, axis=-1) - 1.0) / counts
    kept = (falling > shifts).sum(axis=-1, keepdims=True)
    return np.asarray(np.maximum(scores - np.take_along_axis(shifts, kept - 1, axis=-1), 0.0))
