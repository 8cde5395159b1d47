"""Regression oracles: batch -> Fit. Statistics, noise, solve; calibrated once by a plan."""

from __future__ import annotations

from typing import Protocol, Self

from discreet.oracles.finite import FiniteClass
from discreet.oracles.logistic import Logistic
from discreet.oracles.pooled_ridge import PooledRidge
from discreet.oracles.ridge import Ridge
from discreet.privacy.budget import Budget
from discreet.privacy.events import Event
from discreet.privacy.noise import Noise
from discreet.release import Fit
from discreet.statistics import Statistics
from discreet.types import Batch


class Oracle(Protocol):
    """What a plan needs of an oracle."""

    @property
    def mechanism(self) -> str:
        """``structured``, ``paper`` or ``exponential``."""

    @property
    def bounded(self) -> bool:
        """Whether predictions lie in [0, 1]."""

    def calibrate(
        self, budget: Budget, *, feedback: str, losses: str, radii: bool, n_actions: int, p: int
    ) -> Self:
        """The same oracle with sensitivities and noise fixed."""

    def event(self, records: int) -> Event:
        """What a fit to so many records will cost, before any data are touched."""

    def noise_norm(self, p: int, n_actions: int) -> float:
        """The expected size of the noise, to set beside the number of records."""

    def fit(self, batch: Batch, noise: Noise, earlier: Statistics | None = None) -> Fit:
        """The private fit; ``earlier`` is what the releases before have pooled."""


__all__ = ["FiniteClass", "Logistic", "Oracle", "PooledRidge", "Ridge"]
