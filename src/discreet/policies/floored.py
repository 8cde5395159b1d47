"""Rules around the policy of a plan: a floor, and a prior that decides the first batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays.backend import at_most, namespace, per_run
from discreet.policies import one_row
from discreet.policies.allocation import Policy
from discreet.releases.policy_view import PolicyView
from discreet.releases.release import DecidingRelease
from discreet.types import Array, Numbers


@dataclass(frozen=True)
class Floored(Policy):
    """q(a) = (1 − A·f)·p(a) + f with f = min{floor, 1/A}: no action falls below f.

    A plan with ``floor`` decides by this rule; p are the probabilities of its ``policy``.

    >>> from discreet.releases.released import Released
    >>> from discreet.policies.uniform import Uniform
    >>> Floored(Uniform(), 0.1).probabilities(Released(n_actions=4), np.ones((1, 2)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    policy: Policy
    floor: float

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        least = self._least(view)
        own = self.policy.probabilities(view, features)
        rest = per_run(1.0 - view.n_actions * least, features)
        return rest * own + per_run(least, features)

    def sample(self, view: PolicyView, features: Array, u: Array) -> Array:
        """The first A·f of u[..., 0] are shared out evenly; the policy has the rest."""
        xp, actions = namespace(u), view.n_actions
        least = per_run(self._least(view), u, 1)
        even = actions * least
        first = u[..., 0]
        rest = at_most((first - even) / (1.0 - even + (even >= 1.0)), 1.0 - 2.0**-24)
        moved = xp.stack([xp.where(first < even, first, rest), u[..., 1] + 0.0 * rest], axis=-1)
        own = self.policy.sample(view, features, moved)
        any_of = xp.astype(at_most(xp.floor(first / least), actions - 1.0), own.dtype)
        return xp.where(first < even, any_of, own)

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        own, actions = one_row.made(self.policy, view), view.n_actions
        least = float(self._least(view))
        even = actions * least
        remaining = 1.0 - even

        def sample(features: Array, u: float, v: float) -> int:
            if u < even:
                return min(math.floor(u / least), actions - 1)
            return own.sample(features, min((u - even) / remaining, 1.0 - 2.0**-24), v)

        def probabilities(features: Array) -> list[float]:
            return [remaining * chance + least for chance in own.probabilities(features)]

        return one_row.OneRow(probabilities, sample)

    def _least(self, view: PolicyView) -> Numbers:
        return np.minimum(self.floor, 1.0 / view.n_actions)


@dataclass(frozen=True, eq=False)
class FromPrior(Policy):
    """The rule of ``policy``, which reads ``prior`` as a release until there is one.

    A plan with a prior decides its first batch by this rule. Priors are public, so the first
    batch is decided by public numbers, as all others are, and privacy costs no more.
    """

    policy: Policy
    prior: DecidingRelease

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        return self.policy.probabilities(self._view(view), features)

    def sample(self, view: PolicyView, features: Array, u: Array) -> Array:
        return self.policy.sample(self._view(view), features, u)

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        return one_row.made(self.policy, self._view(view))

    def _view(self, view: PolicyView) -> PolicyView:
        if view.items:
            return view
        return PolicyView(view.n_actions, view.schedule, (self.prior,), view.plan, view.changes)
