"""RegCB: uniform over the actions that the confidence widths do not exclude."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.arrays.backend import namespace, row_sum
from discreet.policies.allocation import ConfidenceWidth, surviving, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array


@dataclass(frozen=True)
class RegCB(ConfidenceWidth):
    """Uniform over S = {a : g_a − β·r_a ≤ min_b (g_b + β·r_b)}, on raw scores g.

    [Foster et al. 2018; paper, "Exploration-radius baselines"]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Gram, Predictor, Release
    >>> gram = Gram(np.array([[[3.0]], [[0.0]]]), dense=False, step=1.0)
    >>> predictor = Predictor(np.array([[0.5], [2.1]]), "identity")
    >>> released = Released(2).add(Release(1, 1, predictor, gram))
    >>> RegCB(width=1.0).probabilities(released, np.ones((1, 1)))
    array([[1., 0.]])
    """

    _gpu_rule = "survivors"

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        scores = view.latest.predictor.scores(features)
        alive = surviving(scores, self.widths(view, features))
        alive = namespace(scores).astype(alive, scores.dtype)
        return alive / row_sum(alive)
