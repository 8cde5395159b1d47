"""Triton, where it is installed: kernels of our own for a GPU, and what several of them need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # a torch without CUDA does not include triton
    triton = tl = None

__all__ = ["definite_solution", "jit", "swept", "tile", "tl", "triton"]


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
