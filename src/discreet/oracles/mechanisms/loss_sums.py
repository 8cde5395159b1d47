"""Noisy sums of losses and of guardrails of policy and control, Gaussian, next to the fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache, partial
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
from discreet.types import Array, Numbers, NumpyArray

SENSITIVITY = 1.0
"""Joint, of (Σ(y − ½), (√3/2)·number observed); that of k outcomes is √k times as large.
[docs/privacy/lift.md, "Sensitivity" and "Guardrails"]"""
LARGEST_SPLIT = 30.0
"""A larger ε is divided as this one is: beyond about 39 the distance of the discrete sampler from a
Gaussian takes all of δ. [docs/privacy/arithmetic.md, "What δ pays for it"]"""
COORDINATES = 2
"""Numbers that one record touches for each outcome: those of its part."""


@dataclass(frozen=True)
class LossSums:
    """For each part Q = Σ(y − ½) with noise σ and N, the observed losses, with noise 2σ/√3; of
    k outcomes, each has its own Q and N, and one record may move all of them.

    Privacy: a record is in one part. Another loss moves Q by at most 1; a loss that is observed or
    not moves (Q, √¾·N) by at most √(¼ + ¾) = 1. k outcomes together move by at most √k.
    [docs/privacy/lift.md, "Sensitivity" and "Guardrails"]
    """

    sigma: float
    event: Event = field(metadata={"stacked": STACKED})
    outcomes: int = 1

    @classmethod
    def of(cls, fit: Event, budget: Budget, often: Participation, outcomes: int = 1) -> Self:
        """The least noise with which ``fit`` and sums together keep within the budget."""
        if not budget.private:
            return cls(0.0, NO_BUDGET, outcomes)
        return cls(*_calibrated(fit, budget, often, outcomes), outcomes)

    def noisy_sums(self, batch: Batch, noise: Noise) -> PartLosses:
        """Return the sums of the losses of a batch (..., 2, 2), with noise."""
        sums = batch.sums(_exact)[0] if noise.exact else _floating(batch)
        return self._noisy("part losses", sums, (2, 2), noise)

    def noisy_guardrails(self, batch: Batch, noise: Noise) -> PartLosses:
        """Return the sums of the guardrails of a batch (k, 2, 2), with noise."""
        exact = partial(_exact_guardrails, self.outcomes)
        (sums,) = batch.sums(exact) if noise.exact else exact(batch)
        return self._noisy("guardrails", sums if noise.exact else sums / GRID**2, sums.shape, noise)

    def _noisy(self, name: str, sums: Array, shape: tuple[int, ...], noise: Noise) -> PartLosses:
        law = np.array([1.0, math.sqrt(COUNT_VARIANCE)])
        variance = np.asarray(self.sigma) ** 2
        if noise.exact:
            drawn = noise.gaussian(name, shape, self.sigma * law * GRID**2)
            return PartLosses((sums + drawn).astype(np.float64) / GRID**2, variance)
        drawn = as_like(noise.gaussian(name, shape, law), sums)
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
def _calibrated(
    fit: Event, budget: Budget, often: Participation, outcomes: int = 1
) -> tuple[float, Event]:
    sensitivity, coordinates = SENSITIVITY * math.sqrt(outcomes), COORDINATES * outcomes

    def event_at(multiplier: float) -> Gaussian:
        distance = sampler_distance(coordinates, multiplier * sensitivity * GRID**2)
        return Gaussian(multiplier, sensitivity, distance, coordinates=coordinates)

    guess = 3.0 * gaussian_multiplier(budget, often)
    multiplier = smallest_scale(lambda m: compose(fit, event_at(m)), budget, guess, often)
    return multiplier * sensitivity, event_at(multiplier)


def _exact(batch: Batch) -> Sums:
    """Integer sums (2, 2) over legal losses, in multiples of 2^−40."""
    weights, losses = legal_losses(batch, "bandit", "general")
    answered = weights.any(axis=-1)
    centred = np.trunc((losses - centre("general", losses.shape[-1])) * GRID)
    sums = (weights * centred).sum(axis=-1)
    return (_integers(batch, sums[:, None], answered[:, None])[0],)


def _exact_guardrails(outcomes: int, batch: Batch) -> Sums:
    """Integer sums (k, 2, 2) over guardrails in [0, 1] of records that count."""
    weights, _ = legal_losses(batch, "bandit", "general")
    values = np.full((batch.records, outcomes), np.nan)
    if batch.guardrails is not None:
        values = np.clip(batch.guardrails, 0.0, 1.0)
    # Privacy: a record that is void counts in no sum, regardless of its guardrails.
    # [docs/privacy/lift.md, "Guardrails"]
    counted = weights.any(axis=-1)[:, None] & ~np.isnan(values)
    centred = np.trunc((np.where(counted, values, 0.5) - 0.5) * GRID)
    return (_integers(batch, centred, counted),)


def _integers(batch: Batch, centred: NumpyArray, counted: NumpyArray) -> NumpyArray:
    """Sums and counts (k, 2, 2) of outcomes (n, k) of policy and control."""
    sums = [
        [
            [int(each[part & known].sum()) * GRID, int((part & known).sum()) * GRID**2]
            for part in _parts(batch)
        ]
        for each, known in zip(centred.T, counted.T, strict=True)
    ]
    return np.array(sums, dtype=np.int64)


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
