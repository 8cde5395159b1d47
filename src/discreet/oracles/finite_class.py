"""A finite class of public predictors: its configuration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidInput
from discreet.oracles.contract import Problem
from discreet.oracles.mechanisms.finite_choice import FiniteChoice
from discreet.privacy.budget import Budget
from discreet.releases.canonical import decode_array, encode_array
from discreet.types import Floats


@dataclass(frozen=True, eq=False)
class FiniteClass:
    """Choose f from F public predictors with probability ∝ exp(−ε·L(f)/(2Δ)), pure ε-DP.

    L(f) = Σ (clip(θ_f,a·b) − y)² over the observed losses; each term lies in [0, 1], so Δ = 1,
    or A where a record has all A losses. ``weights`` are (F, A, p); predictions are clipped
    to [0, 1]. Without privacy: the first minimiser.
    [paper, Lemma "Privacy and accuracy of finite-class regression"; docs/privacy/finite.md]

    >>> import numpy as np
    >>> FiniteClass(np.zeros((2, 3, 4)))
    FiniteClass(2 functions, 3 actions, 4 features)
    """

    weights: Floats

    bounded = True

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.ndim != 3 or weights.size == 0 or not np.isfinite(weights).all():
            raise InvalidInput(
                f"weights must be finite and of shape (F, A, p); got {np.shape(self.weights)}. "
                "Stack the weight matrices of the functions."
            )
        # Rounded exactly as a plan's configuration is read back, so that the digest is the same.
        weights = decode_array(encode_array(weights))
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        functions, actions, p = self.weights.shape
        return f"FiniteClass({functions} functions, {actions} actions, {p} features)"

    def calibrate(self, problem: Problem, budget: Budget) -> FiniteChoice:
        """The mechanism with its ε fixed; refuses radii, which a finite class cannot give."""
        return FiniteChoice.of(self, problem, budget)
