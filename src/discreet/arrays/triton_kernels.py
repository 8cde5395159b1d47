"""Triton, where it is installed: shared parts of our kernels, and small symmetric matrices.

Each program keeps one matrix in its registers. Batched library routines make a launch for each
block of columns, and the caller must wait to learn which matrices were indefinite. Here one launch
repairs and solves all of them. The rule is that of ``linear_algebra.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from discreet.types import Array

try:
    import triton
    import triton.language as tl
except ImportError:  # a torch without CUDA does not include triton
    triton = tl = None

__all__ = ["LARGEST", "definite_solution", "inverted", "jit", "packed_products", "solved", "suits"]
__all__ += ["swept", "tile", "tl", "triton"]


def tile(p: int) -> tuple[int, int]:
    """The number of separate features, one or none, and the side of a tile for the others.

    Sides are powers of two. Data with 16, 32 or 64 columns have one feature more, the constant:
    next to a tile of their own size it costs little, inside one of twice the size three quarters
    would be empty.
    """
    alone = int(p - 1 >= 16 and (p - 1).bit_count() == 1)
    return alone, max(16, triton.next_power_of_2(p - alone))


def jit(*counts: str, views: Sequence[str] = ()) -> Callable[[Any], Any]:
    """A kernel that is compiled when it is first called, once for all values of ``counts``.

    ``views`` are arrays that may begin inside another one, so at any address.
    """

    def made(function: object) -> Any:
        if triton is None:
            return function
        names = {"do_not_specialize": [*counts], "do_not_specialize_on_alignment": [*views]}
        return triton.jit(function, **names)

    return made


@jit("blocks")
def definite_solution(  # type: ignore[no-untyped-def]
    head, border, matrix, first, vector, floor, blocks, side: tl.constexpr
):
    """M⁻¹ v and the smallest pivot of a matrix in registers; pivots are at least ``floor``.

    At a pivot that is not positive it stops: then the solution means nothing.

    M has a first row of its own: ``head`` and ``border`` next to ``matrix``, as v has ``first``
    next to ``vector``. Cholesky's factor, sixteen columns at a time, takes the place of the matrix;
    of the corners on its diagonal it holds the inverses. The first ``blocks`` sixteens count.
    """
    head = tl.maximum(head, floor)
    scale = 1.0 / tl.maximum(head, 1e-37)
    matrix -= border[:, None] * (border * scale)[None, :]
    vector -= border * (first * scale)
    vector, smallest = _solution_without_head(matrix, vector, floor, blocks, head, side)
    first = (first - tl.sum(border * vector, axis=0)) * scale
    return first, vector, smallest


@jit("blocks")
def _solution_without_head(matrix, vector, floor, blocks, smallest, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """M⁻¹ v and the smallest pivot, once the first row is eliminated."""
    if side == 16:
        corner, least = _inverse_factor(matrix, floor)
        smallest = tl.minimum(smallest, least)
        vector = tl.sum(corner * vector[None, :], axis=1)
        vector = tl.sum(corner * vector[:, None], axis=0)
    else:
        parts: tl.constexpr = side // 16
        block_of = tl.arange(0, side) // 16
        part = tl.arange(0, parts)
        block = 0
        while (block < blocks) & (smallest > 0.0):
            columns = _columns(matrix, block, side)
            corner, least = _inverse_factor(_rows(columns, block, side), floor)
            smallest = tl.minimum(smallest, least)
            below = tl.where((block_of > block)[:, None], columns, 0.0)
            below = tl.dot(below, tl.trans(corner), input_precision="tf32x3")
            matrix -= tl.dot(below, tl.trans(below), input_precision="tf32x3")
            own = tl.sum(corner * _entries(vector, block, side)[None, :], axis=1)
            vector -= tl.sum(below * own[None, :], axis=1)
            cut = tl.where((part == block)[:, None], own[None, :], tl.reshape(vector, (parts, 16)))
            vector = tl.reshape(cut, (side,))
            cut = tl.reshape(below, (parts, 16, 16))
            cut = tl.where((part == block)[:, None, None], corner[None, :, :], cut)
            factor = tl.reshape(cut, (side, 1, 16))
            cut = tl.reshape(matrix, (side, parts, 16))
            cut = tl.where((part == block)[None, :, None], factor, cut)
            matrix = tl.reshape(cut, (side, side))
            block += 1
        while (block > 0) & (smallest > 0.0):
            block -= 1
            columns = _columns(matrix, block, side)
            corner = _rows(columns, block, side)
            below = tl.where((block_of > block)[:, None], columns, 0.0)
            own = _entries(vector, block, side) - tl.sum(below * vector[:, None], axis=0)
            own = tl.sum(corner * own[:, None], axis=0)
            cut = tl.where((part == block)[:, None], own[None, :], tl.reshape(vector, (parts, 16)))
            vector = tl.reshape(cut, (side,))
    return vector, smallest


@jit("block")
def _columns(matrix, block, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sixteen columns of a matrix: (side, 16)."""
    here = tl.arange(0, side // 16)[None, :, None] == block
    cut = tl.reshape(matrix, (side, side // 16, 16))
    return tl.sum(tl.where(here, cut, 0.0), axis=1)


@jit("block")
def _rows(columns, block, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sixteen rows of sixteen columns: (16, 16)."""
    here = tl.arange(0, side // 16)[:, None, None] == block
    cut = tl.reshape(columns, (side // 16, 16, 16))
    return tl.sum(tl.where(here, cut, 0.0), axis=0)


@jit("block")
def _entries(vector, block, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sixteen entries of a vector."""
    here = tl.arange(0, side // 16)[:, None] == block
    return tl.sum(tl.where(here, tl.reshape(vector, (side // 16, 16)), 0.0), axis=0)


@jit()
def _inverse_factor(matrix, floor):  # type: ignore[no-untyped-def]
    """L⁻¹ with L Lᵀ = M, and the smallest pivot, of a matrix of 16 × 16."""
    at = tl.arange(0, 16)
    i, j = at[:, None], at[None, :]
    inverse = tl.where(i == j, 1.0, 0.0)
    smallest = float("inf")
    for k in range(16):
        row = tl.sum(tl.where(i == k, matrix, 0.0), axis=0)
        pivot = tl.maximum(tl.sum(tl.where(at == k, row, 0.0), axis=0), floor)
        smallest = tl.minimum(smallest, pivot)
        scale = 1.0 / tl.sqrt(tl.maximum(pivot, 1e-37))
        row = tl.where(at > k, row, 0.0) * scale
        matrix -= row[:, None] * row[None, :]
        above = tl.sum(tl.where(i == k, inverse, 0.0), axis=0) * scale
        inverse = tl.where(i == k, above[None, :], inverse - row[:, None] * above[None, :])
    return inverse, smallest


@jit("blocks")
def swept(head, border, matrix, blocks, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """−M⁻¹ and the smallest pivot of a matrix in registers, whose first ``blocks`` sixteens count.

    At a pivot that is not positive it stops: then the inverse means nothing.

    M and its inverse have a first row of their own, as in ``definite_solution``. Sixteen rows and
    columns are swept at once [Goodnight 1979], by way of Cholesky's factor of the corner where they
    meet: its inverse is far smaller than the corner's.
    """
    scale = 1.0 / tl.maximum(head, 1e-37)
    matrix -= border[:, None] * (border * scale)[None, :]
    matrix, smallest = _swept_without_head(matrix, blocks, head, side)
    row = -scale * tl.sum(matrix * border[None, :], axis=1)
    return -scale - scale * tl.sum(row * border, axis=0), row, matrix, smallest


@jit("blocks")
def _swept_without_head(matrix, blocks, smallest, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """−M⁻¹ and the smallest pivot, once the first row is eliminated."""
    if side == 16:
        half, least = _inverse_factor(matrix, float("-inf"))
        smallest = tl.minimum(smallest, least)
        matrix = -tl.dot(tl.trans(half), half, input_precision="tf32x3")
    else:
        at = tl.arange(0, side)
        block = 0
        while (block < blocks) & (smallest > 0.0):
            columns = _columns(matrix, block, side)
            half, least = _inverse_factor(_rows(columns, block, side), float("-inf"))
            smallest = tl.minimum(smallest, least)
            inside = at // 16 == block
            own = at[:, None] == 16 * block + tl.arange(0, 16)[None, :]
            columns = tl.where(own, -1.0, tl.where(inside[:, None], 0.0, columns))
            columns = tl.dot(columns, tl.trans(half), input_precision="tf32x3")
            matrix = tl.where(inside[:, None] | inside[None, :], 0.0, matrix)
            matrix -= tl.dot(columns, tl.trans(columns), input_precision="tf32x3")
            block += 1
    return matrix, smallest


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
