"""Logistic regression on the whole design matrix, by a general-purpose optimiser."""

import math

import numpy as np
from scipy.optimize import minimize

from reference.design import design


def objective(theta, X, y, ridge, tilt):
    """Σ [log(1 + e^{xθ}) − y·xθ] + (Λ/2)‖θ‖² + bᵀθ, its gradient and its Hessian."""
    value = 0.5 * ridge * theta @ theta + tilt @ theta
    gradient = ridge * theta + tilt
    hessian = ridge * np.eye(len(theta))
    for x, label in zip(X, y, strict=True):
        score = float(x @ theta)
        value += math.log1p(math.exp(-abs(score))) + max(score, 0.0) - label * score
        mean = 1.0 / (1.0 + math.exp(min(-score, 700.0)))
        gradient = gradient + (mean - label) * x
        hessian = hessian + mean * (1.0 - mean) * np.outer(x, x)
    return value, gradient, hessian


def gradient_norm(theta, features, losses, observed, ridge, tilt):
    X, y = design(features, losses, observed)
    return float(np.linalg.norm(objective(theta, X, y, ridge, tilt)[1]))


def minimiser(features, losses, observed, ridge, tilt):
    """argmin of the objective, tight enough to compare with."""
    X, y = design(features, losses, observed)
    found = minimize(
        lambda theta: objective(theta, X, y, ridge, tilt)[:2],
        np.zeros(X.shape[1]),
        jac=True,
        hess=lambda theta: objective(theta, X, y, ridge, tilt)[2],
        method="trust-exact",
        options={"gtol": 1e-9},
    )
    theta = found.x
    for _ in range(3):  # the optimiser stops where values agree to rounding; Newton goes on
        _, gradient, hessian = objective(theta, X, y, ridge, tilt)
        theta = theta - np.linalg.solve(hessian, gradient)
    return theta


def chaudhuri(epsilon_fit, rows, ridge):
    """(κ_j, ε'_j): extra ridge and the noise's share. [paper, "Private logistic oracle"]"""
    left = epsilon_fit - 2 * math.log(1 + 0.25 / (rows * ridge))
    if left > 0:
        return 0.0, left
    return 0.25 / (rows * (math.exp(epsilon_fit / 4) - 1)) - ridge, epsilon_fit / 2


def gamma_blocks(epsilon, rows, ridge):
    """Λ and ε' of the structured pure mechanism: a ridge of at least 2/ε, the whole ε in noise."""
    return max(rows * ridge, 2.0 / epsilon), epsilon
