"""From contexts to features in the unit ball, by public rules.

A feature row is b = (1, c̄)/√2 with c̄ = c / max(1, ‖c‖), so ‖b‖ ≤ 1 and b·b' ≥ 0: the two
facts on which every sensitivity in ``docs/privacy`` rests. The block structure e_a ⊗ b
stays implicit: rows are (n, p) and the action is an index. [paper, appendix, "Function
classes and regression objectives"]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.features import frames
from discreet.types import NumpyArray
from discreet.validate import matrix, whole

SQRT_HALF = math.sqrt(0.5)


def with_bias(contexts: NumpyArray) -> NumpyArray:
    """(1, c̄)/√2 for finite rows (n, d) -> (n, d + 1)."""
    squares = np.einsum("ij,ij->i", contexts, contexts)
    features = np.empty((contexts.shape[0], contexts.shape[1] + 1))
    features[:, 0] = SQRT_HALF
    if len(contexts) == 1 and math.isfinite(norm := math.sqrt(squares[0])):  # the same, faster
        np.multiply(contexts, SQRT_HALF / max(norm, 1.0), out=features[:, 1:])
        return features
    norms = np.sqrt(squares)
    np.multiply(contexts, SQRT_HALF / np.maximum(norms, 1.0)[:, None], out=features[:, 1:])
    if not np.isfinite(norms).all():  # finite rows whose squares overflow: scale them first
        huge = ~np.isfinite(norms)
        rows = contexts[huge] / np.abs(contexts[huge]).max(axis=1, keepdims=True)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        features[huge, 1:] = SQRT_HALF * rows
    return features


@dataclass(frozen=True)
class UnitBall:
    """Contexts are plain arrays of ``dimension`` numbers, projected onto the unit ball.

    >>> UnitBall(2).map([[3.0, 4.0], [0.3, 0.4]]) * 2**0.5
    array([[1. , 0.6, 0.8],
           [1. , 0.3, 0.4]])
    """

    dimension: int

    def __post_init__(self) -> None:
        whole("dimension", self.dimension, 1)

    @property
    def p(self) -> int:
        """Number of features, bias included."""
        return self.dimension + 1

    def map(self, contexts: object) -> NumpyArray:
        """One context (d,), many (n, d), or a frame of d numeric columns -> features (n, p)."""
        if not isinstance(contexts, list) and frames.is_frame(contexts):
            contexts = frames.numeric_rows(contexts, self.dimension)
        step = "Pass finite numbers in the order that UnitBall was declared for."
        rows = matrix("context", contexts, self.dimension, step)
        return with_bias(rows if rows.ndim == 2 else rows[None])

    def is_single(self, contexts: Any) -> bool:
        """Return whether this is one context rather than a list of them."""
        if isinstance(contexts, np.ndarray):
            return contexts.ndim == 1
        frame = not isinstance(contexts, list) and frames.is_frame(contexts)
        try:
            return not frame and np.ndim(contexts) == 1
        except ValueError:  # rows of several lengths, which ``map`` refuses
            return False
