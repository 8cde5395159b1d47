"""Noisy sums of losses of policy and control, in one Gaussian release next to the fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

import numpy as np

from discreet.arrays.backend import as_like, namespace, per_run
from discreet.batch import Batch, Sums
from discreet.oracles.mechanisms.legal_rows import GRID, legal_losses
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Budget, Participation
from discreet.privacy.calibration import gaussian_multiplier, need_delta, smallest_scale
from discreet.privacy.events import NO_BUDGET, STACKED, Event, Gaussian, compose
from discreet.privacy.noise import Noise
from discreet.privacy.sensitivities import centre, sampler_distance
from discreet.releases.statistics import COUNT_VARIANCE, PartLosses
from discreet.types import Array, Numbers

SENSITIVITY = 1.0
"""Joint, of (Σ(y − ½), (√3/2)·number observed). [docs/privacy/lift.md, "Sensitivity"]"""
LARGEST_SPLIT = 30.0
"""A larger ε is divided as this one is: beyond about 39 the distance of the discrete sampler from a
Gaussian takes all of δ. [docs/privacy/arithmetic.md, "What δ pays for it"]"""
COORDINATES = 2
"""Numbers that one record touches: those of its part."""


@dataclass(frozen=True)
class LossSums:
    """For each part Q = Σ(y − ½) with noise σ and N, the observed losses, with noise 2σ/√3.

    Privacy: a record is in one part. Another loss moves Q by at most 1; a loss that is observed or
    not moves (Q, √¾·N) by at most √(¼ + ¾) = 1. [docs/privacy/lift.md, "Sensitivity"]
    """

    sigma: float
    event: Event = field(metadata={"stacked": STACKED})

    @classmethod
    def of(cls, fit: Event, budget: Budget, often: Participation) -> Self:
        """The least noise with which fit and sums together keep within the budget."""
        return cls(*_calibrated(fit, budget, often)) if budget.private else cls(0.0, NO_BUDGET)

    def noisy_sums(self, batch: Batch, noise: Noise) -> PartLosses:
        """Return the sums of a batch, with noise."""
        law = np.array([1.0, math.sqrt(COUNT_VARIANCE)])
        shape, variance = (2, 2), np.asarray(self.sigma) ** 2
        if noise.exact:
            drawn = noise.gaussian("part losses", shape, self.sigma * law * GRID**2)
            (exact,) = batch.sums(_exact)
            return PartLosses((exact + drawn).astype(np.float64) / GRID**2, variance)
        sums = _floating(batch)
        drawn = as_like(noise.gaussian("part losses", shape, law), sums)
        return PartLosses(sums + per_run(self.sigma, sums, 2) * drawn, variance)


def fit_budget(budget: Budget, share: float) -> Budget:
    """Budget of fits: 1 − share of the squared shift of a Gaussian with this budget."""
    if not budget.private:
        return budget
    need_delta(budget, "the mean losses of a control share")
    # Fits alone would use up all that the sampler's proof allows, and leave nothing for the sums.
    budget = Budget(min(budget.epsilon, LARGEST_SPLIT), budget.delta)
    left = gaussian_multiplier(budget) / math.sqrt(1.0 - share)
    return Budget(epsilon(Gaussian(left, 1.0), budget.delta), budget.delta)


@lru_cache(maxsize=1024)
def _calibrated(fit: Event, budget: Budget, often: Participation) -> tuple[float, Event]:
    def event_at(multiplier: float) -> Gaussian:
        distance = sampler_distance(COORDINATES, multiplier * SENSITIVITY * GRID**2)
        return Gaussian(multiplier, SENSITIVITY, distance, coordinates=COORDINATES)

    guess = 3.0 * gaussian_multiplier(budget, often)
    multiplier = smallest_scale(lambda m: compose(fit, event_at(m)), budget, guess, often)
    return multiplier * SENSITIVITY, event_at(multiplier)


def _exact(batch: Batch) -> Sums:
    """Integer sums (2, 2) over legal losses, in multiples of 2^−40."""
    weights, losses = legal_losses(batch, "bandit", "general")
    answered = weights.any(axis=-1)
    centred = np.trunc((losses - centre("general", losses.shape[-1])) * GRID)
    each = (weights * centred).sum(axis=-1)
    sums = [
        [int(each[part & answered].sum()) * GRID, int((part & answered).sum()) * GRID**2]
        for part in _parts(batch)
    ]
    return (np.array(sums, dtype=np.int64),)


def _floating(batch: Batch) -> Array:
    xp = namespace(batch.losses)
    centred = xp.where(batch.observed, xp.astype(batch.losses, xp.float64) - 0.5, 0.0).sum(-1)
    answered = xp.astype(batch.observed.any(-1), xp.float64)
    parts = [
        xp.stack([xp.where(part, each, 0.0).sum(-1) for each in (centred, answered)], axis=-1)
        for part in _parts(batch)
    ]
    return xp.stack(parts, axis=-2)


def _parts(batch: Batch) -> tuple[Numbers, Numbers]:
    """Masks (..., n) of the records of the policy and of the control."""
    assert batch.control is not None  # a store of such a plan sets it
    return ~batch.control, batch.control
