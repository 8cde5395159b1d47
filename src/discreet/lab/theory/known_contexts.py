"""A finite class over few contexts: losses are summed by context and action first."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.lab.theory.known_bandits import Truth
from discreet.oracles import FiniteClass, Problem
from discreet.oracles.mechanisms.finite_choice import FiniteChoice
from discreet.privacy.budget import Budget
from discreet.types import Array


class KnownContexts(FiniteChoice):
    """``FiniteChoice`` for one-hot features: the same sums, without a pass over rows a function.

    Σ (f(c, a) − y)² = Σ_{c,a} (n·f² − 2·f·Σy + Σy²), with n, Σy, Σy² over the rows of c and a.
    """

    def _summed_losses(
        self, features: Array, weights: Array, targets: Array, grid: int | None
    ) -> Any:
        if grid is not None:
            raise TypeError("rounding to a grid must happen row by row; use FiniteClass")
        said = np.clip(np.swapaxes(self.oracle.weights, -1, -2), 0.0, 1.0)  # (F, C, A)
        said = said.reshape(len(said), -1).T
        rows = np.swapaxes(features, -1, -2)  # (..., C, n)
        counts, sums, squares = (
            (rows @ (weights * values)).reshape(*weights.shape[:-2], -1)
            for values in (1.0, targets, targets**2)
        )
        total = counts @ said**2 - 2.0 * (sums @ said) + squares.sum(axis=-1, keepdims=True)
        return np.round(total, 9)  # functions that agree on all rows must stay tied


def mechanism_for(truth: Truth, epsilon: float) -> FiniteChoice:
    """Least squares at ε = ∞, else the exponential mechanism, on the truth's own class."""
    weights = truth.weights
    assert weights is not None
    budget = Budget(epsilon) if np.isfinite(epsilon) else Budget.none()
    if truth.joint is not None:
        return FiniteChoice.of(FiniteClass(weights), Problem(1, truth.joint.p, joint=True), budget)
    problem = Problem(truth.n_actions, truth.features.shape[-1])
    return KnownContexts.of(FiniteClass(weights), problem, budget)
