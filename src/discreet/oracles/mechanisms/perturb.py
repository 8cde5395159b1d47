"""Gaussian noise on second moments: blocks on the grid, or the paper's dense matrix."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from discreet.arrays.backend import as_like, namespace, per_run, plus_product
from discreet.arrays.linear_algebra import identity, triangle, unpack
from discreet.batch import Batch
from discreet.oracles.contract import Problem
from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.oracles.mechanisms.moments import (
    NORMALISED,
    Bounds,
    Moments,
    exact_moments,
    floating_moments,
    needs_double,
)
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import gaussian_multiplier, need_delta, smallest_scale
from discreet.privacy.events import NO_BUDGET, Event, Gaussian
from discreet.privacy.noise import Noise
from discreet.privacy.sensitivities import centre, ridge_sensitivity, sampler_distance
from discreet.types import Array, Numbers, NumpyArray


def noisy_statistics(
    batch: Batch,
    problem: Problem,
    gram: Numbers,
    response: Numbers,
    noise: Noise,
    matrix: Array | None = None,
    bounds: Bounds = NORMALISED,
    *,
    ridge: Numbers = 0.0,
) -> tuple[Array, Array, Array | None]:
    """Blocks (..., A or 1, p, p), centred responses (..., A, p) and sums of outcomes, jointly.

    ``gram`` and ``response`` are the standard deviations; ``matrix`` and ``bounds`` say how rows
    are stretched and shortened. Without noise, and with a small ``ridge``, the sums are in float64.
    """
    if noise.exact:
        moments = exact_moments(batch, problem.feedback, problem.losses, matrix, bounds)
    else:
        middle = centre(problem.losses, batch.n_actions)
        double = matrix is None and needs_double(gram, ridge)
        moments = floating_moments(batch, problem.feedback, middle, matrix, bounds, double)
    sums = moments.outcome_sums
    return (
        noisy_gram(moments, gram, noise),
        noisy_totals("response", moments.response, 2, response, moments.response_unit, noise),
        None if sums is None else noisy_totals("told", sums, 1, gram, moments.gram_unit, noise),
    )


def noisy_gram(moments: Moments, sigma: Numbers, noise: Noise) -> Array:
    """Blocks plus symmetric noise of standard deviation σ in svec coordinates.

    Privacy: svec weights off-diagonal entries by √2, so ‖svec(ΔG)‖ = ‖ΔG‖_F and an
    off-diagonal entry itself carries σ/√2. [docs/privacy/ridge.md, "svec"]
    """
    blocks, p = moments.gram.shape[-3], moments.gram.shape[-1]
    law = _svec_law(p)
    if noise.exact:
        drawn = noise.gaussian("gram", (blocks, law.size), sigma * law / moments.gram_unit)
        return _exact_sum(moments.gram, unpack(drawn, p), moments.gram_unit)
    drawn = as_like(noise.gaussian("gram", (blocks, law.size), law), moments.gram)
    scale = per_run(np.asarray(sigma), moments.gram, 3)
    return plus_product(moments.gram, scale, unpack(drawn, p))


@lru_cache(maxsize=256)
def _svec_law(p: int) -> NumpyArray:
    """1 for each entry of a packed triangle that is on the diagonal, √½ for the others."""
    rows, columns = triangle(p)
    return np.where(rows == columns, 1.0, np.sqrt(0.5))


def noisy_totals(
    name: str, sums: Array, axes: int, sigma: Numbers, unit: float, noise: Noise
) -> Array:
    """Sums in multiples of ``unit`` plus independent noise of standard deviation σ.

    The last ``axes`` are those of one batch; the others are seeds and runs.
    """
    shape = tuple(sums.shape[-axes:])
    if noise.exact:
        drawn = noise.gaussian(name, shape, sigma / unit)
        return _exact_sum(sums, drawn, unit)
    drawn = as_like(noise.gaussian(name, shape, 1.0), sums)
    return sums + per_run(sigma, sums, axes) * drawn


def _exact_sum(values: Array, drawn: Numbers, unit: float) -> Array:
    """Integers plus integers; the conversion to floats is post-processing."""
    return (values + drawn).astype(np.float64) * unit


def dense_noisy_gram(blocks: Array, n_actions: int, sigma: Numbers, noise: Noise) -> Array:
    """The whole (Ap)² matrix plus E = σ(W + Wᵀ)/2, zeros outside the blocks noised too."""
    gram = block_diagonal(blocks, n_actions)
    size = gram.shape[-1]
    w = as_like(noise.normal("dense gram", (size, size)), gram)
    symmetric = (w + namespace(gram).moveaxis(w, -1, -2)) / 2.0
    return gram + per_run(sigma, gram, 2) * symmetric


def block_diagonal(blocks: Array, n_actions: int) -> Array:
    """(..., A or 1, p, p) -> (..., Ap, Ap) with zeros outside the blocks."""
    p = blocks.shape[-1]
    eye = identity(n_actions, blocks)
    spread = eye[:, None, :, None] * blocks[..., :, :, None, :]  # (..., A, p, A, p)
    return spread.reshape(*blocks.shape[:-3], n_actions * p, n_actions * p)


@lru_cache(maxsize=4096)
def structured_scales(
    problem: Problem, budget: Budget, weight: float = 1.0, normalised: bool = False
) -> tuple[float, float, Event]:
    """Standard deviations of Grams and responses in natural units, and what they cost.

    One number for all blocks and for the responses times their weight; zero without privacy.
    """
    if not budget.private:
        return 0.0, 0.0, NO_BUDGET
    need_delta(budget, "Gaussian noise")
    feedback, n_actions, p = problem.feedback, problem.n_actions, problem.p
    one_label = problem.losses == "one_label"
    sensitivity = ridge_sensitivity(feedback, n_actions, one_label, weight, normalised)
    blocks = 2 if feedback == "bandit" else 1
    coordinates = blocks * p * (p + 1) // 2 + (2 if blocks == 2 else n_actions) * p
    # Count and squares of all actions, half sums and half counts of two.
    coordinates += 6 if normalised and blocks == 2 else 0

    def event_at(multiplier: float) -> Gaussian:
        coarsest = max(math.sqrt(2.0), weight) if normalised else max(1.0, weight)
        grid_sigma = multiplier * sensitivity * GRID**2 / coarsest
        distance = sampler_distance(coordinates, grid_sigma)
        return Gaussian(multiplier, sensitivity, distance, coordinates=coordinates)

    often = problem.participation
    multiplier = smallest_scale(event_at, budget, gaussian_multiplier(budget, often), often)
    # Privacy: one joint Gaussian release of all blocks.
    # [docs/privacy/ridge.md, "The structured release"]
    sigma = multiplier * sensitivity
    return sigma, sigma / weight, event_at(multiplier)
