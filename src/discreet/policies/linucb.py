"""LinUCB: the smallest optimistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.arrays.backend import lift
from discreet.policies.allocation import Policy, even_split, uniform
from discreet.releases.released import Released
from discreet.types import Array
from discreet.validate import in_range


@dataclass(frozen=True)
class LinUCB(Policy):
    """Uniform over argmin_a f̂_a − β·r_a, with ``width`` β and the released radii r_a.

    [Li et al. 2010; paper, "Exploration-radius baselines"]

    >>> import numpy as np
    >>> from discreet.releases.release import Gram, Predictor, Release
    >>> gram = Gram(np.array([[[3.0]], [[0.0]]]), dense=False, step=1.0)
    >>> predictor = Predictor(np.array([[0.5], [0.6]]), "identity")
    >>> released = Released(2).add(Release(1, 1, predictor, gram))
    >>> LinUCB(width=1.0).probabilities(released, np.ones((1, 1)))
    array([[0., 1.]])
    """

    width: float = 1.0
    uses_radii: ClassVar[bool] = True

    def __post_init__(self) -> None:
        in_range("width", self.width, 0.0, 1e12)

    def probabilities(self, released: Released, features: Array) -> Array:
        if released.latest is None:
            return uniform(released, features)
        losses = released.latest.predictor.losses(features)
        return even_split(losses - lift(self.width, features) * released.radii(features))
