"""Regularised logistic regression, one problem per action, solved to a certificate.

min_θ Σ_n w_n [log(1 + e^{x·θ}) − y·x·θ] + (Λ/2)‖θ‖² + b·θ, for A problems (and any leading
axes) at once. Newton's method does the work. Where it does not finish, gradient steps follow, as
many as a theorem requires: the certificate ‖∇‖ ≤ tolerance holds for every input, and no "did not
converge" branch depends on data. [docs/privacy/logistic.md, "Certificate"]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays.backend import (
    apply_rows,
    as_like,
    at_least,
    at_most,
    namespace,
    plus_product,
    row_squares,
    sigmoid,
    to_numpy,
    weighted_sums,
)
from discreet.arrays.linear_algebra import identity, solve_definite
from discreet.oracles.mechanisms.exact_sums import exact_scores, exact_sums
from discreet.oracles.mechanisms.moments import products_of, second_moments
from discreet.types import Array

CURVATURE = 0.25
"""The largest second derivative of the logistic loss."""
NEWTON_STEPS = 60
SINGLE = 2e-6
"""Times √n + ‖b‖: the tolerance of experiments in single precision, since rounding hides more."""


class Iterate(NamedTuple):
    """The state of an iteration."""

    theta: Array
    mean: Array
    gradient: Array
    steepness: Array

    def only(self, keep: Array, runs: int) -> Iterate:
        """This state for some of the runs."""
        return Iterate(*(_runs(part, keep, runs) for part in self))

    def or_zero(self, objective: LogisticObjective) -> Iterate:
        """Zero in place of every θ that may lie more than 1 away from the minimiser."""
        near = self.steepness <= objective.ridge**2
        return objective.at(namespace(near).where(near, self.theta, 0.0 * self.theta))


@dataclass(frozen=True)
class LogisticObjective:
    """A problems: weights and −w·y (..., n, A), ridge (..., A, 1), tilt (..., A, p).

    With a ``grid`` (``features`` are its floating form), the error of gradients has a proven bound.
    """

    features: Array
    weights: Array
    answers: Array
    ridge: Array
    tilt: Array
    products: Array | None = None
    grid: Array | None = None

    def only(self, keep: Array, runs: int) -> LogisticObjective:
        """This objective for some of the runs; arrays that all runs share stay."""
        weights, answers = _runs(self.weights, keep, runs), _runs(self.answers, keep, runs)
        ridge, tilt = _runs(self.ridge, keep, runs), _runs(self.tilt, keep, runs)
        return replace(self, weights=weights, answers=answers, ridge=ridge, tilt=tilt)

    def at(self, theta: Array) -> Iterate:
        """θ with its means σ(x·θ), gradient and squared gradient norm."""
        x, grid = self.features, self.grid
        mean = sigmoid(apply_rows(x, theta) if grid is None else exact_scores(grid, theta))
        surplus = plus_product(self.answers, self.weights, mean)
        data = weighted_sums(surplus, x) if grid is None else exact_sums(grid, surplus)
        gradient = plus_product(data + self.tilt, self.ridge, theta)
        return Iterate(theta, mean, gradient, row_squares(gradient))

    def start(self) -> Iterate:
        """The better of 0 (when data dominate) and −b/Λ (when noise dominates)."""
        flat, tilted = self.at(0.0 * self.tilt), self.at(-self.tilt / self.ridge)
        better = tilted.steepness < flat.steepness  # (..., A, 1); means are (..., n, A)
        where, sides = namespace(better).where, (better, better.mT, better, better)
        return Iterate(*(where(side, t, f) for side, t, f in zip(sides, tilted, flat, strict=True)))

    def hessian(self, mean: Array) -> Array:
        curvature = self.weights * plus_product(mean, mean, mean, -1.0)
        data = second_moments(self.features, curvature, self.products)
        return plus_product(data, self.ridge[..., None], identity(data.shape[-1], data))


def minimise(
    features: Array,
    weights: Array,
    labels: Array,
    ridge: Any,
    tilt: Array,
    tolerance: Any,
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
            return newton_kernel.minimised(*given, NEWTON_STEPS, SINGLE)
    weights = xp.astype(weights, features.dtype)
    objective = LogisticObjective(
        features,
        weights,
        -weights * labels,
        ridge[..., None],
        tilt,
        products_of(features, weights),
        grid,
    )
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
        direction = unsolved * solve_definite(objective.hessian(here.mean), -here.gradient)
        there = objective.at(here.theta + direction)
        worse = there.steepness > here.steepness
        unsolved = there.steepness > tolerance**2
        waiting = _some(unsolved)
        # Two numbers in one: on a GPU, this is the only wait per step.
        count, any_worse = divmod(int(2 * waiting.sum() + worse.any()), 2)
        if any_worse:
            there = objective.at(here.theta + _cut(direction, worse))
            unsolved = there.steepness > tolerance**2
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


def _store(solutions: Array, active: Any, theta: Array, keep: Any) -> tuple[Array, Any]:
    """Write θ of the active runs into the solutions; the runs that stay active."""
    if active is None:
        return theta + 0.0, keep
    solutions[..., active, :, :] = theta
    return solutions, None if keep is None else active[keep]


def gradient_steps(
    objective: LogisticObjective, here: Iterate, tolerance: Any, accelerate: bool = False
) -> Iterate:
    """Gradient descent for a Λ-strongly convex, L-smooth function, L = n/4 + Λ.

    Accelerated, J_k − J* ≤ (1 − 1/√κ)^k·‖∇J_0‖²/Λ and ‖∇J_k‖² ≤ 2L(J_k − J*) say how many
    steps are enough in real numbers. [Nesterov 2018, theorem 2.2.3] Plain steps need κ in place
    of √κ, but rounding cannot stop them above the tolerance.

    Privacy: the certificate holds after these steps, for all rows.
    [docs/privacy/logistic.md, "Certificate"]
    """
    xp, ridge = namespace(here.theta), objective.ridge
    smooth = CURVATURE * float(objective.features.shape[-2]) + ridge
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


def ridge_like(values: Any, tilt: Array) -> Array:
    """Λ of shape (R,) as (R, 1), ready to meet (..., A)."""
    return as_like(values, tilt)[..., None]
