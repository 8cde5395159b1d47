"""The auxiliary updates of BonusPO on a GPU: one kernel, which keeps a row in registers."""

from __future__ import annotations

from discreet.arrays.triton_kernels import jit, tl, triton
from discreet.types import Array

_BLOCK = 128
"""Cells of a program: a row has a cell per worse action, rounded up to a power of two."""
_LOOK = 64
"""Steps between two checks of whether a program is finished."""


def available() -> bool:
    """Whether the kernel can be built here."""
    return triton is not None


def updated(gaps: Array, reach: Array, rate: Array, start: Array, length: int) -> Array:
    """1 + N after the last step, for rows (n, A − 1); the rule is that of bonus_po.py."""
    rows, worse = gaps.shape
    width = 1 << (worse - 1).bit_length()
    block = max(1, _BLOCK // width)
    counts = gaps.new_empty(gaps.shape)
    given = [each.contiguous() for each in (gaps, reach, rate, start)]
    _steps[(-(-rows // block),)](*given, counts, rows, length, worse, width, block, _LOOK)
    return counts


@jit("rows", "length", "worse")
def _steps(  # type: ignore[no-untyped-def]
    gaps,
    reach,
    rate,
    start,
    counts,
    rows,
    length,
    worse,
    width: tl.constexpr,
    block: tl.constexpr,
    look: tl.constexpr,
):
    """All steps of ``block`` rows; each row takes part from its own first step."""
    row = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    action = tl.arange(0, width)
    inside = row < rows
    real = inside[:, None] & (action < worse)[None, :]
    cell = row[:, None] * worse + action[None, :]
    first = tl.load(start + row, mask=inside, other=length)
    eta = tl.load(rate + row, mask=inside, other=0.0)
    bonus = (eta * tl.load(reach + row, mask=inside, other=0.0))[:, None]
    cap = eta[:, None]
    drop = cap * tl.load(gaps + cell, mask=real, other=0.0)
    N = tl.zeros((block, width), tl.float64) + (1.0 + first / (worse + 1))[:, None]
    w = tl.where(real, 1.0, 0.0).to(tl.float64)
    step = tl.min(first, axis=0).to(tl.int32)
    while step < length:
        for _ in range(look):
            playing = ((step >= first) & (step < length))[:, None]
            share = w / (1.0 + tl.sum(w, axis=1))[:, None]
            decay = tl.exp(tl.minimum(tl.minimum(bonus / N, cap) - drop, 0.0))
            N += tl.where(playing, share, 0.0)
            w = tl.where(playing, w * decay, w)
            step += 1
        w = tl.where(w < 1e-40, 0.0, w)
        alive = tl.max(tl.max(w, axis=1), axis=0)
        step = tl.where(alive > 0.0, step, length)
    tl.store(counts + cell, N, mask=real)
