"""Second moments of a batch, in two forms: floating products and exact integers.

The exact form serves private releases: products of legal rows (``legal_rows.py``) are formed in
integers and summed exactly, the same bits for any order or chunking, and no rounding term in the
privacy proof. The floating form serves simulation. Both run through the same sums.
[docs/privacy/arithmetic.md]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from discreet.arrays.backend import (
    apply_rows,
    at_least,
    at_most,
    column_sums,
    namespace,
    per_run,
    row_blocks,
    rows_contiguous,
    share_rows,
    weighted_sums,
)
from discreet.arrays.linear_algebra import pack_products, packed_form, unpack
from discreet.batch import Batch, Sums
from discreet.oracles.mechanisms.legal_rows import GRID, legal_rows, shortened_rows
from discreet.privacy.sensitivities import centre
from discreet.types import Array, Numbers

_EXACT_ROWS = 4096
"""4096 products of up to 2**40 sum to at most 2**52: exact in float64, in any order."""
_HELD_NUMBERS = 2**22
"""Numbers a chunk of rows may expand to: a few caches of a CPU core."""
_HELD_ON_A_GPU = 2**27
"""There every chunk is a wait, and memory is plenty."""

Bounds = tuple[Numbers, Numbers]
"""Lengths (...) of M b between which rows are normalised and losses are not shortened."""
NORMALISED: Bounds = (0.0, math.inf)
"""All rows have length one, and no loss is shortened."""


@dataclass(frozen=True)
class Moments:
    """gram (..., A or 1, p, p) and response (..., A, p), each in multiples of its unit.

    ``outcome_sums`` (..., 2 + 2A), in multiples of the Gram's unit, is the number of observed
    losses, 2·Σ(y − ½)², and for each action ½·Σ(y − ½) and half its number of losses: stretched
    rows do not determine them.
    """

    gram: Array
    response: Array
    gram_unit: float
    response_unit: float
    outcome_sums: Array | None = None


def floating_moments(
    batch: Batch,
    feedback: str,
    middle: float,
    matrix: Array | None = None,
    bounds: Bounds = NORMALISED,
    double: bool = False,
) -> Moments:
    """Plain floating sums over the rows that were observed, with losses centred at ``middle``.

    With ``double`` they are in float64. With a matrix M (..., p, p) they
    are too, since M may be far from even. Rows are then v = M b/max(low, ‖M b‖), and centred losses
    are multiplied by min(1, high/‖M b‖), with the ``bounds`` (low, high).
    """
    xp, features = namespace(batch.features), batch.features
    observed = batch.observed[..., :1] if feedback == "full" else batch.observed
    if matrix is None:
        return _plain_moments(features, observed, batch.losses, middle, double)
    centred = xp.where(observed, batch.losses - middle, 0.0)  # what was not observed is not read
    centred = xp.astype(centred, xp.float64, copy=False)
    weights = xp.astype(rows_contiguous(observed), xp.float64)
    outcome_sums = None
    if feedback == "bandit":
        squares = 2.0 * (centred**2).sum((-2, -1))[..., None]
        counts = column_sums(weights)
        halves = [(0.5 * each)[..., None] for each in (column_sums(centred), counts)]
        by_action = xp.concat(halves, axis=-1)
        by_action = by_action.reshape(*by_action.shape[:-2], -1)
        outcome_sums = xp.concat([counts.sum(-1)[..., None], squares, by_action], axis=-1)
    sums = stretched_sums(batch.features, weights, centred, matrix, bounds)
    return Moments(*sums, 1.0, 1.0, outcome_sums)


SMALL_RIDGE = 1e-5
"""Times n: a ridge below this does not cover the rounding of sums in single precision."""


def needs_double(sigma: Numbers, ridge: Numbers = 0.0) -> bool:
    """Return whether some run has no noise (``sigma`` is 0) and a small ``ridge``.

    Sums of n rows in float32 err by about 6e-8·n in every direction. Noise covers that, and so does
    a ridge of 1e-4·n. Without either, the fit along nearly collinear columns would follow the
    rounding, so that these sums are made in double precision.
    """
    return bool(((np.asarray(sigma) == 0.0) & (np.asarray(ridge) < SMALL_RIDGE)).any())


def _plain_moments(
    features: Array, observed: Array, losses: Array, middle: float, double: bool
) -> Moments:
    """Σ x xᵀ and Σ (y − middle)·x over what was observed, some rows at a time."""
    xp = namespace(features)
    kind = xp.float64 if double else features.dtype
    losses = xp.astype(losses, kind, copy=False) if double else losses
    # What was not observed is not read: it may be NaN. Runs share losses, so this array is small.
    centred = xp.where(xp.isfinite(losses), losses - middle, 0.0)
    gram: Numbers = 0.0
    response: Numbers = 0.0
    p = features.shape[-1]
    held = math.prod(observed.shape[:-2]) * observed.shape[-1] + p * (p + 1) // 2
    for rows in row_blocks(features.shape[-2], held, features):
        x = xp.astype(features[..., rows, :], kind, copy=False)
        weights = xp.astype(observed[..., rows, :], kind)
        gram = gram + second_moments(x, weights)
        response = response + weighted_sums(weights * centred[..., rows, :], x)
    return Moments(gram, response, 1.0, 1.0)


def exact_moments(
    batch: Batch,
    feedback: str,
    losses: str,
    matrix: Array | None = None,
    bounds: Bounds = NORMALISED,
) -> Moments:
    """Integer sums over legal records, with centred losses; as ``floating_moments`` with M."""
    sums = partial(_integer_sums, feedback, losses, matrix, bounds)
    gram, response, *rest = batch.sums(sums)
    if matrix is None:  # b = z / (2^20 √2) and y − centre = k / 2^20
        return Moments(gram, response, 0.5 / GRID**2, math.sqrt(0.5) / GRID**2)
    outcome_sums = rest[0] if rest else None
    return Moments(gram, response, 1.0 / GRID**2, 1.0 / GRID**2, outcome_sums)


def _integer_sums(
    feedback: str, losses: str, matrix: Array | None, bounds: Bounds, batch: Batch
) -> Sums:
    """Gram, responses and, where rows are stretched, sums of outcomes of at most 2^22 rows."""
    legal = legal_rows(batch, feedback, losses)
    rows, weights = legal.grid, legal.weights
    shrink = np.ones((len(rows), 1))
    if matrix is not None:
        rows, shrink = shortened_rows(rows, np.asarray(matrix), *map(float, bounds))
        weights = weights * rows.any(axis=-1, keepdims=True)  # what M makes nothing of is void
    centred = np.trunc((legal.targets - centre(losses, batch.n_actions)) * GRID)
    gram = np.zeros((weights.shape[-1], rows.shape[-1], rows.shape[-1]), dtype=np.int64)
    response = np.zeros((centred.shape[-1], rows.shape[-1]), dtype=np.int64)
    for start in range(0, rows.shape[0], _EXACT_ROWS):
        part = slice(start, start + _EXACT_ROWS)
        z, w = rows[part], weights[part]
        gram += second_moments(z, w).astype(np.int64)
        shortened = np.trunc(w * centred[part] * shrink[part])
        response += weighted_sums(shortened, z).astype(np.int64)
    if matrix is None or feedback != "bandit":
        return gram, response
    counted = (weights * centred).astype(np.int64)  # floats would round sums of 2^15 squares
    counts = weights.sum(axis=0).astype(np.int64)
    by_action = np.stack(
        [counted.sum(axis=0) * (GRID // 2), counts * (GRID**2 // 2)], axis=-1
    ).ravel()
    totals = [int(counts.sum()) * GRID**2, 2 * int((counted**2).sum())]
    return gram, response, np.concatenate([np.array(totals, dtype=np.int64), by_action])


def repeated_products_fit(features: Array, weights: Array) -> bool:
    """Return whether x ⊗ x is kept for later sums: if runs share their rows, and few."""
    p = features.shape[-1]
    small = math.prod(features.shape[:-1]) * p * (p + 1) // 2 <= 8 * _held_numbers(features)
    return small and share_rows(features, weights)


def _held_numbers(like: Array) -> int:
    return _HELD_ON_A_GPU if getattr(like, "is_cuda", False) else _HELD_NUMBERS


def second_moments(features: Array, weights: Array) -> Array:
    """Σ_n w_na x xᵀ: (..., n, p) and (..., n, A) -> (..., A, p, p), in chunks that bound memory."""
    rows, p = features.shape[-2:]
    shared = share_rows(features, weights)
    if shared:  # one product of all weights with x ⊗ x
        held = math.prod(features.shape[:-2]) * p * (p + 1) // 2
    else:
        held = math.prod(weights.shape[:-2]) * weights.shape[-1] * p
    chunk = max(64, _held_numbers(features) // max(1, held))
    total: Numbers = 0.0
    for start in range(0, rows, chunk):
        x = features[..., start : start + chunk, :]
        w = weights[..., start : start + chunk, :]
        if shared:
            total = total + weighted_sums(w, pack_products(x))
        else:
            total = total + (w.mT[..., None] * x[..., None, :, :]).mT @ x[..., None, :, :]
    return unpack(total, p) if shared else total


VOID = 2.0**-1022
"""The smallest squared length: a void slot may have no features, and adds nothing."""


def stretched_sums(
    features: Array, weights: Array, centred: Array, matrix: Array, bounds: Bounds = NORMALISED
) -> tuple[Array, Array]:
    """Σ w·v vᵀ and Σ h·v with v = M b/d, as M (Σ b bᵀ·w/d²) Mᵀ where runs share their rows.

    d = max(low, ‖M b‖), and h are centred losses times min(1, high/‖M b‖). In chunks, so that
    products b ⊗ b are formed once for both the lengths and the sums.
    """
    xp = namespace(features)
    low, high = (per_run(each, matrix) for each in bounds)
    if not share_rows(features, weights):
        v = xp.astype(features, xp.float64) @ matrix.mT
        lengths = xp.sqrt(at_least((v * v).sum(-1), VOID))[..., None]
        v = v / at_least(lengths, low)
        return second_moments(v, weights), weighted_sums(centred * at_most(high / lengths, 1.0), v)
    rows, p = features.shape[-2:]
    squared = matrix.mT @ matrix
    held = math.prod(features.shape[:-2]) * p * (p + 1) // 2
    chunk = max(64, _held_numbers(features) // max(1, held))
    gram: Numbers = 0.0
    response: Numbers = 0.0
    for start in range(0, rows, chunk):
        part = slice(start, start + chunk)
        x = xp.astype(features[..., part, :], xp.float64)
        products = pack_products(x)
        squares = apply_rows(products, packed_form(squared)[..., None, :])  # (..., n, 1)
        lengths = xp.sqrt(at_least(squares, VOID))
        divisors = at_least(lengths, low)
        gram = gram + weighted_sums(weights[..., part, :] / divisors**2, products)
        shrunk = centred[..., part, :] * at_most(high / lengths, 1.0) / divisors
        response = response + weighted_sums(shrunk, x)
    there = matrix[..., None, :, :]
    return there @ unpack(gram, p) @ there.mT, response @ matrix.mT
