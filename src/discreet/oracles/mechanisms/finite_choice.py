"""Least squares in a finite class, or the exponential mechanism: for ``FiniteClass``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.arrays.backend import as_like, namespace, to_numpy
from discreet.batch import Batch
from discreet.errors import InvalidInput
from discreet.oracles.contract import Calibrated, Problem
from discreet.oracles.mechanisms.legal_rows import GRID, fitted_rows
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import pure_share
from discreet.privacy.events import NO_BUDGET, Event, ExponentialMechanism
from discreet.privacy.noise import Noise
from discreet.releases.release import Fit, Predictor
from discreet.releases.statistics import Statistics
from discreet.types import Array, Numbers

if TYPE_CHECKING:
    from discreet.oracles.configurations import FiniteClass


@dataclass(frozen=True)
class FiniteChoice(Calibrated["FiniteClass"]):
    """P(f) ∝ exp(−ε·L(f)/(2Δ)) with Δ the sensitivity of the summed loss; at ε = ∞ its minimiser.

    [paper, Lemma "Privacy and accuracy of finite-class regression"; docs/privacy/finite.md]
    """

    epsilon: float
    sensitivity: float

    @classmethod
    def of(cls, oracle: FiniteClass, problem: Problem, budget: Budget) -> Self:
        if problem.radii:
            raise InvalidInput(
                "policy must not use radii with a FiniteClass; got a policy that uses them. "
                "Choose Ridge or Logistic, or a policy that uses predictions only."
            )
        if oracle.weights.shape[1:] != (problem.n_actions, problem.p):
            raise InvalidInput(
                f"weights must be of shape (F, {problem.n_actions}, {problem.p}) for this plan; "
                f"got {oracle.weights.shape}. Give one row per action and one column per feature."
            )
        # Privacy: one record moves the summed loss by at most 1, or A with full feedback.
        # [docs/privacy/finite.md, "Sensitivity"]
        sensitivity = float(problem.losses_per_record)
        share = pure_share(budget, problem.participation)
        event: Event = ExponentialMechanism(share, sensitivity)
        event = event if budget.private else NO_BUDGET
        return cls(oracle, problem, share, sensitivity, event=event)

    @property
    def noise_norm(self) -> float:
        """Expected excess of the chosen function's loss, at most (2Δ/ε)·log F."""
        return float(2 * self.sensitivity / self.epsilon * math.log(self.oracle.weights.shape[0]))

    def fit(self, batch: Batch, noise: Noise, _earlier: Sequence[Statistics] = ()) -> Fit:
        """Sum of squared losses → exponential mechanism → the chosen predictor."""
        features, weights, losses, _ = fitted_rows(
            batch, self.problem.feedback, self.problem.losses, exact=noise.exact
        )
        if noise.exact:
            summed = self._summed_losses(features, weights, losses, GRID)
            scores, unit = summed.astype(np.int64), float(GRID)
        else:
            scores, unit = self._summed_losses(features, weights, losses, None), 1.0
        if np.any(np.isfinite(self.epsilon)):
            scale = np.asarray(2.0 * self.sensitivity * unit / np.asarray(self.epsilon))
            chosen = noise.choose("finite class", to_numpy(scores), scale[..., None])
        else:
            chosen = np.argmin(to_numpy(scores), axis=-1)
        return Fit(Predictor(as_like(self.oracle.weights[chosen], batch.features), "clip"))

    def _summed_losses(
        self, features: Array, weights: Array, targets: Array, grid: int | None
    ) -> Array:
        """L(f) (..., F); on a grid, each record's term is a whole number of 1/grid."""
        xp = namespace(features)
        functions = as_like(self.oracle.weights, features)
        total: Numbers = 0.0
        rows = max(1, 2**22 // max(1, functions.shape[0] * functions.shape[1]))
        for start in range(0, features.shape[-2], rows):
            part = slice(start, start + rows)
            x = features[..., None, part, :]  # (..., 1, n, p)
            predicted = Predictor(functions, "clip").losses(x)  # (..., F, n, A)
            terms = (predicted - targets[..., None, part, :]) ** 2
            if grid is not None:
                terms = xp.round(terms * grid)
            total = total + xp.sum(weights[..., None, part, :] * terms, axis=(-2, -1))
        return total
