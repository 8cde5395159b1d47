"""A finite class: least squares, or the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet.backend import as_like, namespace, to_numpy
from discreet.encoding import decode_array, encode_array
from discreet.errors import InvalidInput
from discreet.oracles.moments import GRID, legal_rows
from discreet.privacy.budget import Budget
from discreet.privacy.events import STACKED, Event, ExponentialMechanism, NonPrivate
from discreet.privacy.noise import Noise
from discreet.release import Fit, Predictor
from discreet.statistics import Statistics
from discreet.types import Array, Batch


@dataclass(frozen=True)
class ChoiceScales:
    """ε and the sensitivity of the summed loss, fixed once by the plan."""

    epsilon: float
    sensitivity: float
    feedback: str
    losses: str
    event: Event = field(repr=False, metadata={"stacked": STACKED})


@dataclass(frozen=True, eq=False)
class FiniteClass:
    """Choose f from F public predictors with probability ∝ exp(−ε·L(f)/(2Δ)), pure ε-DP.

    L(f) = Σ (clip(θ_f,a·b) − y)² over the observed losses; each term lies in [0, 1], so Δ = 1,
    or A where a record brings all A losses. ``weights`` are (F, A, p); predictions are clipped
    to [0, 1]. Without privacy: the first minimiser.
    [paper, Lemma "Privacy and accuracy of finite-class regression"; docs/privacy/finite.md]

    >>> import numpy as np
    >>> FiniteClass(np.zeros((2, 3, 4)))
    FiniteClass(2 functions, 3 actions, 4 features)
    """

    weights: np.ndarray[Any, Any]
    scales: ChoiceScales | None = field(default=None, repr=False)

    bounded = True
    mechanism = "exponential"

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.ndim != 3 or weights.size == 0 or not np.isfinite(weights).all():
            raise InvalidInput(
                f"weights must be finite and of shape (F, A, p); got {np.shape(self.weights)}. "
                "Stack the weight matrices of the functions."
            )
        # Rounded as a plan's configuration will be read: one value everywhere, one digest.
        weights = decode_array(encode_array(weights))
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        functions, actions, p = self.weights.shape
        return f"FiniteClass({functions} functions, {actions} actions, {p} features)"

    def calibrate(
        self, budget: Budget, *, feedback: str, losses: str, radii: bool, n_actions: int, p: int
    ) -> FiniteClass:
        """This oracle with its ε fixed; refuses radii, which a finite class has not."""
        if radii:
            raise InvalidInput(
                "policy must do without radii for a FiniteClass; it needs them. "
                "Choose Ridge or Logistic, or a policy that uses predictions only."
            )
        if self.weights.shape[1:] != (n_actions, p):
            raise InvalidInput(
                f"weights must be of shape (F, {n_actions}, {p}) for this plan; "
                f"got {self.weights.shape}. Give one row per action and one column per feature."
            )
        # Privacy: one record moves the summed loss by at most 1, or A with all losses seen.
        # [docs/privacy/finite.md, "Sensitivity"]
        sensitivity = float(n_actions if feedback == "full" else 1)
        event: Event = ExponentialMechanism(budget.epsilon, sensitivity)
        if not budget.private:
            event = NonPrivate("no privacy budget was set")
        return replace(
            self, scales=ChoiceScales(budget.epsilon, sensitivity, feedback, losses, event)
        )

    def event(self, records: int) -> Event:  # noqa: ARG002
        """What a fit costs; it does not depend on the number of records."""
        return self._calibrated().event

    def noise_norm(self, p: int, n_actions: int) -> float:  # noqa: ARG002
        """Expected excess of the chosen function's loss, at most (2Δ/ε)·log F."""
        scales = self._calibrated()
        return float(2 * scales.sensitivity / scales.epsilon * math.log(self.weights.shape[0]))

    def fit(self, batch: Batch, noise: Noise, earlier: Statistics | None = None) -> Fit:  # noqa: ARG002
        """Sum of squared losses → exponential mechanism → the chosen predictor."""
        scales = self._calibrated()
        if noise.exact:
            legal = legal_rows(batch, scales.feedback, scales.losses)
            scores = self._summed_losses(legal.features, legal.weights, legal.targets, GRID)
            scores, unit = scores.astype(np.int64), float(GRID)
        else:
            xp = namespace(batch.features)
            weights = xp.astype(batch.observed, batch.features.dtype)
            heard = xp.where(xp.isfinite(batch.losses), batch.losses, 0.0)  # NaN: not observed
            scores = self._summed_losses(batch.features, weights, heard, None)
            unit = 1.0
        if np.any(np.isfinite(scales.epsilon)):
            scale = np.asarray(2.0 * scales.sensitivity * unit / np.asarray(scales.epsilon))
            chosen = noise.choose("finite class", to_numpy(scores), scale[..., None])
        else:
            chosen = np.argmin(to_numpy(scores), axis=-1)
        return Fit(Predictor(as_like(self.weights[chosen], batch.features), "clip"))

    def _summed_losses(
        self, features: Array, weights: Array, targets: Array, grid: int | None
    ) -> Array:
        """L(f) (..., F); on a grid, each record's term is a whole number of 1/grid."""
        xp = namespace(features)
        functions = as_like(self.weights, features)
        total: Any = 0.0
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

    def _calibrated(self) -> ChoiceScales:
        if self.scales is None:
            raise TypeError("an oracle must be calibrated by a Plan before it is used")
        return self.scales
