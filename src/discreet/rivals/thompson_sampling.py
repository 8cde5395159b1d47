"""Thompson sampling on our own releases. [Thompson 1933; Agrawal and Goyal 2013]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays.backend import at_least, namespace, row_sum
from discreet.policies.allocation import uniform
from discreet.policies.shared_parameters import ConfidenceWidth
from discreet.releases.released import Released
from discreet.types import Array

NODES, WEIGHTS = (each.tolist() for each in np.polynomial.hermite_e.hermegauss(15))
"""Of a Gauss rule for the normal law."""
LEAST = 1e-6
"""No posterior is narrower: its law would be a step."""


@dataclass(frozen=True)
class ThompsonSampling(ConfidenceWidth):
    """P(a) = P(L_a least), L_a ~ N(f̂_a, (β·r_a)²) independent, with the released radii r_a.

    P(a) = ∫ φ(z) ∏_{b≠a} Φ̄((f̂_a + βr_a z − f̂_b)/(βr_b)) dz by a Gauss rule with 15 nodes, then
    normalised. It reads releases alone, so it keeps the guarantee of its oracle.

    >>> from discreet.releases.release import Gram, Predictor, Release
    >>> gram = Gram(np.array([[[3.0]], [[0.0]]]), dense=False, step=1.0)
    >>> predictor = Predictor(np.array([[0.5], [0.6]]), "identity")
    >>> released = Released(2).add(Release(1, 1, predictor, gram))
    >>> ThompsonSampling(width=1.0).probabilities(released, np.ones((1, 1))).round(2)
    array([[0.53, 0.47]])
    """

    def probabilities(self, released: Released, features: Array) -> Array:
        if released.latest is None:
            return uniform(released, features)
        means = released.latest.predictor.losses(features)
        widths = at_least(self.widths(released, features) + 0.0 * means, LEAST)
        means = means + 0.0 * widths
        xp, n_actions = namespace(means), means.shape[-1]
        columns = []
        for action in range(n_actions):
            total: Any = 0.0
            for node, weight in zip(NODES, WEIGHTS, strict=True):
                drawn = means[..., action] + node * widths[..., action]
                chance: Any = weight
                for other in range(n_actions):
                    if other != action:
                        apart = (means[..., other] - drawn) / widths[..., other]
                        chance = chance * _normal_cdf(apart)
                total = total + chance
            columns.append(total)
        found = at_least(xp.stack(columns, axis=-1), 1e-30)
        return found / row_sum(found)

    @classmethod
    def campaign_settings(cls) -> Sequence[ThompsonSampling]:
        return [cls(width) for width in (0.1, 0.5)]


def _normal_cdf(values: Array) -> Array:
    if isinstance(values, np.ndarray):
        from scipy.special import ndtr

        return np.asarray(ndtr(values))
    import torch

    return torch.special.ndtr(values)
