"""Ridge regression on everything that was released: the mechanism of ``PooledRidge``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Self

from discreet.arrays.backend import as_like, lift, namespace
from discreet.arrays.linear_algebra import identity, solve_floored
from discreet.oracles.contract import Calibrated
from discreet.oracles.mechanisms.gaussian_scales import structured_scales
from discreet.oracles.mechanisms.geometry import pooled, publishable
from discreet.oracles.mechanisms.perturb import noisy_statistics
from discreet.oracles.mechanisms.structured_ridge import uncentred
from discreet.oracles.problem import Problem
from discreet.privacy.budget import Budget
from discreet.privacy.noise import Noise
from discreet.privacy.sensitivities import centre
from discreet.releases.forgetting import share
from discreet.releases.release import Fit, Gram, Predictor
from discreet.releases.statistics import Statistics, in_use
from discreet.rows.batch import Batch
from discreet.types import Array

if TYPE_CHECKING:
    from discreet.oracles.pooled_ridge import PooledRidge


@dataclass(frozen=True)
class PooledStatistics(Calibrated["PooledRidge"]):
    """θ'_a = S₊⁻¹ r_a with S = Σ_i w_i·C_i G̃_i C_iᵀ and r = Σ_i w_i·C_i q̃_i over releases i.

    A batch is released as by ``StructuredRidge``, with σ/ω on responses. Where it is ``stretched``,
    its rows are v = M b/‖M b‖ with the matrix M that the release before published, it also tells
    how people fared, and θ_a = Mᵀ θ'_a/c. The parameters are those of ``PooledRidge``.
    [docs/privacy/ridge.md, "Pooled releases" and "Learned geometry"]
    """

    gram: float
    response: float
    stretched: bool

    @classmethod
    def of(cls, oracle: PooledRidge, problem: Problem, budget: Budget) -> Self:
        """With its noise fixed; refuses δ = 0."""
        weight = float(oracle.response_weight) if problem.feedback == "bandit" else 1.0
        # Radii need Grams in plain coordinates, and without noise there is nothing to gain.
        stretched = oracle.geometry == "learned" and budget.private and not problem.radii
        gram, response, event = structured_scales(problem, budget, weight, stretched)
        return cls(oracle, problem, gram, response, stretched, event=event)

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
        matrix = self._matrix(batch.features, earlier)
        gram, response, told = noisy_statistics(
            batch, self.problem, self.gram, self.response, noise, matrix, ridge=self.oracle.ridge
        )
        # Privacy: from here on only released and public numbers are used.
        # [docs/privacy/ridge.md, "Pooled releases"]
        new = Statistics(gram, response, records, self.gram**2, matrix, told=told)
        weights, following = self.conclusion((*earlier, new))
        if noise.exact and following is not None:
            following = publishable(following)
        step = self.gram * math.sqrt(2 * gram.shape[-1]) + 1e-12 * records  # positive also at σ = 0
        kept = Gram(as_like(gram, like), False, step) if self.problem.radii else None
        new = replace(new, following=following)
        return Fit(Predictor(as_like(weights, like), "clip"), kept, new)

    def conclusion(self, statistics: Sequence[Statistics]) -> tuple[Array, Array | None]:
        """What follows from all that was released: the newest weights, and the next matrix."""
        oracle = self.oracle
        joint = self.problem.joint
        pool = pooled(statistics, oracle.clear, self.problem.half_life, joint)
        numbers = (oracle.floor, pool.noise, oracle.ridge, pool.records)
        floor, noise, ridge, records = (lift(each, pool.gram, 0) for each in numbers)
        floor = floor * noise + ridge * records
        weights, following = solve_floored(pool.gram, pool.response, floor), None
        if pool.matrix is not None:
            # Linear in plain features: θ_a = Mᵀ θ'_a / c. Of joint features the lengths differ
            # from action to action, so there losses were shortened as rows were, and c = 1.
            length = 1.0 if joint else lift(pool.typical_length(), weights)
            weights = weights @ pool.matrix / length
            following = pool.following()
        middle = centre(self.problem.losses, self.problem.n_actions)
        return uncentred(weights, middle), following

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
            "told": (2,) if self.stretched and bandit else None,
        }
        different = (
            name
            for name, shape in shapes.items()
            if getattr(getattr(statistics, name), "shape", None) != shape
        )
        return next(different, None)

    def matrix_after(self, following: Array | None) -> Array | None:
        """The matrix of a batch, from what the release before published for it."""
        # Of joint features rows are shortened and not normalised: there the power of two counts,
        # and each matrix is brought to rows of length one.
        return following if following is None or self.problem.joint else in_use(following)

    def _matrix(self, features: Array, earlier: Sequence[Statistics]) -> Array | None:
        """What the newest release published for this batch."""
        if not self.stretched:
            return None
        if earlier:
            return self.matrix_after(earlier[-1].following)
        xp = namespace(features)
        return identity(features.shape[-1], xp.astype(features[..., :1, :1], xp.float64))
