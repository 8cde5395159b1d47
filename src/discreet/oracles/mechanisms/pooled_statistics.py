"""Ridge regression on everything that was released: the mechanism of ``PooledRidge``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from discreet.arrays.backend import (
    as_like,
    at_least,
    at_most,
    namespace,
    padded,
    per_run,
    surely,
)
from discreet.arrays.linear_algebra import identity, raised_eigenvalues, solve_along
from discreet.batch import Batch
from discreet.oracles.contract import Calibrated, Problem
from discreet.oracles.mechanisms.geometry import (
    Pool,
    constant_share,
    pooled,
    publishable,
)
from discreet.oracles.mechanisms.moments import NORMALISED, Bounds
from discreet.oracles.mechanisms.perturb import noisy_statistics, structured_scales
from discreet.oracles.mechanisms.ridge import uncentred
from discreet.privacy.budget import Budget
from discreet.privacy.noise import Noise
from discreet.privacy.sensitivities import centre
from discreet.releases.release import DecidingRelease, Fit, Gram, Predictor
from discreet.releases.statistics import PUBLISHED, Statistics, remembered, share
from discreet.types import Array, Numbers, NumpyArray

if TYPE_CHECKING:
    from discreet.oracles.configurations import PooledRidge


UNCLEAR_FLOOR = 5.0
"""Times the noise, added to the floor of eigenvalues where contexts are not clear."""
UNCLEAR, CLEAR = 3.0, 1000.0
"""Rows are normalised while n is below so many times p·σ²."""
SHORTENED: Bounds = (1.0, 1.0)
"""Rows and losses are divided by the same number, max(1, ‖M b‖)."""


class Conclusion(NamedTuple):
    """Results of all releases so far: the newest weights, the next matrix, and the signal."""

    weights: Array
    following: Array | None
    signal: Array | None


class Solution(NamedTuple):
    """Weights (..., A, p) in the coordinates of the pool, and what they were solved with."""

    pool: Pool
    values: Array
    axes: Array
    weights: Array
    length: Numbers = 1.0
    signal: Array | None = None
    share: Array | None = None
    cautious: Array | None = None


@dataclass(frozen=True)
class PooledStatistics(Calibrated["PooledRidge"]):
    """θ'_a = S₊⁻¹ r_a with S = Σ_i w_i·C_i G̃_i C_iᵀ and r = Σ_i w_i·C_i q̃_i over releases i.

    A batch is released as by ``StructuredRidge``, with σ/ω on responses. Where it is ``stretched``,
    its rows are v = M b/max(low, ‖M b‖) and its losses (y − ½)·min(1, high/‖M b‖), with the matrix
    M that the release before published; it also releases sums of losses, and θ_a = Mᵀ θ'_a/c. The
    parameters are those of ``PooledRidge``.
    [docs/privacy/ridge.md, "Pooled releases" and "Learned geometry"]
    """

    gram: float
    response: float
    stretched: bool

    summable = True

    @classmethod
    def of(cls, oracle: PooledRidge, problem: Problem, budget: Budget) -> Self:
        weight = float(oracle.response_weight) if problem.feedback == "bandit" else 1.0
        # Radii need Grams in plain coordinates.
        stretched = oracle.geometry == "learned" and not problem.radii
        gram, response, event = structured_scales(problem, budget, weight, stretched)
        return cls(oracle, problem, gram, response, stretched, event=event)

    @property
    def pooling(self) -> PooledStatistics:
        return self

    @property
    def noise_norm(self) -> float:
        """Expected operator norm of the noise on one batch."""
        return float(self.gram * math.sqrt(2 * self.problem.p))

    def prediction_noise(self, lengths: Sequence[int]) -> list[float]:
        """The privacy noise of a predicted loss after each of these batches, as a deviation.

        σ/ω·√Σw²·A·p/Σwn: an action has n/A records, and rows that the geometry made round have
        the variance 1/p in each direction. Rows that are not round have more noise than that.
        """
        p, among = self.problem.p, 1 if self.problem.feedback == "full" else self.problem.n_actions
        weights = [n / (n + self.oracle.clear * p * self.gram**2) for n in lengths]
        kept = share(1, self.problem.half_life)  # of what counted one release earlier
        squares = accumulate((w * w for w in weights), lambda old, new: kept**2 * old + new)
        counted = (w * n for w, n in zip(weights, lengths, strict=True))
        records = accumulate(counted, lambda old, new: kept * old + new)
        size = self.response * among * p
        return [size * math.sqrt(s) / n for s, n in zip(squares, records, strict=True)]

    def fit(self, batch: Batch, noise: Noise, earlier: Sequence[Statistics] = ()) -> Fit:
        """Statistics → noise → pool → solve, and the matrix of the next batch."""
        records, like = batch.records, batch.features[..., :0, :]  # its type, and no row
        matrix, bounds = self._matrix(batch.features, earlier), self.row_bounds(records, earlier)
        gram, response, outcome_sums = noisy_statistics(
            batch,
            self.problem,
            self.gram,
            self.response,
            noise,
            matrix,
            bounds,
            ridge=self.oracle.ridge,
        )
        # Privacy: from here on only released and public numbers are used.
        # [docs/privacy/ridge.md, "Pooled releases"]
        new = Statistics(gram, response, records, self.gram**2, matrix, outcome_sums=outcome_sums)
        weights, following, signal = self.conclusion((*earlier, new))
        if noise.exact and following is not None:
            following = publishable(following)
        step = self.gram * math.sqrt(2 * gram.shape[-1]) + 1e-12 * records  # positive also at σ = 0
        released = Gram(as_like(gram, like), False, step) if self.problem.radii else None
        new = new.concluded(following, signal)
        return Fit(Predictor(as_like(weights, like), "clip"), released, new)

    def first_release(self, prior: Statistics) -> DecidingRelease:
        """Return what the statistics of a prior alone predict: it decides the first batch."""
        weights, _, signal = self.conclusion((prior,))
        step = math.sqrt(2 * self.problem.p * prior.variance) + 1e-12 * prior.records
        gram = Gram(prior.gram, False, step) if self.problem.radii else None
        predictor, found = Predictor(weights, "clip"), prior.concluded(prior.following, signal)
        return DecidingRelease(0, prior.records, predictor, gram, found, digest="")

    def row_bounds(self, records: int, earlier: Sequence[Statistics]) -> Bounds:
        """The bounds (low, high) of a batch of so many records, after these releases.

        w = n/(n + k·p·σ²) and 1/w, with k from 3 where contexts are unclear to 1,000 where they are
        clear: rows are normalised where noise covers what that distorts, and rows and losses are
        divided by the same number as n grows. [docs/privacy/ridge.md, "Rows between two lengths"]
        """
        if not self.stretched:
            return NORMALISED
        if self.problem.joint:
            return SHORTENED
        clear: Numbers = 1.0
        if earlier and earlier[-1].signal is not None:
            clear = earlier[-1].signal[..., 0]
        factor = UNCLEAR * (CLEAR / UNCLEAR) ** clear * self.problem.p
        variance = self.gram**2
        if not isinstance(clear, float):
            variance = as_like(variance, clear)
        weight = records / (records + factor * variance)
        return weight, 1.0 / weight

    def conclusion(self, statistics: Sequence[Statistics]) -> Conclusion:
        """Compute weights, next matrix and signal from all released statistics."""
        found = self.solution(statistics)
        pool, weights, following = found.pool, found.weights, None
        if pool.matrix is not None:
            # Linear in plain features: θ_a = Mᵀ θ'_a / c, with the length c that rows have.
            weights = weights @ pool.matrix / per_run(found.length, weights)
            if found.cautious is not None and found.signal is not None:
                clear = per_run(found.signal[..., 0], weights)
                weights = clear * weights + (1.0 - clear) * found.cautious
            following = pool.following(found.share)
        middle = centre(self.problem.losses, self.problem.n_actions)
        return Conclusion(uncentred(weights, middle), following, found.signal)

    def solution(self, statistics: Sequence[Statistics]) -> Solution:
        """θ'_a = S₊⁻¹ r_a in the coordinates of the pool, and the numbers that it depends on."""
        oracle = self.oracle
        pool = pooled(statistics, oracle.clear, self.problem.half_life)
        numbers = (oracle.floor, pool.noise, oracle.ridge, pool.records)
        floor, noise, ridge, records = (per_run(each, pool.gram, 0) for each in numbers)
        floor = floor * noise + ridge * records
        if pool.matrix is None:
            values, axes = raised_eigenvalues(pool.gram, per_run(floor, pool.gram, 1))
            return Solution(pool, values, axes, solve_along(values, axes, pool.response))
        values, axes = pool.axes_of_actions(floor)
        weights = solve_along(values, axes, pool.response)
        bounds = self.row_bounds(statistics[-1].records, statistics[:-1])
        low, high = (per_run(each, pool.gram, 0) for each in bounds)
        length = at_most(at_least(pool.typical_length, low), high)
        if pool.outcome_sums is None or self.problem.joint:
            return Solution(pool, values, axes, weights, length)
        clear, share = pool.clear(weights / per_run(length, weights)), None
        settled = surely(clear == 1.0)
        if not settled:
            unclear = 1.0 - clear
            least = floor + UNCLEAR_FLOOR * unclear * noise
            values = at_least(values, per_run(least, values, 2))
            weights = solve_along(values, axes, pool.response)
            share = unclear * constant_share(pool.offset)
        cautious, errors = pool.cautious(values, axes, weights, length, errors_alone=settled)
        signal = namespace(clear).concat([clear[..., None], errors], axis=-1)
        return Solution(pool, values, axes, weights, length, signal, share, cautious)

    def misfit(self, statistics: Statistics, blocks: int | None = None) -> str | None:
        """The part of released statistics that has another shape than those of this mechanism.

        ``blocks`` is the number of actions of the batch, where some joined since the plan.
        """
        problem = self.problem
        actions = problem.n_actions if blocks is None else blocks
        p, bandit = problem.p, problem.feedback == "bandit"
        square = (p, p) if self.stretched else None
        shapes: dict[str, tuple[int, ...] | None] = {
            "gram": (actions if bandit else 1, p, p),
            "response": (actions, p),
            "matrix": square,
            "following": square,
            "told": (2 + 2 * actions,) if self.stretched and bandit else None,
            "signal": (1 + actions,) if self.stretched and bandit and not problem.joint else None,
        }
        for key, shape in shapes.items():
            if getattr(getattr(statistics, PUBLISHED.get(key, key)), "shape", None) != shape:
                return key
        return None

    def _matrix(self, features: Array, earlier: Sequence[Statistics]) -> Array | None:
        """Return the matrix that the newest release published for this batch."""
        if not self.stretched:
            return None
        if earlier:
            return earlier[-1].following
        xp = namespace(features)
        return identity(features.shape[-1], xp.astype(features[..., :1, :1], xp.float64))


def weight_covariance(mechanism: PooledStatistics, statistics: Sequence[Statistics]) -> NumpyArray:
    """The covariance (A, p, p) that privacy noise gives the weights which follow from statistics.

    To first order θ' = S₊⁻¹ r moves by S₊⁻¹(δr − δS θ'). The noise of batch i is isotropic in its
    own coordinates: σ²/ω² in its response, and E u has the covariance ½σ²(‖u‖²I + uuᵀ) for its
    Gram's noise E, since entries off the diagonal have σ/√2.
    """
    oracle, found = mechanism.oracle, mechanism.solution(statistics)
    pool, axes, values, theta = found.pool, found.axes, found.values, found.weights
    p, actions = pool.gram.shape[-1], pool.response.shape[-2]
    inverse = np.broadcast_to((axes / values[..., None, :]) @ axes.mT, (actions, p, p))
    share = (mechanism.response / mechanism.gram) ** 2 if mechanism.gram > 0.0 else 0.0
    noise = np.zeros((actions, p, p))
    for each, counted in remembered(statistics, mechanism.problem.half_life):
        change = np.eye(p) if pool.matrix is None else pool.matrix @ each.inverse
        stretch = 1.0 if pool.matrix is None else max(1.0, float((change * change).sum()) / p) ** 2
        w = counted * each.records / (each.records + oracle.clear * p * each.variance * stretch)
        u = theta @ change
        squares = share + 0.5 * (u * u).sum(-1)
        own = squares[:, None, None] * np.eye(p) + 0.5 * u[:, :, None] * u[:, None, :]
        present = padded(np.ones((each.response.shape[-2], 1, 1)), (actions, 1, 1), (-3,))
        noise += w**2 * each.variance * present * (change @ own @ change.T)
    made = inverse @ noise @ inverse
    if pool.matrix is None:
        return np.asarray(made)
    return np.asarray(pool.matrix.T @ made @ pool.matrix / found.length**2)


def mean_row(mechanism: PooledStatistics, statistics: Sequence[Statistics]) -> NumpyArray:
    """The mean of all rows (p,) in plain features, as far as pooled Grams tell it.

    The first feature is √½ in every row, so Σ b = √2·(Σ b bᵀ)_0.
    """
    pool = pooled(statistics, mechanism.oracle.clear, mechanism.problem.half_life)
    gram = pool.gram.sum(-3)
    if pool.matrix is not None:
        gram = pool.inverse @ gram @ pool.inverse.T
    constant = max(float(gram[0, 0]), 1e-9)
    return np.asarray(gram[0] / constant * math.sqrt(0.5))
