"""Triton, where it is installed: kernels of our own for a GPU, and what several of them need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # a torch without CUDA does not include triton
    triton = tl = None

__all__ = ["jit", "pivot_of", "tl", "triton"]


def jit(*counts: str) -> Callable[[Any], Any]:
    """A kernel that is compiled when it is first called, once for all values of ``counts``."""

    def made(function: Any) -> Any:
        return function if triton is None else triton.jit(function, do_not_specialize=list(counts))

    return made


@jit("k")
def pivot_of(matrix, k, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """Row k (1, side), column k (side, 1) and their common entry, of a matrix in registers."""
    i = tl.arange(0, side)[:, None]
    j = tl.arange(0, side)[None, :]
    row = tl.sum(tl.where(i == k, matrix, 0.0), axis=0)[None, :]
    column = tl.sum(tl.where(j == k, matrix, 0.0), axis=1)[:, None]
    return row, column, tl.sum(tl.where(j == k, row, 0.0))
