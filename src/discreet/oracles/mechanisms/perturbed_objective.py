"""Logistic regression with a random tilt: what both mechanisms of ``Logistic`` solve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.arrays.backend import as_like, per_run
from discreet.batch import Batch
from discreet.oracles.mechanisms.exact_sums import attainable_norm
from discreet.oracles.mechanisms.legal_rows import fitted_rows
from discreet.oracles.mechanisms.newton import minimise, ridge_like
from discreet.oracles.problem import Problem
from discreet.types import Array

TOLERANCE = 1e-8
"""Public bound on the gradient norm of a returned minimiser; never the achieved value. Large
batches with a small ridge have a larger bound: see ``public_tolerance``."""


def public_tolerance(records: int, problem: Problem, ridge: Any, largest_tilt: Any) -> Any:
    """τ: 1e-8, or the norm that floating point can certify for this number of records.

    Privacy: a function of public numbers; the output noise is in proportion to it.
    [docs/privacy/logistic.md, "Rounding"]
    """
    attainable = attainable_norm(records, problem.p, ridge, largest_tilt)
    return np.maximum(TOLERANCE, 2.0 * math.sqrt(problem.n_actions) * attainable)


def perturbed_minimum(
    batch: Batch, problem: Problem, tilt: Any, scale: Any, ridge: Any, tolerance: Any, exact: bool
) -> Array:
    """θ_a = argmin Σ f(x·θ, y) + (Λ/2)‖θ‖² + scale·tilt_a·θ for each action: (..., A, p).

    The gradient norm over all actions is at most ``tolerance``; ``exact`` makes every row legal.
    """
    rows = fitted_rows(batch, problem.feedback, problem.losses, exact=exact)
    features, weights, labels, grid = rows
    tilt = as_like(tilt, features) * per_run(scale, features)
    # The actions share half of the tolerance; the other half covers rounding.
    each = 0.5 * float(np.min(tolerance)) / math.sqrt(problem.n_actions)
    return minimise(features, weights, labels, ridge_like(ridge, features), tilt, each, grid)
