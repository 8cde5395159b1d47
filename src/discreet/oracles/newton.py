"""Regularised logistic regression, one problem per action, solved to a certificate.

min_θ Σ_n w_n [log(1 + e^{x·θ}) − y·x·θ] + (Λ/2)‖θ‖² + b·θ, for A problems (and any leading
axes) at once. Damped Newton does the work; accelerated gradient with a public step count
stands behind it, so that the certificate ‖∇‖ ≤ tolerance holds for every input and there is
no data-dependent "did not converge" branch. [docs/privacy/logistic.md, "Certificate"]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.backend import (
    apply_rows,
    as_like,
    at_least,
    namespace,
    sigmoid,
    to_numpy,
    weighted_sums,
)
from discreet.linalg import identity, solve_repaired
from discreet.oracles.moments import weighted_moments
from discreet.types import Array

CURVATURE = 0.25
"""The largest second derivative of the logistic loss."""
_NEWTON_STEPS = 60


def minimise(
    features: Array, weights: Array, labels: Array, ridge: Array, tilt: Array, tolerance: float
) -> Array:
    """Minimisers (..., A, p); weights and labels (..., n, A), ridge (..., A), tilt (..., A, p)."""
    problem = _Problem(features, weights, labels, ridge, tilt)
    theta = 0.0 * problem.tilt
    for _ in range(_NEWTON_STEPS):
        gradient = problem.gradient(theta)
        open_ = _norms(gradient) > tolerance
        if not bool(namespace(theta).any(open_)):
            return theta
        theta = problem.newton_step(theta, gradient, open_)
    return problem.accelerated_gradient(theta, tolerance)


class _Problem:
    def __init__(
        self, features: Array, weights: Array, labels: Array, ridge: Array, tilt: Array
    ) -> None:
        self.xp = namespace(features)
        self.features, self.weights, self.labels = features, weights, labels
        lead = weighted_sums(weights[..., :1, :], features[..., :1, :])
        self.tilt = tilt + 0.0 * lead  # (..., A, p), every leading axis present
        self.ridge = ridge + 0.0 * self.tilt[..., 0]

    def _scores(self, theta: Array) -> Array:
        return apply_rows(self.features, theta)

    def value(self, theta: Array) -> Array:
        """The objective, (..., A)."""
        s = self._scores(theta)
        softplus = at_least(s, 0.0) + self.xp.log1p(self.xp.exp(-self.xp.abs(s)))
        data = self.xp.sum(self.weights * (softplus - self.labels * s), axis=-2)
        square = self.xp.sum(theta * theta, axis=-1)
        return data + 0.5 * self.ridge * square + self.xp.sum(self.tilt * theta, axis=-1)

    def gradient(self, theta: Array) -> Array:
        residual = self.weights * (sigmoid(self._scores(theta)) - self.labels)
        return weighted_sums(residual, self.features) + self.ridge[..., None] * theta + self.tilt

    def newton_step(self, theta: Array, gradient: Array, open_: Array) -> Array:
        """A full step where it lowers the objective enough, otherwise the damped one.

        The logistic loss is generalised self-concordant with constant ‖x‖ ≤ 1, so the step
        log(1 + r)/r, r = ‖direction‖, lowers it for certain. [Sun and Tran-Dinh 2019, ν = 2]
        """
        xp, p = self.xp, theta.shape[-1]
        mean = sigmoid(self._scores(theta))
        curvature = self.weights * mean * (1.0 - mean)
        hessian, _ = weighted_moments(self.features, curvature, curvature)
        hessian = hessian + self.ridge[..., None, None] * identity(p, theta)
        direction = solve_repaired(hessian, -gradient, self.ridge)
        decrement = -xp.sum(gradient * direction, axis=-1)
        length = _norms(direction)
        safe = xp.log1p(length) / at_least(length, 1e-300)
        full = self.value(theta + direction) <= self.value(theta) - 0.25 * decrement
        # Near the minimum the values agree to rounding and the full step is the right one.
        near = length < 1e-3
        size = xp.where(full | near, xp.ones_like(safe), safe)
        return theta + xp.where(open_, size, xp.zeros_like(size))[..., None] * direction

    def accelerated_gradient(self, theta: Array, tolerance: float) -> Array:
        """Nesterov's method for μ-strongly convex L-smooth functions, with a public step count."""
        xp = self.xp
        rows = float(self.features.shape[-2])
        smooth = CURVATURE * rows + self.ridge
        condition = xp.sqrt(smooth / self.ridge)
        momentum = ((condition - 1.0) / (condition + 1.0))[..., None]
        # f_k − f* ≤ (1 − 1/√κ)^k·‖∇f_0‖²/μ and ‖∇f_k‖² ≤ 2L(f_k − f*) give the count.
        start = _norms(self.gradient(theta))
        worst = xp.log(2.0 * smooth * start**2 / self.ridge / tolerance**2 + 1.0)
        steps = math.ceil(float(np.max(to_numpy(condition * worst))))
        previous, point = theta, theta
        for _ in range(steps):
            following = point - self.gradient(point) / smooth[..., None]
            point = following + momentum * (following - previous)
            previous = following
        return previous


def _norms(vectors: Array) -> Array:
    xp = namespace(vectors)
    return xp.sqrt(xp.sum(vectors * vectors, axis=-1))


def ridge_like(values: Any, tilt: Array) -> Array:
    """Λ of shape (R,) as (R, 1), ready to meet (..., A)."""
    return as_like(values, tilt)[..., None]
