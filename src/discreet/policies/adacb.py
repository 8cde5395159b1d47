"""AdaCB: SquareCB inside RegCB's survivor set."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.policies.allocation import ConfidenceWidth, GapWeight, inverse_gap, surviving, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array


@dataclass(frozen=True)
class AdaCB(ConfidenceWidth, GapWeight):
    """p(a) = 1/(|S| + γ_m·gap_a) for a ≠ b in RegCB's survivor set S, the rest on b, zero outside.

    ``scale`` and ``exponent`` as in SquareCB, ``width`` as in RegCB.
    [Foster et al. 2021; paper, "Exploration-radius baselines"]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Gram, Predictor, Release
    >>> gram = Gram(np.zeros((3, 1, 1)), dense=False, step=1.0)
    >>> predictor = Predictor(np.array([[0.0], [1.0], [9.0]]), "identity")
    >>> released = Released(3).add(Release(1, 1, predictor, gram))
    >>> AdaCB(scale=2.0, exponent=0.5, width=1.0).probabilities(released, np.ones((1, 1)))
    array([[0.75, 0.25, 0.  ]])
    """

    _gpu_rule = "surviving gaps"
    _gpu_parameters = GapWeight._gpu_parameters

    def __post_init__(self) -> None:
        GapWeight.__post_init__(self)
        ConfidenceWidth.__post_init__(self)

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        predictor = view.latest.predictor
        alive = surviving(predictor.scores(features), self.widths(view, features))
        gamma = self.gap_weight(view, features)
        return inverse_gap(predictor.losses(features), gamma, alive)
