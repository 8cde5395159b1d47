"""FastCB: inverse gap weighting relative to the best predicted loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.arrays.backend import namespace, row_min
from discreet.policies.allocation import GapWeight, even_split, rest_on_best, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array


@dataclass(frozen=True)
class FastCB(GapWeight):
    """p(a) = f_b/(A·f_b + γ_m·gap_a) for a ≠ b, the rest on the first minimiser b.

    Uniform over the minimisers where the best prediction f_b is not positive. The rule needs
    predictions in [0, 1], so a plan refuses it with ``Ridge``.
    [Foster and Krishnamurthy 2021; paper, "Prediction-only baselines"]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> released = Released(2).add(Release(1, 1, Predictor(np.array([[1.0], [0.5]]), "clip")))
    >>> FastCB(scale=2.0, exponent=0.5).probabilities(released, np.ones((1, 1)))
    array([[0.25, 0.75]])
    """

    needs_bounded_losses: ClassVar[bool] = True
    _gpu_rule = "relative gaps"

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        losses = view.latest.predictor.losses(features)
        xp = namespace(losses)
        gamma = self.gap_weight(view, features)
        best = row_min(losses)
        usable = xp.where(best > 0.0, best, 1.0)
        spread = usable / (losses.shape[-1] * usable + gamma * (losses - best))
        weighted = rest_on_best(spread, losses)
        return xp.where(best > 0.0, weighted, even_split(losses))
