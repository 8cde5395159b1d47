"""AdaptivePO: bonus updates where contexts are clear, inverse gap weighting where they are not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays.backend import as_like, per_run, namespace
from discreet.policies import one_row
from discreet.policies.allocation import Policy, draw, inverse_gap
from discreet.policies.replay_bonus_po import ReplayBonusPO
from discreet.releases.released import Released
from discreet.types import Array
from discreet.validate import positive


SQ, TAIL, BE, MINQ = 0.5, 0.0, 0.0, 0.0


@dataclass(frozen=True)
class AdaptivePO(Policy):
    """q = λ·q_replay + (1 − λ)·q_gap: the default policy.

    λ ∈ [0, 1] says how clear contexts are, and τ is the standard deviation of losses; the newest
    release has both (``Statistics.signal``). q_replay is ``ReplayBonusPO``, which averages the
    predictors of all releases. Where predicted losses differ little, early predictors are mostly
    noise, and the newest one decides alone, by inverse gap weighting without units:

    q_gap(a) = 1/(A + γ·gap_a) for a ≠ b, the rest on the first minimiser b, γ = ``scale``·√T/τ.

    Releases without a signal have λ = 1. [docs/results/rewards.md; Foster and Rakhlin 2020]

    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> released = Released(2).add(Release(1, 1, Predictor(np.array([[1.0], [0.0]]), "identity")))
    >>> policy = AdaptivePO(learning_rate=1.0, bonus=0.1)
    >>> policy.probabilities(released, np.ones((1, 1))).round(4)
    array([[0.2831, 0.7169]])
    """

    learning_rate: float | None = None
    bonus: float = 0.01
    scale: float = 4.0

    def __post_init__(self) -> None:
        ReplayBonusPO(self.learning_rate, self.bonus)  # refuses what it cannot use
        positive("scale", self.scale)

    @cached_property
    def _replay(self) -> ReplayBonusPO:
        made = object.__new__(ReplayBonusPO)  # in a stack the parameters are arrays
        for name in ("learning_rate", "bonus"):
            object.__setattr__(made, name, getattr(self, name))
        return made

    def probabilities(self, released: Released, features: Array) -> Array:
        signal = released.signal
        if signal is None:
            return self._replay.probabilities(released, features)
        clear = per_run(signal[..., 0], features)
        if _all(clear, 1.0):
            return self._replay.probabilities(released, features)
        gap = self._gap_weighting(released, features, signal)
        if _all(clear, 0.0):
            return gap
        return clear * self._replay.probabilities(released, features) + (1.0 - clear) * gap

    def sample(self, released: Released, features: Array, u: Array) -> Array:
        """The second uniform says which of the two rules decides."""
        signal = released.signal
        if signal is None:
            return self._replay.sample(released, features, u)
        clear = per_run(signal[..., 0], features, 1)
        if _all(clear, 1.0):
            return self._replay.sample(released, features, u)
        gap = draw(self._gap_weighting(released, features, signal), u[..., 0])
        if _all(clear, 0.0):
            return gap
        replay = self._replay.sample(released, features, u)
        return namespace(u).where(u[..., 1] < clear, replay, gap)

    def for_one_row(self, released: Released) -> one_row.OneRow:
        replay, signal = self._replay.for_one_row(released), released.signal
        if signal is None:
            return replay
        clear, deviation = (float(each) for each in signal)
        if released.latest is None or clear == 1.0:
            return replay
        losses, gamma = released.latest.predictor.losses, self._weight(released) / deviation

        def gap(features: Array) -> list[float]:
            return one_row.inverse_gap(one_row.row(losses(features)), gamma)

        def probabilities(features: Array) -> list[float]:
            both = zip(replay.probabilities(features), gap(features), strict=True)
            return [clear * one + (1.0 - clear) * two for one, two in both]

        def sample(features: Array, u: float, v: float) -> int:
            return replay.sample(features, u, v) if v < clear else one_row.draw(gap(features), u)

        return one_row.OneRow(probabilities if clear else gap, sample)

    def _weight(self, released: Released) -> Any:
        return self.scale * float(max(1, released.remembered_rounds)) ** 0.5

    def _gap_weighting(self, released: Released, features: Array, signal: Array) -> Array:
        assert released.latest is not None
        losses = released.latest.predictor.losses(features)
        if SQ:
            own = signal[..., None, 3:] * SQ
            best = losses.min(-1)[..., None]
            first = losses.argmin(-1)[..., None] == np.arange(losses.shape[-1])
            eb = np.where(first, own, 0).sum(-1)[..., None]
            z2 = (losses - best) ** 2 / (own**2 + BE * eb**2)
            if TAIL == 0:
                q = np.exp(-0.5 * z2)
            else:
                q = (1 + z2 / TAIL) ** (-TAIL / 2)
            q = q / q.sum(-1)[..., None]
            if MINQ:
                least = min(1.0 / losses.shape[-1], MINQ * (losses.shape[-1] * max(1, released.remembered_rounds)) ** -0.5)
                q = (1 - losses.shape[-1] * least) * q + least
            return q
        gamma = as_like(self._weight(released), signal) / signal[..., 1]
        return inverse_gap(losses, per_run(gamma, features))


def _all(values: Any, number: float) -> bool:
    return bool((values == number).all())


import os as _os

for _each in filter(None, _os.environ.get("KNOBS", "").split(",")):
    _name, _, _value = _each.partition("=")
    if _name in globals():
        globals()[_name] = float(_value)
