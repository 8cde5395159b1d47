"""Uniform: all actions have the same probability."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.policies import one_row
from discreet.policies.allocation import Policy, uniform
from discreet.releases.released import Released
from discreet.types import Array


@dataclass(frozen=True)
class Uniform(Policy):
    """π(c, a) = 1/A. The first batch of every policy, and a floor to compare with.

    >>> import numpy as np
    >>> Uniform().probabilities(Released(n_actions=4), np.ones((1, 2)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    def probabilities(self, released: Released, features: Array) -> Array:
        return uniform(released, features)

    def for_one_row(self, released: Released) -> one_row.OneRow:
        return one_row.uniform(released)
