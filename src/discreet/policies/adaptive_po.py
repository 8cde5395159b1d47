"""AdaptivePO: bonus updates where contexts are clear, Maillard sampling where they are not."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.arrays.backend import as_like, namespace, per_run, row_min, softmax
from discreet.features.offered import OfferedBlocks
from discreet.policies import one_row
from discreet.policies.allocation import Policy, draw
from discreet.policies.replay_bonus_po import ReplayBonusPO
from discreet.releases.policy_view import PolicyView
from discreet.types import Array
from discreet.validate import positive

ROUNDS = 10_000
"""The bonus of the replay grows no more after about so many rounds."""


@dataclass(frozen=True)
class AdaptivePO(Policy):
    """q = λ·q_replay + (1 − λ)·q_newest: the default policy.

    λ ∈ [0, 1] says how clear contexts are; the newest release has it, and the standard error e_a of
    its predictions for each action (``Statistics.signal``). q_replay is ``ReplayBonusPO``, which
    averages the predictors of all releases, with the bonus ``bonus``/√(1 + T/10,000) after T
    rounds: a whole batch is played by one rule, so a bonus that grows with √T would make large
    batches repeat what small ones have settled. Where contexts are not clear, early predictors are
    mostly noise. There the newest predictor decides alone, by Maillard sampling, whose
    probabilities depend on gaps in units of their errors:

    q_newest(a) ∝ exp(−½·(gap_a/(``scale``·e_a))²),  gap_a = f(a) − min f.

    Releases without a signal have λ = 1. [docs/results/rewards.md; Bian and Jun 2022]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> released = Released(2).add(Release(1, 1, Predictor(np.array([[1.0], [0.0]]), "identity")))
    >>> policy = AdaptivePO(learning_rate=1.0, bonus=0.1)
    >>> policy.probabilities(released, np.ones((1, 1))).round(4)
    array([[0.2831, 0.7169]])
    """

    learning_rate: float | None = None
    bonus: float = 0.01
    scale: float = 0.6

    def __post_init__(self) -> None:
        ReplayBonusPO(self.learning_rate, self.bonus)  # refuses what it cannot use
        positive("scale", self.scale)

    def _replay(self, view: PolicyView) -> ReplayBonusPO:
        made = object.__new__(ReplayBonusPO)  # in a stack the parameters are arrays
        object.__setattr__(made, "learning_rate", self.learning_rate)
        bonus = self.bonus / (1.0 + view.remembered_rounds / ROUNDS) ** 0.5
        object.__setattr__(made, "bonus", bonus)
        return made

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        clear, newest = self._newest(view, features)
        if newest is None:
            return self._replay(view).probabilities(view, features)
        if (clear == 0.0).all():
            return newest
        clear = per_run(clear, features)
        return clear * self._replay(view).probabilities(view, features) + (1.0 - clear) * newest

    def sample(self, view: PolicyView, features: Array, u: Array) -> Array:
        """Draw actions; the second uniform decides which of the two rules is used."""
        clear, newest = self._newest(view, features)
        if newest is None:
            return self._replay(view).sample(view, features, u)
        newest = draw(newest, u[..., 0])
        if (clear == 0.0).all():
            return newest
        replay, clear = self._replay(view).sample(view, features, u), per_run(clear, features, 1)
        return namespace(u).where(u[..., 1] < clear, replay, newest)

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        replay, signal = self._replay(view).for_one_row(view), view.signal
        if signal is None:
            return replay
        clear, *errors = (float(each) for each in signal)
        if view.latest is None or clear == 1.0:
            return replay
        losses = view.latest.predictor.losses
        scales = [self.scale * error for error in errors]

        def newest(features: Array) -> list[float]:
            own = scales
            if isinstance(features, OfferedBlocks):
                own = (self.scale * features.errors(signal[1:]))[0].tolist()
            found = one_row.row(losses(features))
            least = min(found)
            gaps = [(loss - least) / each for loss, each in zip(found, own, strict=True)]
            return one_row.softmax([-0.5 * gap * gap for gap in gaps])

        def probabilities(features: Array) -> list[float]:
            both = zip(replay.probabilities(features), newest(features), strict=True)
            return [clear * one + (1.0 - clear) * two for one, two in both]

        def sample(features: Array, u: float, v: float) -> int:
            return replay.sample(features, u, v) if v < clear else one_row.draw(newest(features), u)

        return one_row.OneRow(probabilities if clear else newest, sample)

    def _newest(self, view: PolicyView, features: Array) -> tuple[Array, Array | None]:
        """λ, and the probabilities of the newest predictor where λ is below 1."""
        signal = view.signal
        if signal is None or (signal[..., 0] == 1.0).all():
            return 1.0, None
        assert view.latest is not None
        losses = view.latest.predictor.losses(features)
        errors = signal[..., None, 1:]
        if isinstance(features, OfferedBlocks):
            errors = features.errors(signal[..., 1:])
        scale = per_run(self.scale, features) * as_like(errors, features)
        gaps = (losses - row_min(losses)) / scale
        return signal[..., 0], softmax(-0.5 * gaps * gaps)
