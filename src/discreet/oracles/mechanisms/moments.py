"""Second moments of a batch, in two forms: floating products and exact integers.

The exact form serves private releases. Rows are rounded toward zero onto a public grid (so
they stay legal records), products are formed in integers and summed in int64: the same bits
for any order or chunking, and no rounding term in the privacy proof. The floating form
serves simulation. Both run through the same sums. [docs/privacy/arithmetic.md]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays.backend import apply_rows, namespace, share_rows, weighted_sums
from discreet.arrays.linear_algebra import pack_products, packed_form, unpack
from discreet.errors import InvalidInput, PrivateData
from discreet.privacy.sensitivities import GRID_BITS, LARGEST_BATCH, centre
from discreet.rows.batch import Batch
from discreet.types import Array

GRID = 2**GRID_BITS
_EXACT_ROWS = 4096
"""4096 products of up to 2**40 sum to at most 2**52: exact in float64, whatever the order."""
_HELD_NUMBERS = 2**22
"""Numbers a chunk of rows may expand to: a few caches of a CPU core."""
_HELD_ON_A_GPU = 2**27
"""There every chunk is a wait, and memory is plenty."""


@dataclass(frozen=True)
class Moments:
    """gram (..., A or 1, p, p) and response (..., A, p), each in multiples of its unit.

    ``told`` (..., 2), in multiples of the Gram's unit, is ½·Σ(y − ½) and the number of losses
    heard: rows that are normalised no longer tell them.
    """

    gram: Array
    response: Array
    gram_unit: float
    response_unit: float
    told: Array | None = None


def floating_moments(
    batch: Batch, feedback: str, middle: float, matrix: Array | None = None
) -> Moments:
    """Plain floating sums over the rows that were observed, with losses centred at ``middle``.

    With a matrix M (..., p, p) rows are v = M b/‖M b‖, in float64 since M may be far from even.
    """
    xp = namespace(batch.features)
    observed = batch.observed[..., :1] if feedback == "full" else batch.observed
    heard = xp.where(observed, batch.losses - middle, 0.0)  # what was not observed is not read
    weights = xp.astype(observed, batch.features.dtype)
    if matrix is None:
        response = weighted_sums(heard, batch.features)
        return Moments(second_moments(batch.features, weights), response, 1.0, 1.0)
    heard, weights = xp.astype(heard, xp.float64), xp.astype(weights, xp.float64)
    told = None
    if feedback == "bandit":
        told = xp.stack([0.5 * heard.sum((-2, -1)), weights.sum((-2, -1))], axis=-1)
    return Moments(*stretched_sums(batch.features, weights, heard, matrix), 1.0, 1.0, told)


@dataclass(frozen=True)
class LegalRows:
    """Rows that obey the rules on which sensitivities rest, whatever the caller passed."""

    grid: np.ndarray[Any, Any]
    """(n, p) integers z with z / 2^20 = (1, c̄) and ‖c̄‖ ≤ 1."""
    weights: np.ndarray[Any, Any]
    """(n, A): at most one 1 a row for bandit feedback; (n, 1) for full information."""
    targets: np.ndarray[Any, Any]
    """(n, A) losses in [0, 1]."""

    @property
    def features(self) -> np.ndarray[Any, Any]:
        return np.asarray(self.grid * (math.sqrt(0.5) / GRID))


def legal_rows(batch: Batch, feedback: str, losses: str) -> LegalRows:
    """Clamp, never complain about a row: an error message would be a release."""
    if batch.records > LARGEST_BATCH:  # a public number, known before any data
        raise InvalidInput(
            f"batch must hold at most {LARGEST_BATCH} records for an exact release; "
            f"got {batch.records}. Set a horizon, or a first_batch with smaller multiples."
        )
    targets = np.nan_to_num(np.clip(np.asarray(batch.losses, dtype=np.float64), 0.0, 1.0), nan=1.0)
    observed = np.asarray(batch.observed, dtype=bool)
    if feedback == "bandit":
        # Privacy: one row touches one block, so off-block entries are zero for every data set.
        # [docs/privacy/ridge.md, "Blocks"]
        weights = observed & (np.cumsum(observed, axis=-1) == 1)
    else:
        weights = observed.all(axis=-1, keepdims=True)
        if losses == "one_label":
            # Privacy: exactly one zero a row, whatever was passed.
            # [docs/privacy/ridge.md, "Joint sensitivity, full information"]
            best = np.argmin(targets, axis=-1)
            targets = (np.arange(targets.shape[-1]) != best[..., None]).astype(np.float64)
    return LegalRows(_grid_rows(np.asarray(batch.features)), weights.astype(np.float64), targets)


def legal_batch(batch: Batch, feedback: str, losses: str) -> Batch:
    """The same batch with every row made legal, for mechanisms that work in floating point."""
    legal = legal_rows(batch, feedback, losses)
    observed = np.broadcast_to(legal.weights > 0.0, legal.targets.shape)
    return Batch(legal.features, legal.targets, observed)


def fitted_rows(
    batch: Batch, feedback: str, losses: str, *, exact: bool
) -> tuple[Array, Array, Array, Array | None]:
    """Features, weights and losses (..., n, A): for a release legal ones and their grid rows."""
    if exact:
        legal = legal_rows(batch, feedback, losses)
        return legal.features, legal.weights + 0.0 * legal.targets, legal.targets, legal.grid
    xp = namespace(batch.features)
    weights = xp.astype(batch.observed, batch.features.dtype)
    heard = xp.where(xp.isfinite(batch.losses), batch.losses, 0.0)  # NaN: not observed
    return batch.features, weights, heard, None


def exact_moments(batch: Batch, feedback: str, losses: str, matrix: Array | None = None) -> Moments:
    """Integer sums over legal records, with centred losses; over M b/‖M b‖ with a matrix M."""
    legal = legal_rows(batch, feedback, losses)
    rows, weights = legal.grid, legal.weights
    if matrix is not None:
        rows = stretched_rows(rows, np.asarray(matrix))
        weights = weights * rows.any(axis=-1, keepdims=True)  # what M makes nothing of is void
    centred = np.trunc((legal.targets - centre(losses, batch.n_actions)) * GRID)
    gram = np.zeros((weights.shape[-1], rows.shape[-1], rows.shape[-1]), dtype=np.int64)
    response = np.zeros((centred.shape[-1], rows.shape[-1]), dtype=np.int64)
    for start in range(0, rows.shape[0], _EXACT_ROWS):
        part = slice(start, start + _EXACT_ROWS)
        z, w = rows[part], weights[part]
        gram += second_moments(z, w).astype(np.int64)
        response += weighted_sums(w * centred[part], z).astype(np.int64)
    if matrix is None:  # b = z / (2^20 √2) and y − centre = k / 2^20
        return Moments(gram, response, 0.5 / GRID**2, math.sqrt(0.5) / GRID**2)
    told = None
    if feedback == "bandit":
        halves, heard = int((weights * centred).sum()) * (GRID // 2), int(weights.sum()) * GRID**2
        told = np.array([halves, heard], dtype=np.int64)
    return Moments(gram, response, 1.0 / GRID**2, 1.0 / GRID**2, told)


def stretched_rows(
    grid: np.ndarray[Any, Any], matrix: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Integer rows z with z/2^20 ≈ M b/‖M b‖, rounded toward zero, so ‖z‖ ≤ 2^20.

    The same bits on every machine: products of two integers up to 2^20 sum exactly, a power of
    two brings each row below 2^20, its squares sum exactly, and root and quotient are rounded
    once. Only the direction of M b counts, so the common power of two of M does not.
    """
    products = grid @ integers_of(matrix).T
    largest = np.abs(products).max(axis=-1, keepdims=True)
    _, exponents = np.frexp(largest)
    rows = np.trunc(np.ldexp(products, GRID_BITS - exponents))
    squares = np.einsum("...i,...i->...", rows, rows)[..., None]
    z = np.trunc(rows / np.sqrt(np.where(squares > 0.0, squares, 1.0)) * GRID)
    return _within_grid(z)


def matrix_bits(p: int) -> int:
    """Bits of a published matrix's integers: p products with integers up to 2^20 sum exactly."""
    return 53 - GRID_BITS - math.ceil(math.log2(p))


def integers_of(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A published matrix as integers, its common power of two left out."""
    bits = matrix_bits(matrix.shape[-1])
    integers = np.ldexp(matrix, bits - math.frexp(float(np.abs(matrix).max()))[1])
    # Privacy: with exact products a row's image does not depend on the rows beside it.
    # [docs/privacy/arithmetic.md, "Stretched rows"]
    if not (np.isfinite(integers) & (integers == np.rint(integers))).all():
        raise PrivateData(
            f"matrix must be as a release publishes it, in integers of {bits} bits; it is not. "
            "Pass what geometry.publishable returns."
        )
    return np.asarray(integers)


def _grid_rows(features: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integer rows z with z/2^20 = (1, c̄), c̄ rounded toward zero, ‖c̄‖ ≤ 1."""
    # Clamped before the product too, which could overflow with a warning.
    coordinates = np.nan_to_num(np.clip(features[..., 1:], -1.0, 1.0), nan=0.0) * math.sqrt(2.0)
    z = _within_grid(np.trunc(np.clip(coordinates, -1.0, 1.0) * GRID))
    return np.concatenate([np.full((*z.shape[:-1], 1), float(GRID)), z], axis=-1)


def _within_grid(z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integer rows shrunk where they are longer than 2^20: the rule holds for any input."""
    squares = np.einsum("...i,...i->...", z, z)
    outside = squares > float(GRID) ** 2
    if outside.any():
        shrink = GRID / np.sqrt(squares[outside]) * (1.0 - 2.0**-40)
        z[outside] = np.trunc(z[outside] * shrink[..., None])
    return z


def products_of(features: Array, weights: Array) -> Array | None:
    """x ⊗ x for sums that are taken again and again, if runs share their rows and it is small."""
    p = features.shape[-1]
    small = math.prod(features.shape[:-1]) * p * (p + 1) // 2 <= 8 * _held_numbers(features)
    return pack_products(features) if small and share_rows(features, weights) else None


def _held_numbers(like: Array) -> int:
    return _HELD_ON_A_GPU if getattr(like, "is_cuda", False) else _HELD_NUMBERS


def second_moments(features: Array, weights: Array, products: Array | None = None) -> Array:
    """Σ_n w_na x xᵀ: (..., n, p) and (..., n, A) -> (..., A, p, p), in chunks that bound memory."""
    rows, p = features.shape[-2:]
    if products is not None and share_rows(features, weights):
        return unpack(weighted_sums(weights, products), p)
    shared = share_rows(features, weights)
    if shared:  # one product of all weights with x ⊗ x
        held = math.prod(features.shape[:-2]) * p * (p + 1) // 2
    else:
        held = math.prod(weights.shape[:-2]) * weights.shape[-1] * p
    chunk = max(64, _held_numbers(features) // max(1, held))
    total: Any = 0.0
    for start in range(0, rows, chunk):
        x = features[..., start : start + chunk, :]
        w = weights[..., start : start + chunk, :]
        if shared:
            total = total + weighted_sums(w, pack_products(x))
        else:
            total = total + (w.mT[..., None] * x[..., None, :, :]).mT @ x[..., None, :, :]
    return unpack(total, p) if shared else total


def stretched_sums(
    features: Array, weights: Array, heard: Array, matrix: Array
) -> tuple[Array, Array]:
    """Σ w·v vᵀ and Σ h·v with v = M b/‖M b‖, as M (Σ b bᵀ·w/‖M b‖²) Mᵀ where runs share their rows.

    In chunks, so that products b ⊗ b are formed once for both the lengths and the sums.
    """
    xp = namespace(features)
    if not share_rows(features, weights):
        v = xp.astype(features, xp.float64) @ matrix.mT
        v = v / xp.sqrt((v * v).sum(-1))[..., None]
        return second_moments(v, weights), weighted_sums(heard, v)
    rows, p = features.shape[-2:]
    squared = matrix.mT @ matrix
    held = math.prod(features.shape[:-2]) * p * (p + 1) // 2
    chunk = max(64, _held_numbers(features) // max(1, held))
    gram: Any = 0.0
    response: Any = 0.0
    for start in range(0, rows, chunk):
        part = slice(start, start + chunk)
        x = xp.astype(features[..., part, :], xp.float64)
        products = pack_products(x)
        squares = apply_rows(products, packed_form(squared)[..., None, :])  # (..., n, 1)
        gram = gram + weighted_sums(weights[..., part, :] / squares, products)
        response = response + weighted_sums(heard[..., part, :] / xp.sqrt(squares), x)
    there = matrix[..., None, :, :]
    return there @ unpack(gram, p) @ there.mT, response @ matrix.mT
