"""BonusPO: Algorithm 3 of the paper, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays.backend import per_run, row_min
from discreet.policies.allocation import Policy, uniform
from discreet.policies.bonus_updates import average_of_updates
from discreet.policies.oracle_errors import batch_error
from discreet.releases.policy_view import PolicyView
from discreet.types import Array
from discreet.validate import positive


@dataclass(frozen=True)
class BonusPO(Policy):
    """The average of B_m bonus-adjusted exponential updates of one predictor.

    With γ_m = min{B_m, √(A·B_{m−1}/E)}, Λ_m = B_m/γ_m, η_m = min{1, √(2·log A/B_m)} and
    predicted gaps d, from π_1 = 1/A and N_0 = 0, for s = 1 … B_m:

    u_s(a) = max{0, d(a) − min{1, 2Λ_m/(1 + N_{s−1}(a))}},
    π_{s+1}(a) ∝ π_s(a)·exp(−η_m·u_s(a)),  N_s = N_{s−1} + π_s;

    the policy is N_{B_m}/B_m. ``error_bound`` E is the oracle's bound Err(T, δ) ≥ 1;
    ``rate_scale`` and ``bonus_scale`` multiply η_m and Λ_m. One evaluation costs B_m steps
    for all rows at once (bonus_updates.py). [paper, Algorithm 3]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> released = Released(2).add(Release(1, 1, Predictor(np.array([[1.0], [0.0]]), "identity")))
    >>> BonusPO(error_bound=1.0, bonus_scale=0.1).probabilities(released, np.ones((1, 1))).round(4)
    array([[0.4275, 0.5725]])
    """

    error_bound: float = 1.0
    rate_scale: float = 1.0
    bonus_scale: float = 1.0

    def __post_init__(self) -> None:
        positive("error_bound", self.error_bound)
        positive("rate_scale", self.rate_scale)
        positive("bonus_scale", self.bonus_scale)

    @classmethod
    def theoretical(
        cls, *, horizon: int, functions: int, delta: float, epsilon: float = math.inf
    ) -> BonusPO:
        """The parameters of the theorem for a finite class, with Err as for ``VanillaPO``.

        [paper, equation "bonus-parameters"]

        >>> round(BonusPO.theoretical(horizon=1000, functions=16, delta=0.05).error_bound, 2)
        94.57
        """
        return cls(error_bound=batch_error(horizon, functions, delta, epsilon))

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        if view.latest is None:
            return uniform(view, features)
        actions, length = view.n_actions, view.batch_length
        previous = view.schedule.nominal(len(view.items))
        gamma = np.minimum(float(length), (actions * previous / self.error_bound) ** 0.5)
        reach = per_run(2.0 * self.bonus_scale * length / gamma, features)
        rate = per_run(
            self.rate_scale * min(1.0, math.sqrt(2 * math.log(actions) / length)), features
        )
        losses = view.latest.predictor.losses(features)
        return average_of_updates(losses - row_min(losses), reach, rate, length)
