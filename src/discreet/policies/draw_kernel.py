"""Actions from probabilities on a GPU, in one launch. The rule is that of ``allocation.draw``."""

from __future__ import annotations

from discreet.arrays.triton_kernels import jit, tl, triton
from discreet.types import Array

_ROWS = 1024
"""Rows of a program."""


def suits(probabilities: Array, u: Array) -> bool:
    """Whether the kernel draws these: runs (S, R, n, A) whose uniforms (S, 1, n) are shared."""
    return bool(
        triton is not None
        and getattr(probabilities, "is_cuda", False)
        and probabilities.element_size() == 4
        and probabilities.ndim == u.ndim + 1 == 4
        and u.shape[1] == 1
        and u.shape[0] == probabilities.shape[0]
    )


def drawn(probabilities: Array, u: Array) -> Array:
    """The first action whose cumulative probability exceeds u, as (S, R, n)."""
    import torch

    seeds, runs, rows, actions = probabilities.shape
    chosen = torch.empty((seeds, runs, rows), dtype=torch.int64, device=u.device)
    strides = (*probabilities.stride(), u.stride(0), u.stride(2))
    grid = (triton.cdiv(rows, _ROWS) * seeds * runs,)
    _draw[grid](probabilities, u, chosen, rows, runs, actions, *strides, _ROWS, num_warps=4)
    return chosen


@jit(
    *("rows", "runs", "actions", "of_seed", "of_run", "of_row", "of_action", "u_seed", "u_row"),
    views=["probabilities", "uniforms"],
)
def _draw(  # type: ignore[no-untyped-def]
    probabilities,
    uniforms,
    chosen,
    rows,
    runs,
    actions,
    of_seed,
    of_run,
    of_row,
    of_action,
    u_seed,
    u_row,
    block: tl.constexpr,
):
    """Some rows of one run."""
    # One axis for all programs: the others hold 65,535 at most.
    program, blocks = tl.program_id(0).to(tl.int64), (rows + block - 1) // block
    place = program // blocks
    seed, run = place // runs, place % runs
    n = (program % blocks) * block + tl.arange(0, block)
    there = n < rows
    cells = probabilities + seed * of_seed + run * of_run + n * of_row
    total = tl.zeros((block,), tl.float32)
    for action in range(actions):
        total += tl.load(cells + action * of_action, mask=there, other=0.0)
    goal = tl.load(uniforms + seed * u_seed + n * u_row, mask=there, other=0.0) * total
    running = tl.zeros((block,), tl.float32)
    passed = tl.zeros((block,), tl.int64)
    for action in range(actions - 1):
        running += tl.load(cells + action * of_action, mask=there, other=0.0)
        passed += (running <= goal).to(tl.int64)
    tl.store(chosen + place * rows + n, passed, mask=there)
