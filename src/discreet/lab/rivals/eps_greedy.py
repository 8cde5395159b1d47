"""ε-greedy on our own releases. [Sutton and Barto 2018]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.arrays.backend import per_run
from discreet.policies import Policy
from discreet.policies.allocation import even_split, uniform
from discreet.releases.policy_view import PolicyView
from discreet.types import Array
from discreet.validate import in_range


@dataclass(frozen=True)
class EpsGreedy(Policy):
    """The action with the least predicted loss, but any action with probability ``share``.

    It reads releases alone, so it keeps the guarantee of its oracle.

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
