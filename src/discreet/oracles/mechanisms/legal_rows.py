"""Rows that are legal records on the integer grid, for every input.

Sensitivities rest on these rules: one action per row, losses in [0, 1], contexts in the unit ball.
Rows are rounded toward zero onto a public grid, so they stay legal; with learned geometry they are
stretched by a published matrix and shortened. [docs/privacy/arithmetic.md]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays.backend import namespace
from discreet.batch import Batch
from discreet.errors import InvalidInput, PrivateData
from discreet.privacy.sensitivities import GRID_BITS, LARGEST_BATCH
from discreet.types import Array, Floats, Numbers, NumpyArray

GRID = 2**GRID_BITS


@dataclass(frozen=True)
class LegalRows:
    """Rows that obey the rules on which sensitivities rest, for every input."""

    grid: NumpyArray
    """(n, p) integers z with z / 2^20 = (1, c̄) and ‖c̄‖ ≤ 1."""
    weights: NumpyArray
    """(n, A): at most one 1 a row for bandit feedback; (n, 1) for full information."""
    targets: NumpyArray
    """(n, A) losses in [0, 1]."""

    @property
    def features(self) -> NumpyArray:
        return np.asarray(self.grid * (math.sqrt(0.5) / GRID))


def legal_rows(batch: Batch, feedback: str, losses: str) -> LegalRows:
    """Clamp, never complain about a row: an error message would be a release."""
    weights, targets = legal_losses(batch, feedback, losses)
    return LegalRows(_grid_rows(np.asarray(batch.features)), weights.astype(np.float64), targets)


def legal_losses(batch: Batch, feedback: str, losses: str) -> tuple[Numbers, Numbers]:
    """Mask of the losses that count (n, A or 1), and losses (n, A) in [0, 1]."""
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
            # Privacy: exactly one zero a row, for every input.
            # [docs/privacy/ridge.md, "Joint sensitivity, full information"]
            best = np.argmin(targets, axis=-1)
            targets = (np.arange(targets.shape[-1]) != best[..., None]).astype(np.float64)
    return weights, targets


def legal_batch(batch: Batch, feedback: str, losses: str) -> Batch:
    """The same batch with every row made legal, for mechanisms that work in floating point."""
    legal = legal_rows(batch, feedback, losses)
    observed = np.broadcast_to(legal.weights > 0.0, legal.targets.shape)
    return Batch(legal.features, legal.targets, observed)


def fitted_rows(
    batch: Batch, feedback: str, losses: str, *, exact: bool
) -> tuple[Array, Array, Array, Array | None]:
    """Features, weights and losses (..., n, A): for a release legal ones and their grid rows.

    Weights are zero and one, or false and true.
    """
    if exact:
        legal = legal_rows(batch, feedback, losses)
        return legal.features, legal.weights + 0.0 * legal.targets, legal.targets, legal.grid
    xp = namespace(batch.features)
    losses_or_zero = xp.where(xp.isfinite(batch.losses), batch.losses, 0.0)  # NaN: not observed
    return batch.features, batch.observed, losses_or_zero, None


def shortened_rows(
    grid: NumpyArray, matrix: NumpyArray, low: float = 1.0, high: float = 1.0
) -> tuple[NumpyArray, NumpyArray]:
    """Integer rows z with z/2^20 ≈ M b/max(low, ‖M b‖), and min(1, high/‖M b‖), for each loss.

    Rounded toward zero, so ‖z‖ ≤ 2^20. The same bits on every machine for p ≤ 8,192: root and
    quotient are rounded once. [docs/privacy/arithmetic.md, "Stretched rows"; docs/privacy/joint.md,
    "Rows and losses shortened alike"]
    """
    rows, squares, exponents = _products(grid, matrix)
    lengths = np.sqrt(np.maximum(squares, 1.0))
    # How long ``rows`` are where ‖M b‖ = 1: b is z/(2^20·√2), and M has its power of two.
    power = math.frexp(float(np.abs(matrix).max()))[1] - matrix_bits(matrix.shape[-1])
    with np.errstate(over="ignore", under="ignore"):
        least, most = (
            np.ldexp(math.sqrt(2.0) * bound, 2 * GRID_BITS - exponents - power)
            for bound in (low, high)
        )
    shortened = _within_grid(np.trunc(rows / np.maximum(lengths, least) * GRID))
    return shortened, np.minimum(1.0, most / lengths)


def _products(grid: NumpyArray, matrix: NumpyArray) -> tuple[NumpyArray, NumpyArray, NumpyArray]:
    """M z as integers below 2^20, their squares summed, and the powers of two that were taken out.

    The products of M's few bits with integers up to 2^20 sum exactly, a power of two brings each
    row below 2^20, and its squares sum exactly.
    """
    products = grid @ integers_of(matrix).T
    largest = np.abs(products).max(axis=-1, keepdims=True)
    _, exponents = np.frexp(largest)
    rows = np.trunc(np.ldexp(products, GRID_BITS - exponents))
    squares = np.einsum("...i,...i->...", rows, rows)[..., None]
    return rows, squares, exponents


def matrix_bits(p: int) -> int:
    """Bits of a published matrix's integers: p products with integers up to 2^20 sum exactly."""
    return 53 - GRID_BITS - math.ceil(math.log2(p))


def integers_of(matrix: NumpyArray) -> NumpyArray:
    """A published matrix as integers, its common power of two left out."""
    bits = matrix_bits(matrix.shape[-1])
    integers = np.ldexp(matrix, bits - math.frexp(float(np.abs(matrix).max()))[1])
    # Privacy: with exact products a row's image does not depend on other rows.
    # [docs/privacy/arithmetic.md, "Stretched rows"]
    if not (np.isfinite(integers) & (integers == np.rint(integers))).all():
        raise PrivateData(
            f"matrix must be as a release publishes it, in integers of {bits} bits; it is not. "
            "Pass what geometry.publishable returns."
        )
    return np.asarray(integers)


def _grid_rows(features: NumpyArray) -> NumpyArray:
    """Integer rows z with z/2^20 = (1, c̄), c̄ rounded toward zero, ‖c̄‖ ≤ 1."""
    # Clamped before the product too, which could overflow with a warning.
    coordinates = np.nan_to_num(np.clip(features[..., 1:], -1.0, 1.0), nan=0.0) * math.sqrt(2.0)
    z = _within_grid(np.trunc(np.clip(coordinates, -1.0, 1.0) * GRID))
    return np.concatenate([np.full((*z.shape[:-1], 1), float(GRID)), z], axis=-1)


def _within_grid(z: NumpyArray) -> NumpyArray:
    """Integer rows shrunk where they are longer than 2^20: the rule holds for any input."""
    squares = np.einsum("...i,...i->...", z, z)
    outside = squares > float(GRID) ** 2
    if outside.any():
        shrink = GRID / np.sqrt(squares[outside]) * (1.0 - 2.0**-40)
        z[outside] = np.trunc(z[outside] * shrink[..., None])
    return z


UNIT = 2.0**-53
"""Relative error of one floating-point operation."""
_EXACT = 2**53
"""Sums of integers up to this size are exact in floating point, in any order."""
_EXACT_ROWS = _EXACT // GRID**2

# Scores and sums over rows on the grid, without the rounding error of long sums: a factor is split
# into a coarse part, whose products with the integer rows add up exactly, and a remainder so small
# that its rounding is negligible. The error of single operations has a bound for every batch and
# every order of its rows. [docs/privacy/logistic.md, "Rounding"]


def exact_scores(grid: Floats, theta: Floats) -> Floats:
    """x·θ_a, x = z/(2^20·√2), for (n, p) and (..., A, p): (..., n, A), three roundings each."""
    p = grid.shape[-1]
    flat = theta.reshape(-1, p)
    # p products of integers up to 2^20 and 2^bits sum to at most 2^53.
    bits = (_EXACT // (GRID * p)).bit_length() - 1
    exponents = np.frexp(np.abs(flat).max(axis=-1, keepdims=True))[1]
    step = np.ldexp(1.0, exponents - bits)
    coarse = np.rint(flat / step) * step
    products = np.concatenate([coarse, flat - coarse]) @ grid.T
    scores = products[: len(flat)]
    scores += products[len(flat) :]
    scores *= math.sqrt(0.5) / GRID
    return scores.reshape(*theta.shape[:-1], len(grid)).mT


def exact_sums(grid: Floats, factors: Floats) -> Floats:
    """Σ_n r_na·x_n for factors in [−1, 1]: (n, p) and (..., n, A) -> (..., A, p)."""
    rows, p = grid.shape
    scaled = factors.mT.reshape(-1, rows) * GRID
    coarse = np.rint(scaled)
    both = np.concatenate([coarse, scaled - coarse])
    whole, rest = np.zeros((len(scaled), p), dtype=np.int64), np.zeros((len(scaled), p))
    for start in range(0, rows, _EXACT_ROWS):
        part = slice(start, start + _EXACT_ROWS)
        sums = both[:, part] @ grid[part]
        whole += sums[: len(scaled)].astype(np.int64)
        rest += sums[len(scaled) :]
    sums = (whole.astype(np.float64) + rest) * (math.sqrt(0.5) / GRID**2)
    return np.asarray(sums.reshape(*factors.shape[:-2], factors.shape[-1], p))


def attainable_norm(records: int, p: int, ridge: Numbers, tilt: Numbers) -> Numbers:
    """A gradient norm that plain gradient steps reach and that these sums show, for any rows.

    Privacy: four times the largest error of a step; ``tilt`` is the largest norm that the
    objective's noise can have. [docs/privacy/logistic.md, "Rounding"]
    """
    ridge, tilt = np.asarray(ridge, dtype=float), np.asarray(tilt, dtype=float)
    reach = 1.0 + 2.0 * tilt / ridge + np.sqrt(2.0 * math.log(2.0) * records / ridge)
    each = 11.0 + (0.25 + p**2.5 * 2.0**-34) * reach
    return 4.0 * UNIT * (each * records + tilt + 2.0 * ridge * reach)
