"""Regularised logistic regression, one problem per action, solved to a certificate.

min_θ Σ_n w_n [log(1 + e^{x·θ}) − y·x·θ] + (Λ/2)‖θ‖² + b·θ, for A problems (and any leading
axes) at once. Newton's method does the work. Where it does not finish, gradient steps follow, as
many as a theorem requires: the certificate ‖∇‖ ≤ tolerance holds for every input, and no "did not
converge" branch depends on data. [docs/privacy/logistic.md, "Certificate"]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from discreet.arrays.backend import (
    apply_rows,
    as_like,
    at_least,
    at_most,
    namespace,
    per_run,
    plus_product,
    row_blocks,
    row_squares,
    sigmoid,
    to_numpy,
    weighted_sums,
)
from discreet.arrays.linear_algebra import identity, pack_products, solve_definite, unpack
from discreet.batch import Batch
from discreet.oracles.contract import Problem
from discreet.oracles.mechanisms.legal_rows import (
    attainable_norm,
    exact_scores,
    exact_sums,
    fitted_rows,
)
from discreet.oracles.mechanisms.moments import repeated_products_fit, second_moments
from discreet.types import Array, Numbers

CURVATURE = 0.25
"""The largest second derivative of the logistic loss."""
NEWTON_STEPS = 60
SINGLE = 2e-6
"""Times √n + ‖b‖: the tolerance of experiments in single precision, since rounding hides more."""
LAST_STEP = 1e-5
"""Times ‖θ‖: a Newton step of this length is the last in single precision. Its own error is of the
order of its square, and what lies below is the rounding of θ, which no step improves."""


class Iterate(NamedTuple):
    """The state of an iteration; means are w·σ(x·θ), (..., n, A) of each block of rows."""

    theta: Array
    means: list[Array]
    gradient: Array
    steepness: Array

    def only(self, keep: Array, runs: int) -> Iterate:
        """This state for some of the runs."""
        return Iterate(
            _runs(self.theta, keep, runs),
            [_runs(mean, keep, runs) for mean in self.means],
            _runs(self.gradient, keep, runs),
            _runs(self.steepness, keep, runs),
        )

    def or_zero(self, objective: LogisticObjective) -> Iterate:
        """Zero in place of every θ that may lie more than 1 away from the minimiser."""
        near = self.steepness <= objective.ridge**2
        return objective.at(namespace(near).where(near, self.theta, 0.0 * self.theta))


@dataclass(frozen=True)
class RowBlock:
    """Some rows of all problems: weights w ∈ {0, 1} and answers −w·y (..., n, A).

    With a ``grid`` (``features`` are its floating form), the error of sums has a proven bound.
    """

    features: Array
    weights: Array
    answers: Array
    products: Array | None = None
    grid: Array | None = None

    def only(self, keep: Array, runs: int) -> RowBlock:
        """These rows for some of the runs; arrays that all runs share stay."""
        weights, answers = _runs(self.weights, keep, runs), _runs(self.answers, keep, runs)
        return replace(self, weights=weights, answers=answers)

    def mean(self, theta: Array) -> Array:
        """w·σ(x·θ)."""
        x, grid = self.features, self.grid
        made = sigmoid(apply_rows(x, theta) if grid is None else exact_scores(grid, theta))
        made *= self.weights
        return made

    def gradient(self, mean: Array) -> Array:
        """Σ (w·σ − w·y)·x."""
        surplus, grid = mean + self.answers, self.grid
        return weighted_sums(surplus, self.features) if grid is None else exact_sums(grid, surplus)

    def hessian(self, mean: Array) -> Array:
        """Σ w·σ(1 − σ)·x xᵀ, packed where x ⊗ x is kept; w is its own square."""
        curvature = plus_product(mean, mean, mean, -1.0)
        if self.products is not None:
            return weighted_sums(curvature, self.products)
        return second_moments(self.features, curvature)


@dataclass(frozen=True)
class LogisticObjective:
    """A problems: rows in blocks that fit into a cache, ridge (..., A, 1), tilt (..., A, p)."""

    blocks: list[RowBlock]
    ridge: Array
    tilt: Array

    @classmethod
    def of(
        cls,
        features: Array,
        weights: Array,
        labels: Array,
        ridge: Array,
        tilt: Array,
        grid: Array | None = None,
    ) -> LogisticObjective:
        """Weights and labels (..., n, A); rows on the grid stay together, as their bound asks."""
        xp, (rows, p) = namespace(features), features.shape[-2:]
        held = math.prod(tilt.shape[:-1]) + p * (p + 1) // 2
        keep_products = repeated_products_fit(features, weights)
        blocks = []
        for some in [slice(0, rows)] if grid is not None else row_blocks(rows, held, features):
            x, w = features[..., some, :], xp.astype(weights[..., some, :], features.dtype)
            products = pack_products(x) if keep_products else None
            blocks.append(RowBlock(x, w, -w * labels[..., some, :], products, grid))
        return cls(blocks, ridge, tilt)

    def only(self, keep: Array, runs: int) -> LogisticObjective:
        """This objective for some of the runs."""
        blocks = [block.only(keep, runs) for block in self.blocks]
        return LogisticObjective(
            blocks, _runs(self.ridge, keep, runs), _runs(self.tilt, keep, runs)
        )

    def at(self, theta: Array) -> Iterate:
        """θ with its means, gradient and squared gradient norm."""
        return self._with(theta, [block.mean(theta) for block in self.blocks])

    def _with(self, theta: Array, means: list[Array]) -> Iterate:
        parts = [block.gradient(mean) for block, mean in zip(self.blocks, means, strict=True)]
        gradient = plus_product(sum(parts[1:], parts[0]) + self.tilt, self.ridge, theta)
        return Iterate(theta, means, gradient, row_squares(gradient))

    def start(self) -> Iterate:
        """The better of 0 (when data dominate) and −b/Λ (when noise dominates)."""
        flat = self._with(0.0 * self.tilt, [0.5 * block.weights for block in self.blocks])
        tilted = self.at(-self.tilt / self.ridge)
        better = tilted.steepness < flat.steepness  # (..., A, 1); means are (..., n, A)
        where = namespace(better).where
        pairs = zip(tilted.means, flat.means, strict=True)
        return Iterate(
            where(better, tilted.theta, flat.theta),
            [where(better.mT, *pair) for pair in pairs],
            where(better, tilted.gradient, flat.gradient),
            where(better, tilted.steepness, flat.steepness),
        )

    def hessian(self, means: list[Array]) -> Array:
        parts = [block.hessian(mean) for block, mean in zip(self.blocks, means, strict=True)]
        data = sum(parts[1:], parts[0])
        if self.blocks[0].products is not None:
            data = unpack(data, self.tilt.shape[-1])
        return plus_product(data, self.ridge[..., None], identity(data.shape[-1], data))


def minimise(
    features: Array,
    weights: Array,
    labels: Array,
    ridge: Numbers,
    tilt: Array,
    tolerance: Numbers,
    grid: Array | None = None,
) -> Array:
    """Minimisers (..., A, p), each with a computed gradient norm of at most ``tolerance``.

    With rows on the ``grid`` this is proven, also for the true norm, for tolerances of at least
    ``attainable_norm``. Without a grid, the error of floating sums depends on their order.

    A Newton step is taken in full where it lowers the gradient norm. Elsewhere a step of
    length r is cut to log₂(1 + r): the logistic loss is generalised self-concordant with
    constant ‖x‖ ≤ 1, so its curvature is trusted only that far. [after Sun and Tran-Dinh 2019]
    """
    xp = namespace(features)
    one_row = xp.astype(weights[..., :1, :], features.dtype)
    tilt = tilt + 0.0 * weighted_sums(one_row, features[..., :1, :])  # with every leading axis
    ridge = ridge + 0.0 * tilt[..., 0]
    if getattr(features, "is_cuda", False):
        from discreet.oracles.mechanisms import newton_kernel

        if newton_kernel.suits(features, weights):
            given = (features, weights, labels, ridge, tilt)
            return newton_kernel.minimised(*given, NEWTON_STEPS, SINGLE, LAST_STEP)
    objective = LogisticObjective.of(features, weights, labels, ridge[..., None], tilt, grid)
    single = np.finfo(str(tilt.dtype).rpartition(".")[2]).bits < 64
    if single:
        tolerance = SINGLE * (math.sqrt(features.shape[-2]) + row_squares(tilt) ** 0.5)
    solutions, active = 0.0 * tilt, None  # None: all runs are still active
    here = objective.start()
    unsolved = here.steepness > tolerance**2
    waiting = _some(unsolved)
    count = int(waiting.sum())
    for _ in range(NEWTON_STEPS):
        if count == 0:
            break
        if 2 * count <= waiting.shape[0]:  # let the finished runs go
            keep = namespace(waiting).nonzero(waiting)[0]
            solutions, active = _store(solutions, active, here.theta, keep)
            objective, here = objective.only(keep, len(waiting)), here.only(keep, len(waiting))
            tolerance = _runs(tolerance, keep, len(waiting)) if single else tolerance
            unsolved = here.steepness > tolerance**2
        direction = unsolved * solve_definite(objective.hessian(here.means), -here.gradient)
        there = objective.at(here.theta + direction)
        worse = there.steepness > here.steepness
        unsolved = there.steepness > tolerance**2
        if single:
            longer = row_squares(direction) > LAST_STEP**2 * row_squares(here.theta)
            worse, unsolved = worse & longer, unsolved & longer
        waiting = _some(unsolved)
        # Two numbers in one: on a GPU, this is the only wait per step.
        count, any_worse = divmod(int(2 * waiting.sum() + worse.any()), 2)
        if any_worse:
            there = _again(objective, there, here.theta + _cut(direction, worse), _some(worse))
            unsolved = there.steepness > tolerance**2
            unsolved = unsolved & longer if single else unsolved
            waiting = _some(unsolved)
            count = int(waiting.sum())
        here = there
    else:
        if count and not single:
            here = gradient_steps(objective, here, tolerance, accelerate=True)
            if grid is not None:
                here = gradient_steps(objective, here.or_zero(objective), tolerance)
    return _store(solutions, active, here.theta, None)[0]


def _cut(direction: Array, worse: Array) -> Array:
    """Steps of length r cut to log₂(1 + r) where they would be worse in full."""
    length = row_squares(direction) ** 0.5
    xp = namespace(length)
    trusted = at_most(xp.log2(1.0 + length) / at_least(length, 1e-30), 1.0)
    return xp.where(worse, trusted, xp.ones_like(trusted)) * direction


def _again(objective: LogisticObjective, there: Iterate, theta: Array, some: Array) -> Iterate:
    """``there`` with another θ for ``some`` of the runs (R,)."""
    if 2 * int(some.sum()) > some.shape[0] or theta.ndim < 3:
        return objective.at(theta)
    keep = namespace(some).nonzero(some)[0]
    part = objective.only(keep, len(some)).at(_runs(theta, keep, len(some)))
    for old, new in zip((*there.means, *there[2:]), (*part.means, *part[2:]), strict=True):
        old.mT[..., keep, :, :] = new.mT
    return there._replace(theta=theta)


def _runs(part: Array, keep: Array, runs: int) -> Array:
    """Some of the runs of (..., R, n, A), stored as before; arrays that all runs share stay."""
    if part.ndim < 3 or part.shape[-3] != runs:
        return part
    return part.mT[..., keep, :, :].mT


def _some(unsolved: Array) -> Array:
    """Runs (R,) with an unsolved problem, over all seeds and actions: (..., R, A, 1) -> (R,)."""
    if unsolved.ndim < 3:  # a single run
        return unsolved.reshape(-1, 1).any(0)
    return unsolved[..., 0].any(-1).reshape(-1, unsolved.shape[-3]).any(0)


def _store(solutions: Array, active: Numbers, theta: Array, keep: Numbers) -> tuple[Array, Numbers]:
    """Write θ of the active runs into the solutions; the runs that stay active."""
    if active is None:
        return theta + 0.0, keep
    solutions[..., active, :, :] = theta
    return solutions, None if keep is None else active[keep]


def gradient_steps(
    objective: LogisticObjective, here: Iterate, tolerance: Numbers, accelerate: bool = False
) -> Iterate:
    """Gradient descent for a Λ-strongly convex, L-smooth function, L = n/4 + Λ.

    Accelerated, J_k − J* ≤ (1 − 1/√κ)^k·‖∇J_0‖²/Λ and ‖∇J_k‖² ≤ 2L(J_k − J*) say how many
    steps are enough in real numbers. [Nesterov 2018, theorem 2.2.3] Plain steps need κ in place
    of √κ, but rounding cannot stop them above the tolerance.

    Privacy: the certificate holds after these steps, for all rows.
    [docs/privacy/logistic.md, "Certificate"]
    """
    xp, ridge = namespace(here.theta), objective.ridge
    rows = sum(block.features.shape[-2] for block in objective.blocks)
    smooth = CURVATURE * float(rows) + ridge
    condition = xp.sqrt(smooth / ridge) if accelerate else smooth / ridge
    momentum = (condition - 1.0) / (condition + 1.0) if accelerate else 0.0
    digits = xp.log(1.0 + 2.25 * smooth * here.steepness / ridge / tolerance**2)
    steps = math.ceil(float(np.max(to_numpy(condition * digits))) * (1.0 if accelerate else 4 / 3))
    previous = here.theta
    for step in range(steps):
        unsolved = here.steepness > tolerance**2
        if not unsolved.any():
            break
        following = here.theta - here.gradient / smooth
        if step + 1 < steps:  # the theorem is about the point before the momentum
            previous, following = following, following + momentum * (following - previous)
        here = objective.at(xp.where(unsolved, following, here.theta))
    return here


TOLERANCE = 1e-8
"""Public bound on the gradient norm of a returned minimiser; never the achieved value. Large
batches with a small ridge have a larger bound: see ``public_tolerance``."""


def public_tolerance(
    records: int, problem: Problem, ridge: Numbers, largest_tilt: Numbers
) -> Numbers:
    """τ: 1e-8, or the norm that floating point can certify for this number of records.

    Privacy: a function of public numbers; the output noise is in proportion to it.
    [docs/privacy/logistic.md, "Rounding"]
    """
    attainable = attainable_norm(records, problem.p, ridge, largest_tilt)
    return np.maximum(TOLERANCE, 2.0 * math.sqrt(problem.n_actions) * attainable)


def perturbed_minimum(
    batch: Batch,
    problem: Problem,
    tilt: Numbers,
    scale: Numbers,
    ridge: Numbers,
    tolerance: Numbers,
    exact: bool,
) -> Array:
    """θ_a = argmin Σ f(x·θ, y) + (Λ/2)‖θ‖² + scale·tilt_a·θ for each action: (..., A, p).

    The gradient norm over all actions is at most ``tolerance``; ``exact`` makes every row legal.
    """
    features, weights, labels, grid = fitted_rows(
        batch, problem.feedback, problem.losses, exact=exact
    )
    tilt = as_like(tilt, features) * per_run(scale, features)
    # The actions share half of the tolerance; the other half covers rounding.
    each = 0.5 * float(np.min(tolerance)) / math.sqrt(problem.n_actions)
    ridge = as_like(ridge, features)[..., None]
    return minimise(features, weights, labels, ridge, tilt, each, grid)
