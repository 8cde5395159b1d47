"""Small symmetric matrices on a GPU: each program keeps one in its registers.

Batched library routines make a launch for each block of columns, and the caller must wait to learn
which matrices were indefinite. Here one launch repairs and solves all of them. The rule is that of
``linear_algebra.py``.
"""

from __future__ import annotations

import math
from typing import Any

from discreet.arrays.triton_kernels import definite_solution, jit, swept, tile, tl, triton
from discreet.types import Array

LARGEST = 128
"""The largest matrix that fits into the registers of a program."""
_WARPS = {16: 1, 32: 1, 64: 2, 128: 4}
"""Of a program, by the side of its matrix."""
_PAIRS = 256
"""Products that a program forms at once."""
_DOUBLINGS = 300
"""Of the shift, enough from the smallest float to the largest in single precision."""


def suits(matrices: Array) -> bool:
    """Return whether the kernels take these matrices (..., p, p)."""
    few = triton is not None and matrices.shape[-1] <= LARGEST
    return bool(few and matrices.is_cuda and matrices.element_size() == 4)


def inverted(matrices: Array, plus: Array, step: Array) -> Array:
    """Inverses of (N, p, p) + plus·I, repaired by step·2^j·I; plus and step are (N,)."""
    return _call(_inverse, matrices, plus, step, matrices.new_empty(matrices.shape))


def solved(matrices: Array, plus: Array, step: Array, vectors: Array) -> Array:
    """M̂⁻¹ v for (N, p, p) and (N, p), with M̂ = M + plus·I repaired by step·2^j·I."""
    return _call(_solution, matrices, plus, step, vectors.contiguous().clone())


def packed_products(features: Array, rows: Array, columns: Array) -> Array:
    """x_i·x_j for (..., n, p) and the pairs (i, j) of these rows and columns of a triangle."""
    *lead, p = features.shape
    pairs = len(rows)
    packed = features.new_empty((*lead, pairs))
    given = (features.contiguous(), rows, columns, packed)
    _pack[(math.prod(lead),)](*given, p, pairs, _PAIRS, num_warps=4)
    return packed


@jit("p", "pairs")
def _pack(features, rows, columns, packed, p, pairs, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """One row."""
    n = tl.program_id(0).to(tl.int64)
    for start in range(0, pairs, block):
        at = start + tl.arange(0, block)
        i = tl.load(rows + at, mask=at < pairs, other=0)
        j = tl.load(columns + at, mask=at < pairs, other=0)
        product = tl.load(features + n * p + i) * tl.load(features + n * p + j)
        tl.store(packed + n * pairs + at, product, mask=at < pairs)


def _call(kernel: Any, matrices: Array, plus: Array, step: Array, result: Array) -> Array:
    p = matrices.shape[-1]
    alone, side = tile(p)
    given = (matrices.contiguous(), plus.contiguous(), step.contiguous(), result)
    numbers = (p, alone, _DOUBLINGS, side)
    kernel[(matrices.shape[0],)](*given, *numbers, num_warps=_WARPS[side])
    return result


@jit("p", "alone", "doublings")
def _inverse(matrices, plus, steps, inverses, p, alone, doublings, side: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0).to(tl.int64)
    always = tl.load(plus + place)
    shift, more, left = 0.0, tl.load(steps + place), doublings
    head, border = 0.0, tl.zeros((side,), tl.float32)
    inverse = tl.zeros((side, side), tl.float32)
    while left > 0:
        head, border, matrix = _shifted(matrices, place, always + shift, p, alone, side)
        blocks = (p - alone + 15) // 16
        head, border, inverse, smallest = swept(head, border, matrix, blocks, side)
        left = tl.where(smallest > 0.0, 0, left - 1)
        shift, more = more, 2.0 * more
    i = alone + tl.arange(0, side)
    inverses += place * p * p
    tl.store(inverses, -head, mask=alone > 0)
    tl.store(inverses + i, -border, mask=i < p * alone)
    tl.store(inverses + i * p, -border, mask=i < p * alone)
    there = (i < p)[:, None] & (i < p)[None, :]
    tl.store(inverses + i[:, None] * p + i[None, :], -inverse, mask=there)


@jit("p", "alone", "doublings")
def _solution(matrices, plus, steps, vectors, p, alone, doublings, side: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0).to(tl.int64)
    always = tl.load(plus + place)
    i = alone + tl.arange(0, side)
    vectors += place * p
    first = tl.load(vectors, mask=alone > 0, other=0.0)
    vector = tl.load(vectors + i, mask=i < p, other=0.0)
    shift, more, left = 0.0, tl.load(steps + place), doublings
    top, solution = 0.0, tl.zeros((side,), tl.float32)
    while left > 0:
        head, border, matrix = _shifted(matrices, place, always + shift, p, alone, side)
        blocks = (p - alone + 15) // 16
        top, solution, smallest = definite_solution(
            head, border, matrix, first, vector, float("-inf"), blocks, side
        )
        left = tl.where(smallest > 0.0, 0, left - 1)
        shift, more = more, 2.0 * more
    tl.store(vectors, top, mask=alone > 0)
    tl.store(vectors + i, solution, mask=i < p)


@jit("p", "alone")
def _shifted(matrices, place, shift, p, alone, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """A matrix + shift·I, as head, border and the rest, followed by the identity up to its side."""
    matrices += place * p * p
    i = alone + tl.arange(0, side)
    head = tl.load(matrices, mask=alone > 0, other=1.0) + tl.where(alone > 0, shift, 0.0)
    border = tl.load(matrices + i, mask=i < p * alone, other=0.0)
    i, j = i[:, None], i[None, :]
    matrix = tl.load(matrices + i * p + j, mask=(i < p) & (j < p), other=0.0)
    return head, border, matrix + tl.where(i == j, tl.where(i < p, shift, 1.0), 0.0)
