"""Array functions that the Array API lacks, for both NumPy and torch.

Everything above this file is written once, on arrays with any leading axes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from discreet.types import Array, NumpyArray


def namespace(array: Array) -> Any:
    """Return NumPy itself for NumPy arrays and numbers, otherwise the compatible namespace.

    Objects that stand for an array have ``__array_namespace__``, as the Array API defines it.
    """
    if isinstance(array, (np.ndarray, np.generic, float, int)):
        return np
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    import array_api_compat

    return array_api_compat.array_namespace(array)


def per_run(parameter: object, like: Array, axes: int = 2) -> Any:
    """A parameter of shape (R,) as (R, 1, 1), to broadcast with (..., R, n, A); floats stay."""
    if isinstance(parameter, (float, int)):
        return parameter
    array = as_like(parameter, like)
    return array[(..., *([None] * axes))]


def as_like(values: object, like: Array) -> Array:
    """Numbers as an array of the same library, floating type and device as ``like``."""
    if isinstance(like, np.ndarray) or namespace(like) is np:
        return np.asarray(values, dtype=like.dtype)
    import torch

    if isinstance(values, torch.Tensor):
        return values.to(like.dtype)
    array = np.asarray(values, dtype=np.float64)
    if array.size > _SMALL:
        return _uploaded(array, like.dtype, like.device)
    return _uploaded_once(array.tobytes(), array.shape, like.dtype, like.device)


_SMALL = 2**12
"""Arrays with at most this many numbers stay on the device, since they are used again."""


@lru_cache(maxsize=1024)
def _uploaded_once(content: bytes, shape: tuple[int, ...], dtype: object, device: object) -> Array:
    """Parameters and noise of a stack are used again and again, and each copy waits for the GPU."""
    return _uploaded(np.frombuffer(content).reshape(shape), dtype, device)


def _uploaded(array: NumpyArray, dtype: object, device: object) -> Array:
    import torch

    # Without waiting for the device: what is not in pinned memory is copied before this returns.
    return torch.from_numpy(np.array(array, order="C")).to(dtype).to(device, non_blocking=True)


def to_numpy(array: Array) -> NumpyArray:
    """A NumPy copy or view, from any device."""
    if isinstance(array, np.ndarray):
        return array
    return np.asarray(array.detach().cpu().numpy() if hasattr(array, "detach") else array)


def padded(array: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Zeros behind an array along these axes, until they are as long as in ``shape``."""
    for axis in axes if array.shape != shape else ():
        missing = shape[axis] - array.shape[axis]
        if missing > 0:
            xp = namespace(array)
            some = xp.moveaxis(array, axis, 0)[:1]
            zeros = xp.concat([0.0 * some] * missing, axis=0)
            array = xp.concat([array, xp.moveaxis(zeros, 0, axis)], axis=axis)
    return array


def at_most(array: Array, bound: float, out: Array | None = None) -> Array:
    """min(array, bound), elementwise; NumPy's own clip costs ten times as much on a row.

    ``out`` is the array itself, to be changed in place.
    """
    if isinstance(array, np.ndarray):
        return np.minimum(array, bound, out=out)
    if isinstance(array, np.floating):  # a call of NumPy costs more than to compare two numbers
        return type(array)(bound) if array > bound else array
    return array.clip(max=bound) if out is None else array.clip_(max=bound)


def at_least(array: Array, bound: float, out: Array | None = None) -> Array:
    """max(array, bound), elementwise; ``out`` as in ``at_most``."""
    if isinstance(array, np.ndarray):
        return np.maximum(array, bound, out=out)
    if isinstance(array, np.floating):
        return type(array)(bound) if array < bound else array
    return array.clip(min=bound) if out is None else array.clip_(min=bound)


def rows_contiguous(array: Array) -> Array:
    """The same numbers (..., n, A) with those of a column side by side in memory."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array.mT).mT
    return array.mT.contiguous().mT


def surely(mask: Array) -> bool:
    """Return whether all are true; False on a GPU, where the answer has to be awaited."""
    return not getattr(mask, "is_cuda", False) and bool(mask.all())


def column_sums(array: Array) -> Array:
    """Sum over the rows: (..., n, A) -> (..., A)."""
    if (
        isinstance(array, np.ndarray)
        and array.flags.c_contiguous
        and array.size > array.shape[-1] > 1
    ):
        # Row by row as sum(-2) adds, whose loop over a few columns takes ten times as long.
        return np.add.accumulate(array, axis=-2)[..., -1, :]
    return array.sum(-2)


def row_sum(array: Array) -> Array:
    """Sum over the last axis, kept: (..., A) -> (..., 1)."""
    if isinstance(array, np.ndarray):
        return _reduce(np.add, array)
    return array.sum(-1, keepdim=True)


def row_squares(array: Array) -> Array:
    """Squared norm over the last axis, kept: (..., p) -> (..., 1)."""
    if isinstance(array, np.ndarray):
        return _reduce(np.add, array * array)
    return array.square().sum(-1, keepdim=True)


def plus_product(start: Array, left: Array, right: Array, sign: float = 1.0) -> Array:
    """start ± left·right, elementwise: one pass over memory where the library has one."""
    if isinstance(start, np.ndarray):
        product = left * right
        return start + product if sign == 1.0 else start + sign * product
    return start.addcmul(left, right, value=sign)


def row_min(array: Array) -> Array:
    """Minimum over the last axis, kept: (..., A) -> (..., 1)."""
    if isinstance(array, np.ndarray):
        return _reduce(np.minimum, array)
    return array.amin(-1, keepdim=True)


def _reduce(join: np.ufunc, array: NumpyArray) -> NumpyArray:
    """Over the last axis; column by column where the columns are few and long."""
    columns = array.shape[-1]
    if columns > 64 or array.size < 1024 * columns:
        return np.asarray(join.reduce(array, axis=-1, keepdims=True))
    total = array[..., 0]
    for column in range(1, columns):
        total = join(total, array[..., column])
    return total[..., None]


def or_infinite(kept: Array, values: Array) -> Array:
    """``values`` where they are ``kept``, ∞ elsewhere."""
    if not isinstance(values, np.ndarray):
        return namespace(values).where(kept, values, np.inf)
    # np.where branches on every number: with a mask that looks random it is five times as slow.
    with np.errstate(divide="ignore"):
        made = 1.0 / kept.astype(values.dtype)  # 1 or ∞
    made -= 1.0
    made += values
    return made


def softmax(logits: Array) -> Array:
    """Softmax over the last axis; adding a constant to a row changes nothing."""
    if isinstance(logits, np.ndarray):
        weights = logits - _reduce(np.maximum, logits)
        np.exp(weights, out=weights)
    elif logits.is_cuda:
        return logits.softmax(-1)
    else:  # torch's own is slow on the CPU when the rows, not the actions, are contiguous
        weights = (logits - logits.amax(-1, keepdim=True)).exp_()
    weights /= row_sum(weights)
    return weights


def sigmoid(scores: Array) -> Array:
    """1 / (1 + exp(−s)); exp may overflow to infinity, which gives the correct 0."""
    if not isinstance(scores, np.ndarray):
        return scores.sigmoid()
    made = np.negative(scores)  # then in place: a pass over a fresh array costs twice as much
    with np.errstate(over="ignore"):
        np.exp(made, out=made)
    made += 1.0
    np.divide(1.0, made, out=made)
    return made


def apply_rows(features: Array, weights: Array) -> Array:
    """x·θ_a for every row and action: (..., n, p) and (..., A, p) -> (..., n, A).

    Runs that share their rows become one product (S, R·A, p) @ (S, p, n). The result is stored
    with n contiguous, so that reductions over the few actions run along the many rows.
    """
    if not share_rows(features, weights):
        return (weights @ features.mT).mT
    shared = features[..., 0, :, :] if features.ndim == weights.ndim else features
    R, A, p = weights.shape[-3:]
    folded = _product(weights.reshape(*weights.shape[:-3], R * A, p), shared.mT)
    return folded.reshape(*folded.shape[:-2], R, A, features.shape[-2]).mT


def weighted_sums(weights: Array, values: Array) -> Array:
    """Σ_n w_na·v_n: (..., n, A) and (..., n, q) -> (..., A, q), with shared rows folded."""
    if not share_rows(values, weights):
        return weights.mT @ values
    shared = values[..., 0, :, :] if values.ndim == weights.ndim else values
    R, n, A = weights.shape[-3:]
    folded = _product(weights.mT.reshape(*weights.shape[:-3], R * A, n), shared)
    return folded.reshape(*folded.shape[:-2], R, A, values.shape[-1])


def _product(left: Array, right: Array) -> Array:
    """left @ right; torch's @ adds six calls around a batched product."""
    plain = isinstance(left, np.ndarray) or left.ndim != 3 or right.ndim != 3
    return left @ right if plain else left.bmm(right)


_CACHED = 2**17
"""Numbers that a step over some rows may hold: half a megabyte in single precision."""


def row_blocks(rows: int, held: int, like: Array) -> list[slice]:
    """Rows a few at a time, ``held`` numbers for each, so that a core's own cache holds them.

    On a GPU, where every call is a launch, all rows at once.
    """
    if getattr(like, "is_cuda", False):
        return [slice(0, rows)]
    # An odd multiple of 16: rows that lie a power of two apart evict each other from a cache.
    size = 16 * (_CACHED // max(1, held) // 16 | 1)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def share_rows(rows: Array, runs: Array) -> bool:
    """Return whether several runs (axis −3) share the same rows."""
    if runs.ndim < 3 or runs.shape[-3] == 1:
        return False
    alone = rows.ndim == 2 and runs.ndim == 3
    return bool(alone or (rows.ndim == runs.ndim and rows.shape[-3] == 1))
