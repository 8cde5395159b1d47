"""Uniform: all actions have the same probability."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.policies import one_row
from discreet.policies.allocation import Policy, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array


@dataclass(frozen=True)
class Uniform(Policy):
    """π(c, a) = 1/A. The first batch of every policy, and a floor to compare with.

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> Uniform().probabilities(Released(n_actions=4), np.ones((1, 2)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        return uniform(view, features)

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        return one_row.uniform(view)
