"""SquareCB: inverse gap weighting."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.policies import one_row
from discreet.policies.allocation import GapWeight, inverse_gap, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array


@dataclass(frozen=True)
class SquareCB(GapWeight):
    """p(a) = 1/(A + γ_m·gap_a) for a ≠ b, the rest on the first minimiser b.

    ``scale`` γ0 and ``exponent`` ρ give γ_m = γ0·(Σ_{j<m} B_j)^ρ.
    [Foster and Rakhlin 2020; paper, "Prediction-only baselines"]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> released = Released(2).add(Release(1, 1, Predictor(np.array([[1.0], [0.0]]), "identity")))
    >>> SquareCB(scale=2.0, exponent=0.5).probabilities(released, np.ones((1, 1)))
    array([[0.25, 0.75]])
    """

    scale: float = 4.0
    _gpu_rule = "gaps"

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        losses = view.latest.predictor.losses(features)
        return inverse_gap(losses, self.gap_weight(view, features))

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        if view.latest is None:
            return one_row.uniform(view)
        losses, gamma = view.latest.predictor.losses, self.gap_weight(view, None)

        def probabilities(features: Array) -> list[float]:
            found = one_row.row(losses(features))
            least, count = min(found), len(found)
            shares = [1.0 / (count + gamma * (loss - least)) for loss in found]
            shares[found.index(least)] += 1.0 - sum(shares)
            return shares

        return one_row.OneRow.drawn(probabilities)
