"""The few array functions that the Array API lacks, for NumPy and torch alike.

Everything above this file is written once, on arrays with any leading axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.types import Array


def namespace(array: Array) -> Any:
    """NumPy itself for NumPy arrays, otherwise the compatible namespace."""
    if isinstance(array, (np.ndarray, np.generic, float, int)):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(array)


def lift(parameter: Any, like: Array, axes: int = 2) -> Any:
    """A parameter of shape (R,) as (R, 1, 1), ready to meet (..., R, n, A); floats stay floats."""
    if isinstance(parameter, (float, int)):
        return parameter
    array = as_like(parameter, like)
    return array[(..., *([None] * axes))]


def as_like(values: Any, like: Array) -> Array:
    """Numbers as an array of the same library, floating type and device as ``like``."""
    if isinstance(like, np.ndarray):
        return np.asarray(values, dtype=like.dtype)
    xp = namespace(like)
    if isinstance(values, type(like)):
        return xp.astype(values, like.dtype)
    return xp.asarray(np.asarray(values), dtype=like.dtype, device=like.device)


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """A NumPy copy or view, from any device."""
    if isinstance(array, np.ndarray):
        return array
    return np.asarray(array.detach().cpu().numpy() if hasattr(array, "detach") else array)


def at_most(array: Array, bound: float) -> Array:
    """min(array, bound), elementwise; NumPy's own clip costs ten times as much on a row."""
    return np.minimum(array, bound) if isinstance(array, np.ndarray) else array.clip(max=bound)


def at_least(array: Array, bound: float) -> Array:
    """max(array, bound), elementwise."""
    return np.maximum(array, bound) if isinstance(array, np.ndarray) else array.clip(min=bound)


def row_sum(array: Array) -> Array:
    """Sum over the last axis, kept: (..., A) -> (..., 1)."""
    if isinstance(array, np.ndarray):
        return np.add.reduce(array, axis=-1, keepdims=True)
    return array.sum(-1, keepdim=True)


def row_min(array: Array) -> Array:
    """Minimum over the last axis, kept: (..., A) -> (..., 1)."""
    if isinstance(array, np.ndarray):
        return np.minimum.reduce(array, axis=-1, keepdims=True)
    return array.amin(-1, keepdim=True)


def softmax(logits: Array) -> Array:
    """Softmax over the last axis; adding a constant to a row changes nothing."""
    if not isinstance(logits, np.ndarray):
        return logits.softmax(-1)
    weights = np.exp(logits - np.maximum.reduce(logits, axis=-1, keepdims=True))
    return weights / np.add.reduce(weights, axis=-1, keepdims=True)


def sigmoid(scores: Array) -> Array:
    """1 / (1 + exp(−s)), without overflow for any s."""
    xp = namespace(scores)
    shrunk = xp.exp(-xp.abs(scores))
    return xp.where(scores >= 0, 1.0 / (1.0 + shrunk), shrunk / (1.0 + shrunk))


def triangle(p: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Row and column of each entry of a packed upper triangle of size p(p+1)/2."""
    rows, columns = np.triu_indices(p)
    return rows, columns


def unpack(packed: Array, p: int) -> Array:
    """Packed upper triangle (..., p(p+1)/2) -> symmetric (..., p, p)."""
    position = np.zeros((p, p), dtype=np.int64)
    rows, columns = triangle(p)
    position[rows, columns] = position[columns, rows] = np.arange(rows.size)
    full = packed[..., position.reshape(-1)]
    return full.reshape(*packed.shape[:-1], p, p)


def identity(p: int, like: Array) -> Array:
    return as_like(np.eye(p), like)


def solve_vector(matrices: Array, vectors: Array) -> Array:
    """M⁻¹ v for (..., p, p) and (..., p)."""
    xp = namespace(matrices)
    return xp.linalg.solve(matrices, vectors[..., None])[..., 0]


def cholesky_or_none(matrices: Array) -> tuple[Array, Array]:
    """Cholesky factors of (..., p, p) and a (...) mask of those that exist."""
    if not isinstance(matrices, np.ndarray):
        import torch

        factors, info = torch.linalg.cholesky_ex(matrices)
        return factors, info == 0
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    factors = np.zeros_like(flat)
    exists = np.zeros(flat.shape[0], dtype=bool)
    _cholesky_of_each(flat, factors, exists)
    return factors.reshape(matrices.shape), exists.reshape(matrices.shape[:-2])


def _cholesky_of_each(flat: Any, factors: Any, exists: Any) -> None:
    """One call for all; NumPy raises if any fails, so halve until the culprits are alone."""
    try:
        factors[:] = np.linalg.cholesky(flat)
        exists[:] = True
    except np.linalg.LinAlgError:
        if len(flat) > 1:
            half = len(flat) // 2
            _cholesky_of_each(flat[:half], factors[:half], exists[:half])
            _cholesky_of_each(flat[half:], factors[half:], exists[half:])


def positive_definite(matrices: Array, step: Array) -> Array:
    """The matrices, shifted where needed by step·2^j·I for the smallest j ≥ 0 that works.

    The one repair of a noisy Gram: a function of released numbers and public steps, so it
    costs no privacy, and it never raises. ``step`` (...) must be positive.
    """
    xp = namespace(matrices)
    eye = identity(matrices.shape[-1], matrices)
    step = as_like(step, matrices) + xp.zeros(
        matrices.shape[:-2], dtype=matrices.dtype, **_device(matrices)
    )
    repaired = matrices
    for _ in range(1100):  # doubling a positive float must pass every finite matrix
        _, exists = cholesky_or_none(repaired)
        if bool(xp.all(exists)):
            break
        repaired = xp.where(
            exists[..., None, None], repaired, matrices + step[..., None, None] * eye
        )
        step = xp.where(exists, step, 2.0 * step)
    return repaired


def _device(like: Array) -> dict[str, Any]:
    return {} if isinstance(like, np.ndarray) else {"device": like.device}
