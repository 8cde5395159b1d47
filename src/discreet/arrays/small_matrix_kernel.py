"""Small symmetric systems on a GPU: each program keeps one matrix in its registers.

Batched library routines make a launch for each block of columns, and the caller must wait to learn
which matrices were indefinite. Here one launch repairs and solves all of them. The rule is that of
``linear_algebra.py``.
"""

from __future__ import annotations

from typing import Any

from discreet.arrays.triton_kernels import jit, pivot_of, tl, triton
from discreet.types import Array

LARGEST = 31
"""For larger matrices the library is faster."""
_DOUBLINGS = 300
"""Of the shift, enough from the smallest float to the largest in single precision."""


def suits(matrices: Array) -> bool:
    """Whether the kernels take these matrices (..., p, p)."""
    few = triton is not None and matrices.shape[-1] <= LARGEST
    return bool(few and matrices.is_cuda and matrices.element_size() == 4)


def inverted(matrices: Array, step: Array) -> Array:
    """Inverses of (N, p, p), repaired by step·2^j·I, step (N,)."""
    return _call(_inverse, matrices, step, matrices.new_empty(matrices.shape))


def solved(matrices: Array, step: Array, vectors: Array) -> Array:
    """M̂⁻¹ v for (N, p, p) and (N, p), with M̂ repaired by step·2^j·I, step (N,)."""
    return _call(_solution, matrices, step, vectors.contiguous().clone())


def _call(kernel: Any, matrices: Array, step: Array, result: Array) -> Array:
    p = matrices.shape[-1]
    side = max(16, triton.next_power_of_2(p + 1))
    given = (matrices.contiguous(), step.contiguous(), result)
    kernel[(matrices.shape[0],)](*given, p, _DOUBLINGS, side, num_warps=side // 16)
    return result


@jit("p", "doublings")
def _inverse(matrices, steps, inverses, p, doublings, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sweeps every row and column; all pivots are positive where the matrix is definite."""
    place = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, side)[:, None]
    j = tl.arange(0, side)[None, :]
    cells = place * p * p + i * p + j
    inside = (i < p) & (j < p)
    shift, more, left = 0.0, tl.load(steps + place), doublings
    matrix = tl.zeros((side, side), tl.float32)
    while left > 0:
        matrix = tl.load(matrices + cells, mask=inside, other=0.0) + tl.where(i == j, shift, 0.0)
        smallest = float("inf")
        for k in range(p):
            row, column, pivot = pivot_of(matrix, k, side)
            smallest = tl.minimum(smallest, pivot)
            scaled = row / pivot
            swept = tl.where(j == k, column / pivot, matrix - column * scaled)
            swept = tl.where(i == k, scaled, swept)
            matrix = tl.where((i == k) & (j == k), -1.0 / pivot, swept)
        left = tl.where(smallest > 0.0, 0, left - 1)
        shift, more = more, 2.0 * more
    tl.store(inverses + cells, -matrix, mask=inside)


@jit("p", "doublings")
def _solution(matrices, steps, vectors, p, doublings, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """Elimination, with the vector as the last column of the matrix."""
    place = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, side)[:, None]
    j = tl.arange(0, side)[None, :]
    cells = place * p * p + i * p + j
    inside = (i < p) & (j < p)
    entry = tl.arange(0, side)
    vector = tl.load(vectors + place * p + entry, mask=entry < p, other=0.0)[:, None]
    shift, more, left = 0.0, tl.load(steps + place), doublings
    matrix = tl.zeros((side, side), tl.float32)
    while left > 0:
        matrix = tl.load(matrices + cells, mask=inside, other=0.0) + tl.where(i == j, shift, 0.0)
        matrix = tl.where(j == side - 1, vector, matrix)
        smallest = float("inf")
        for k in range(p):
            row, column, pivot = pivot_of(matrix, k, side)
            smallest = tl.minimum(smallest, pivot)
            matrix -= tl.where(i == k, 0.0, column / pivot) * row
        left = tl.where(smallest > 0.0, 0, left - 1)
        shift, more = more, 2.0 * more
    diagonal = tl.sum(tl.where(i == j, matrix, 0.0), axis=1)
    solution = tl.sum(tl.where(j == side - 1, matrix, 0.0), axis=1)
    tl.store(vectors + place * p + entry, solution / diagonal, mask=entry < p)
