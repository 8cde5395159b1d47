"""Published policies on our own releases: they keep the guarantee of their oracle.

EpsGreedy [Sutton and Barto 2018], ThompsonSampling [Thompson 1933; Agrawal and Goyal 2013].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays.backend import at_least, namespace, per_run, row_min, row_sum
from discreet.policies import Policy
from discreet.policies.allocation import ConfidenceWidth, even_split, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array
from discreet.validate import in_range


@dataclass(frozen=True)
class EpsGreedy(Policy):
    """The action with the least predicted loss, but any action with probability ``share``.

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> predictor = Predictor(np.array([[0.5], [0.6]]), "identity")
    >>> released = Released(2).add(Release(1, 1, predictor))
    >>> EpsGreedy(share=0.2).probabilities(released, np.ones((1, 1)))
    array([[0.9, 0.1]])
    """

    share: float = 0.05

    def __post_init__(self) -> None:
        in_range("share", self.share, 0.0, 1.0)

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        even = uniform(view, features)
        if view.latest is None:
            return even
        share = per_run(self.share, features)
        return share * even + (1.0 - share) * even_split(view.latest.predictor.losses(features))

    @classmethod
    def campaign_settings(cls) -> Sequence[EpsGreedy]:
        return [cls(share) for share in (0.02, 0.1)]


STEPS, FAR = 40, 4.0
"""Steps of the grid, and how many deviations it reaches."""
TINY = 1e-30
"""No step is quite empty."""
LEAST = 1e-6
"""No posterior is narrower: its law would be a step."""


@dataclass(frozen=True)
class ThompsonSampling(ConfidenceWidth):
    """P(a) = P(L_a least), L_a ~ N(f̂_a, (β·r_a)²) independent, with the released radii r_a.

    P(a) = ∫ h_a(x) ∏_b P(L_b > x) dx with the hazard h_a of L_a, on a grid: inside a step the
    actions share what the least does as they share the fall of log ∏_b P(L_b > x), which errs by up
    to 0.03 where widths differ a hundredfold.

    >>> from discreet.releases.released import Released
    >>> from discreet.releases.release import Gram, Predictor, Release
    >>> gram = Gram(np.array([[[3.0]], [[0.0]]]), dense=False, step=1.0)
    >>> predictor = Predictor(np.array([[0.5], [0.6]]), "identity")
    >>> released = Released(2).add(Release(1, 1, predictor, gram))
    >>> ThompsonSampling(width=1.0).probabilities(released, np.ones((1, 1))).round(2)
    array([[0.54, 0.46]])
    """

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        means = view.latest.predictor.losses(features)
        widths = at_least(self.widths(view, features) + 0.0 * means, LEAST)
        means = means + 0.0 * widths
        low = row_min(means - FAR * widths)
        step = (row_min(means + FAR * widths) - low) / STEPS  # the least is hardly ever above
        before = _log_above(low, means, widths)
        found: Array = 0.0
        for number in range(1, STEPS + 1):
            after = _log_above(low + number * step, means, widths)
            passed = before - after + TINY
            total = row_sum(passed)
            survived = namespace(means).exp(row_sum(before))
            # Of what the least does in this step, each action's part is that of its log survival.
            found = found - survived * namespace(means).expm1(-total) * passed / total
            before = after
        return found / row_sum(found)

    @classmethod
    def campaign_settings(cls) -> Sequence[ThompsonSampling]:
        return [cls(width) for width in (0.1, 0.5)]


def _log_above(x: Array, means: Array, widths: Array) -> Array:
    """log P(L_b > x) for every action."""
    distance = (means - x) / widths
    if isinstance(distance, np.ndarray):
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(distance))
    import torch

    return torch.special.log_ndtr(distance)
