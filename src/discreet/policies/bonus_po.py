"""BonusPO: Algorithm 3 of the paper, exactly, for all contexts at once.

Three facts save most of the work and change no result. The predicted best action has adjusted loss
zero and weight one at every step, so A − 1 weights suffice and never overflow. Until the first
action has used up its bonus, every weight is one, so these steps are one product. An action whose
weight fell below 1e-40 adds less than B·1e-40 to its count, so its count is not updated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays.backend import as_like, namespace, per_run, row_min, to_numpy
from discreet.policies.allocation import Policy, uniform
from discreet.policies.oracle_errors import batch_error
from discreet.releases.policy_view import PolicyView
from discreet.types import Array, Numbers
from discreet.validate import positive

NEGLIGIBLE = 1e-40
_ROWS = 4096
"""Rows at a time on a CPU: the arrays of one step then fit into the second-level cache."""
_LOOK = 64
"""Steps between two checks of which rows are finished."""


def average_of_updates(gaps: Array, reach: Numbers, rate: Numbers, length: int) -> Array:
    """N_B/B after B = ``length`` updates: gaps (..., n, A) -> probabilities (..., n, A).

    From w = 1 and N = 0, with u = max{0, d − min{1, reach/(1 + N)}}, each step adds w/Σw to N and
    multiplies w by e^{−η·u}. ``reach`` and ``rate`` η broadcast against (..., n, A).
    """
    xp = namespace(gaps)
    order = xp.argsort(gaps, axis=-1)
    ranked = xp.astype(xp.take_along_axis(gaps, order, axis=-1), xp.float64)
    shape = np.broadcast_shapes(gaps.shape, np.shape(reach), np.shape(rate))
    runs, actions = shape[:-1], shape[-1]
    ranked = xp.broadcast_to(ranked, shape)
    worse = xp.reshape(ranked[..., 1:], (-1, actions - 1))  # the best action needs no arithmetic
    reach, rate = (
        xp.reshape(xp.broadcast_to(as_like(value, ranked), (*runs, 1)), (-1,))
        for value in (reach, rate)
    )
    start = _unchanged_steps(worse[:, -1], reach, actions, length)
    counts = xp.broadcast_to((1.0 + start / actions)[:, None], worse.shape)
    moving = xp.nonzero(start < length)[0]
    if moving.shape[0] > 0:
        moving = xp.take(moving, xp.argsort(xp.take(start, moving)))  # the first to move come first
        rows = [xp.take(each, moving, axis=0) for each in (worse, reach, rate, start)]
        counts = counts + 0.0
        counts[moving] = _updated(*rows, length=length)
    shares = xp.reshape((counts - 1.0) / length, (*runs, actions - 1))
    best = 1.0 - xp.sum(shares, axis=-1, keepdims=True)
    sorted_shares = xp.astype(xp.concat([best, shares], axis=-1), gaps.dtype)
    places = xp.broadcast_to(xp.argsort(order, axis=-1), shape)
    return xp.take_along_axis(sorted_shares, places, axis=-1)


def _unchanged_steps(largest: Array, reach: Array, actions: int, length: int) -> Array:
    """Steps k before any adjusted loss is positive: reach/(1 + k/A) ≥ d for the largest gap d."""
    xp = namespace(largest)
    positive = xp.where(largest > 0.0, largest, 1.0)
    steps = xp.floor(actions * (reach / positive - 1.0)) - 1.0  # one less, to be safe from rounding
    steps = xp.where(largest > 0.0, steps, float(length))
    return xp.clip(xp.where(largest > 1.0, 0.0, steps), 0.0, float(length))


def _updated(gaps: Array, reach: Array, rate: Array, start: Array, *, length: int) -> Array:
    """1 + N after the last step, for rows (n, A − 1) in order of their first step ``start``."""
    if not isinstance(gaps, np.ndarray) and gaps.is_cuda:
        from discreet.policies import kernels

        if kernels.can_update():
            return kernels.updated(gaps, reach, rate, start, length)
    rows = [to_numpy(each) for each in (gaps, reach, rate, start)]
    parts = [
        _updated_rows(*(each[first : first + _ROWS] for each in rows), length=length)
        for first in range(0, len(rows[0]), _ROWS)
    ]
    return as_like(np.concatenate(parts), gaps)


def _updated_rows(
    gaps: Numbers, reach: Numbers, rate: Numbers, start: Numbers, *, length: int
) -> Numbers:
    """``_updated`` for a few thousand rows; each row takes part from its own first step."""
    fine = -rate * gaps.T  # (A − 1, n): −η·d; with η·reach below, a step needs no product
    bonus, cap = rate * reach, rate
    counts = np.repeat((1.0 + start / (gaps.shape[1] + 1))[None], gaps.shape[1], axis=0)
    weights = np.ones_like(fine)
    capped = bool((gaps > 1.0).any())  # min{1, ·} matters only for gaps above one
    result, place = np.empty_like(counts), np.arange(len(gaps))
    joined = np.searchsorted(start, np.arange(length), side="right")
    active = -1
    for step in range(int(start[0]), length):
        if step % _LOOK == 0 and active > 0:
            weights[:, :active][weights[:, :active] < NEGLIGIBLE] = 0.0
            kept = weights.any(axis=0)  # rows that have not joined yet have weight one
            if 2 * np.count_nonzero(kept) < len(kept):
                result[:, place[~kept]] = counts[:, ~kept]
                place, start = place[kept], start[kept]
                fine, counts, weights = fine[:, kept], counts[:, kept], weights[:, kept]
                bonus, cap = bonus[kept], cap[kept]
                joined = np.searchsorted(start, np.arange(length), side="right")
                active = -1
        if len(place) == 0:
            break
        if joined[step] != active:
            active = int(joined[step])
            d, r, c = fine[:, :active], bonus[:active], cap[:active]
            N, w = counts[:, :active], weights[:, :active]
            decay, share = np.empty_like(N), np.empty_like(N)
        if active == 0:
            continue
        np.divide(r, N, out=decay)
        if capped:
            np.minimum(decay, c, out=decay)
        decay += d
        np.minimum(decay, 0.0, out=decay)
        np.exp(decay, out=decay)
        np.divide(w, w.sum(axis=0) + 1.0, out=share)
        N += share
        w *= decay
    result[:, place] = counts
    return result.T


@dataclass(frozen=True)
class BonusPO(Policy):
    """The average of B_m bonus-adjusted exponential updates of one predictor.

    With γ_m = min{B_m, √(A·B_{m−1}/E)}, Λ_m = B_m/γ_m, η_m = min{1, √(2·log A/B_m)} and
    predicted gaps d, from π_1 = 1/A and N_0 = 0, for s = 1 … B_m:

    u_s(a) = max{0, d(a) − min{1, 2Λ_m/(1 + N_{s−1}(a))}},
    π_{s+1}(a) ∝ π_s(a)·exp(−η_m·u_s(a)),  N_s = N_{s−1} + π_s;

    the policy is N_{B_m}/B_m. ``error_bound`` E is the oracle's bound Err(T, δ) ≥ 1;
    ``rate_scale`` and ``bonus_scale`` multiply η_m and Λ_m. One evaluation costs B_m steps
    for all rows at once. [paper, Algorithm 3]

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
