"""LinUCB: the smallest optimistic loss."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.policies.allocation import ConfidenceWidth, even_split, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array


@dataclass(frozen=True)
class LinUCB(ConfidenceWidth):
    """Uniform over argmin_a f̂_a − β·r_a, with ``width`` β and the released radii r_a.

    [Li et al. 2010; paper, "Exploration-radius baselines"]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Gram, Predictor, Release
    >>> gram = Gram(np.array([[[3.0]], [[0.0]]]), dense=False, step=1.0)
    >>> predictor = Predictor(np.array([[0.5], [0.6]]), "identity")
    >>> released = Released(2).add(Release(1, 1, predictor, gram))
    >>> LinUCB(width=1.0).probabilities(released, np.ones((1, 1)))
    array([[0., 1.]])
    """

    _gpu_rule = "optimism"

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        losses = view.latest.predictor.losses(features)
        return even_split(losses - self.widths(view, features))
