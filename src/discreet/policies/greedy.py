"""Greedy: the smallest predicted loss, ties are split evenly."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.policies import one_row
from discreet.policies.allocation import Policy, even_split, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array


@dataclass(frozen=True)
class Greedy(Policy):
    """Uniform over argmin_a f̂(c, a). With ``feedback="full"`` this is the paper's Supervised.

    [paper, "Supervised reference"]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> released = Released(2).add(Release(1, 1, Predictor(np.array([[1.0], [0.0]]), "identity")))
    >>> Greedy().probabilities(released, np.ones((1, 1)))
    array([[0., 1.]])
    """

    _gpu_rule = "minimum"

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        return even_split(view.latest.predictor.losses(features))

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        if view.latest is None:
            return one_row.uniform(view)
        losses = view.latest.predictor.losses

        def probabilities(features: Array) -> list[float]:
            found = one_row.row(losses(features))
            least = min(found)
            slack = 1e-12 * (1.0 + abs(least))
            tied = [loss - least <= slack for loss in found]
            share = 1.0 / sum(tied)
            return [each * share for each in tied]

        return one_row.OneRow.drawn(probabilities)
