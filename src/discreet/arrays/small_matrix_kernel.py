"""Small symmetric systems on a GPU: each program keeps one matrix in its registers.

Batched library routines make a launch for each block of columns, and the caller must wait to learn
which matrices were indefinite. Here one launch repairs and solves all of them. The rule is that of
``linear_algebra.py``.
"""

from __future__ import annotations

from typing import Any

from discreet.arrays.triton_kernels import definite_solution, jit, swept, tl, triton
from discreet.types import Array

LARGEST = 128
"""The largest matrix that fits into the registers of a program."""
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
    side = max(16, triton.next_power_of_2(p))
    given = (matrices.contiguous(), step.contiguous(), result)
    kernel[(matrices.shape[0],)](*given, p, _DOUBLINGS, side, num_warps=max(1, side // 32))
    return result


@jit("p", "doublings")
def _inverse(matrices, steps, inverses, p, doublings, side: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, side)[:, None]
    j = tl.arange(0, side)[None, :]
    shift, more, left = 0.0, tl.load(steps + place), doublings
    inverse = tl.zeros((side, side), tl.float32)
    while left > 0:
        matrix = _shifted(matrices, place, shift, p, side)
        inverse, smallest = swept(matrix, (p + 15) // 16, side)
        left = tl.where(smallest > 0.0, 0, left - 1)
        shift, more = more, 2.0 * more
    tl.store(inverses + place * p * p + i * p + j, -inverse, mask=(i < p) & (j < p))


@jit("p", "doublings")
def _solution(matrices, steps, vectors, p, doublings, side: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0).to(tl.int64)
    entry = tl.arange(0, side)
    vector = tl.load(vectors + place * p + entry, mask=entry < p, other=0.0)
    shift, more, left = 0.0, tl.load(steps + place), doublings
    solution = tl.zeros((side,), tl.float32)
    while left > 0:
        matrix = _shifted(matrices, place, shift, p, side)
        blocks = (p + 15) // 16
        solution, smallest = definite_solution(matrix, vector, float("-inf"), blocks, side)
        left = tl.where(smallest > 0.0, 0, left - 1)
        shift, more = more, 2.0 * more
    tl.store(vectors + place * p + entry, solution, mask=entry < p)


@jit("p")
def _shifted(matrices, place, shift, p, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """A matrix + shift·I, followed by the identity up to its side."""
    i = tl.arange(0, side)[:, None]
    j = tl.arange(0, side)[None, :]
    cells = matrices + place * p * p + i * p + j
    matrix = tl.load(cells, mask=(i < p) & (j < p), other=0.0)
    return matrix + tl.where(i == j, tl.where(i < p, shift, 1.0), 0.0)
