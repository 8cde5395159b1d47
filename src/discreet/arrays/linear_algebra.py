"""Packed symmetric matrices, and systems that noise may have made indefinite."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from discreet.arrays.backend import (
    apply_rows,
    as_like,
    at_least,
    namespace,
    per_run,
    row_sum,
    share_rows,
)
from discreet.types import Array, Numbers, NumpyArray

LARGE = 2000
"""One matrix of this size fills a GPU; the batched GPU routines are made for small matrices."""


@lru_cache(maxsize=256)
def triangle(p: int) -> tuple[NumpyArray, NumpyArray]:
    """Row and column of each entry of a packed upper triangle of size p(p+1)/2."""
    return np.triu_indices(p)


def pack_products(features: Array) -> Array:
    """x ⊗ x, upper triangle only: (..., n, p) -> (..., n, p(p+1)/2)."""
    rows, columns = (_indices(name, features) for name in ("rows", "columns"))
    if (kernel := _kernel_for(features)) is not None:
        return kernel.packed_products(features, rows, columns)
    long = features.mT  # whole rows are copied faster than single numbers
    if isinstance(features, np.ndarray):
        return (long[..., rows, :] * long[..., columns, :]).mT
    return (long.index_select(-2, rows) * long.index_select(-2, columns)).mT


def unpack(packed: Array, p: int) -> Array:
    """Packed upper triangle (..., p(p+1)/2) -> symmetric (..., p, p)."""
    places = _indices("positions", packed, p)
    plain = isinstance(packed, np.ndarray)
    full = packed[..., places] if plain else packed.index_select(-1, places)
    return full.reshape(*packed.shape[:-1], p, p)


def _indices(name: str, like: Array, p: int | None = None) -> Array:
    device = None if isinstance(like, np.ndarray) else like.device
    return _cached_indices(name, like.shape[-1] if p is None else p, device)


@lru_cache(maxsize=1024)
def _cached_indices(name: str, p: int, device: object) -> Array:
    """Index arrays, made once for each device."""
    rows, columns = triangle(p)
    position = np.zeros((p, p), dtype=np.int64)
    position[rows, columns] = position[columns, rows] = np.arange(rows.size)
    chosen = {"rows": rows, "columns": columns, "positions": position.reshape(-1)}[name]
    if device is None:
        return chosen
    import torch

    return torch.asarray(chosen, device=device)


def packed_form(matrices: Array) -> Array:
    """Symmetric (..., p, p) as weights on ``pack_products``: their sum is xᵀ M x."""
    rows, columns = (_indices(name, matrices) for name in ("rows", "columns"))
    return matrices[..., rows, columns] * (2 - 1 * (rows == columns))


def quadratic_forms(features: Array, matrices: Array) -> Array:
    """xᵀ M_a x for every row and action: (..., n, p) and (..., A, p, p) -> (..., n, A)."""
    if share_rows(features, matrices[..., 0]):
        return apply_rows(pack_products(features), packed_form(matrices))
    x = features[..., None, :, :]
    return row_sum((x @ matrices) * x)[..., 0].mT


def identity(p: int, like: Array) -> Array:
    """The p × p identity, of the library, floating type and device of ``like``."""
    plain = isinstance(like, np.ndarray)
    return np.eye(p, dtype=like.dtype) if plain else _torch_identity(p, like.dtype, like.device)


@lru_cache(maxsize=1024)
def _torch_identity(p: int, dtype: object, device: object) -> Array:
    import torch

    return torch.eye(p, dtype=dtype, device=device)


def solve_vector(matrices: Array, vectors: Array) -> Array:
    """M⁻¹ v for (..., p, p) and (..., p)."""
    xp = namespace(matrices)
    if _one_by_one(matrices):
        matrices, vectors = xp.broadcast_tensors(matrices, vectors[..., None])
        pairs = zip(matrices.flatten(0, -3), vectors[..., 0].flatten(0, -2), strict=True)
        return xp.stack([xp.linalg.solve(*pair) for pair in pairs]).reshape(vectors.shape[:-1])
    return xp.linalg.solve(matrices, vectors[..., None])[..., 0]


def inverse(matrices: Array) -> Array:
    """M⁻¹ for (..., p, p), definite or not."""
    xp = namespace(matrices)
    if _one_by_one(matrices):
        each = [xp.linalg.inv(matrix) for matrix in matrices.flatten(0, -3)]
        return xp.stack(each).reshape(matrices.shape)
    return xp.linalg.inv(matrices)


def _one_by_one(matrices: Array) -> bool:
    many = not isinstance(matrices, np.ndarray) and matrices.ndim > 2
    return bool(many and matrices.shape[-1] >= LARGE)


def solve_definite(matrices: Array, vectors: Array) -> Array:
    """M⁻¹ v for positive definite M; without a check, which a GPU would have to wait for."""
    if isinstance(matrices, np.ndarray):
        return solve_vector(matrices, vectors)
    import torch

    factors, _ = torch.linalg.cholesky_ex(matrices)
    return torch.cholesky_solve(vectors[..., None], factors)[..., 0]


def solve_repaired(matrices: Array, vectors: Array, step: Array, plus: Numbers = None) -> Array:
    """M̂⁻¹ v with M̂ = M + plus·I repaired; its Cholesky factor also solves. ``plus`` is (R,)."""
    kernel = _kernel_for(matrices)
    if kernel is not None:
        matrices, vectors, plus, step = _alike(matrices, vectors, plus, step)
        found = kernel.solved(_flat(matrices, 2), plus, step, _flat(vectors, 1))
        return found.reshape(vectors.shape)
    repaired, factors = _repair(matrices, step, plus)
    if isinstance(matrices, np.ndarray):
        return solve_vector(repaired, vectors)
    import torch

    lead = np.broadcast_shapes(factors.shape[:-2], vectors.shape[:-1])
    factors = factors.expand(*lead, *factors.shape[-2:])
    return torch.cholesky_solve(vectors[..., None], factors)[..., 0]


def raised_eigenvalues(matrices: Array, floor: object) -> tuple[Array, Array]:
    """Eigenvalues, raised to at least ``floor`` (...), and eigenvectors, in float64."""
    xp = namespace(matrices)
    values, axes = xp.linalg.eigh(xp.astype(matrices, xp.float64, copy=False))
    return at_least(values, per_run(floor, axes, 1)), axes


def solve_along(values: Array, axes: Array, vectors: Array) -> Array:
    """M⁻¹ v, where M has these eigenvalues (..., p) and axes (..., p, p)."""
    xp = namespace(vectors)
    along = axes.mT @ xp.astype(vectors, xp.float64, copy=False)[..., None]
    return xp.astype((axes @ (along / values[..., None]))[..., 0], vectors.dtype, copy=False)


def inverse_repaired(matrices: Array, step: Array, plus: Numbers = None) -> Array:
    """M̂⁻¹ with M̂ = M + plus·I repaired; ``plus`` is (R,)."""
    kernel = _kernel_for(matrices)
    if kernel is not None:
        matrices, _, plus, step = _alike(matrices, matrices[..., 0], plus, step)
        return kernel.inverted(_flat(matrices, 2), plus, step).reshape(matrices.shape)
    repaired, factors = _repair(matrices, step, plus)
    if isinstance(matrices, np.ndarray):
        return np.linalg.inv(repaired)
    import torch

    # torch's own inverse of a factor handles the matrices one by one.
    eye = identity(factors.shape[-1], factors)
    half = torch.linalg.solve_triangular(factors, eye, upper=False)
    return half.mT @ half


def _kernel_for(matrices: Array) -> Any:
    """The kernels for small matrices on a GPU, or None."""
    if not getattr(matrices, "is_cuda", False):
        return None
    from discreet.arrays import triton_kernels

    return triton_kernels if triton_kernels.suits(matrices) else None


def _flat(array: Array, kept: int) -> Array:
    """All leading axes as one."""
    return array.reshape(-1, *array.shape[-kept:])


def _alike(
    matrices: Array, vectors: Array, plus: Numbers, step: Array
) -> tuple[Array, Array, Array, Array]:
    """Matrices and vectors with the leading axes of all of them, and flat ``plus`` and steps."""
    plus = as_like(per_run(0.0 if plus is None else plus, matrices, 1), matrices)
    step = as_like(step, matrices)
    lead = np.broadcast_shapes(matrices.shape[:-2], vectors.shape[:-1], plus.shape, step.shape)
    p = matrices.shape[-1]
    flat = (each.expand(lead).reshape(-1) for each in (plus, step))
    return matrices.expand(*lead, p, p), vectors.expand(*lead, p), *flat


def _repair(matrices: Array, step: Array, plus: Numbers) -> tuple[Array, Array]:
    """M + plus·I and its Cholesky factor, shifted by step·2^j·I for the smallest j ≥ 0.

    Matrices that are positive definite stay as they are. Every noisy Gram is repaired here: the
    repair uses released numbers and public steps, so it costs no privacy, and it never raises.
    ``step`` must be positive and broadcast to (...).
    """
    xp = namespace(matrices)
    p = matrices.shape[-1]
    if plus is not None:
        matrices = matrices + per_run(plus, matrices, 3) * identity(p, matrices)
    flat = matrices.reshape(-1, p, p)
    factors, exists = cholesky_or_none(flat)
    failing = xp.nonzero(~exists)[0]
    if failing.shape[0] > 0:
        steps = as_like(step, matrices) + 0.0 * matrices[..., 0, 0]
        steps = steps.reshape(-1)[..., None, None] * identity(p, matrices)
        flat = xp.asarray(flat, copy=True)
        shift = steps[failing]
        for _ in range(2100):  # enough doublings from the smallest float to the largest
            shifted = matrices.reshape(-1, p, p)[failing] + shift
            flat[failing] = shifted
            factors[failing], exists = cholesky_or_none(shifted)
            failing, shift = failing[~exists], 2.0 * shift[~exists]
            if failing.shape[0] == 0:
                break
    return flat.reshape(matrices.shape), factors.reshape(matrices.shape)


def cholesky_or_none(matrices: Array) -> tuple[Array, Array]:
    """Cholesky factors of (N, p, p) and an (N,) mask of those that exist."""
    if not isinstance(matrices, np.ndarray):
        import torch

        factors, info = torch.linalg.cholesky_ex(matrices)
        return factors, info == 0
    if len(matrices) > MANY and matrices.shape[-1] <= SMALL:
        return _cholesky_side_by_side(matrices)
    factors, exists = np.zeros_like(matrices), np.zeros(len(matrices), dtype=bool)
    _cholesky_of_each(matrices, factors, exists)
    return factors, exists


MANY = 32
"""Matrices from which on a search for indefinite ones before factoring is faster."""
SMALL = 16
"""Rows up to which many matrices are factored side by side."""


def _cholesky_side_by_side(matrices: NumpyArray) -> tuple[NumpyArray, NumpyArray]:
    """Column by column for all matrices at once: one that is indefinite does not stop the rest."""
    left = np.array(np.moveaxis(matrices, 0, -1), order="C")  # (p, p, N), a copy in any layout
    factors, exists = np.zeros_like(left), np.ones(len(matrices), dtype=bool)
    with np.errstate(all="ignore"):
        for k in range(len(left)):
            exists &= left[k, k] > 0.0
            column = np.divide(left[k:, k], np.sqrt(left[k, k]), out=factors[k:, k])
            left[k + 1 :, k + 1 :] -= column[1:, None] * column[1:]
    return np.moveaxis(factors, -1, 0), exists & np.isfinite(factors[-1, -1])


def _cholesky_of_each(matrices: NumpyArray, factors: NumpyArray, exists: NumpyArray) -> None:
    """One call for all; NumPy raises if any fails, so leave out what cannot be factored."""
    try:
        factors[:] = np.linalg.cholesky(matrices)
        exists[:] = True
    except np.linalg.LinAlgError:
        if len(matrices) > MANY:
            definite = np.linalg.eigvalsh(matrices)[:, 0] > 0.0
            if not definite.all():
                some = factors[definite], exists[definite]
                _cholesky_of_each(matrices[definite], *some)
                factors[definite], exists[definite] = some
                return
        if len(matrices) > 1:  # halve, until each failure is alone
            half = len(matrices) // 2
            _cholesky_of_each(matrices[:half], factors[:half], exists[:half])
            _cholesky_of_each(matrices[half:], factors[half:], exists[half:])
