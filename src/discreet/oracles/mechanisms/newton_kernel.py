"""Logistic regression on a GPU: one launch solves every problem of a batch.

Each program takes one problem, an action of a run, from its start to its end. It reads its rows,
which all runs share, from the cache, keeps matrix and gradient in registers, and stops on its own.
So nothing over runs × rows × actions is stored but a list of each problem's rows, and no problem
waits for another. The rule is that of ``newton.py`` in single precision.
"""

from __future__ import annotations

import math

from discreet.arrays.triton_kernels import jit, pivot_of, tl, triton
from discreet.types import Array

LARGEST = 63
"""Features up to which a matrix and its right-hand side fit into the registers of a program."""
_ROWS = 64
"""Rows that a program reads at once."""
_LISTED = 1024
"""Rows that are listed at once."""


def suits(features: Array, weights: Array) -> bool:
    """Whether the kernel solves these problems: runs that share their rows, and few features."""
    return bool(
        triton is not None
        and features.element_size() == 4
        and features.ndim == weights.ndim == 4
        and features.shape[1] == 1
        and features.shape[-1] <= LARGEST
    )


def minimised(
    features: Array,
    weights: Array,
    labels: Array,
    ridge: Array,
    tilt: Array,
    steps: int,
    tolerance: float,
) -> Array:
    """Minimisers (S, R, A, p) for rows (S, 1, n, p), weights and labels (S, R or 1, n, A).

    Weights are true or false, ``ridge`` is (S, R, A) and ``tilt`` b is (S, R, A, p). A gradient's
    norm is small enough at ``tolerance``·(√n + ‖b‖).
    """
    import torch

    seeds, runs, actions, p = tilt.shape
    rows = features.shape[-2]
    side = max(16, triton.next_power_of_2(p + 1))  # one column more, for the right-hand side
    # Stored row after row of an action, as the engine has them: then nothing is copied.
    weights, labels = weights.mT.contiguous(), labels.mT.contiguous()
    places, ends = _listed_rows(weights)
    theta = torch.empty_like(tilt, memory_format=torch.contiguous_format)
    rest = (ridge.contiguous(), tilt.contiguous(), theta)
    counts = (rows, runs, actions, weights.shape[1], labels.shape[1], steps)
    numbers = (*counts, tolerance * math.sqrt(rows), tolerance, p, side, _ROWS)
    # One stage: to load rows ahead would take the registers that let programs run side by side.
    # No fused products: lanes that add them in another order would differ in the last bit, and a
    # program whose lanes disagree about the next step never ends.
    options = {"num_warps": side // 16, "num_stages": 1, "enable_fp_fusion": False}
    grid = (seeds * runs * actions,)
    _newton[grid](features.contiguous(), places, ends, labels, *rest, *numbers, **options)
    return theta


def _listed_rows(weights: Array) -> tuple[Array, Array]:
    """Numbers of the rows that count, problem after problem, and where each problem's list ends."""
    import torch

    ends = weights.sum(-1).reshape(-1).cumsum(0)
    places = torch.empty(int(ends[-1]), dtype=torch.int32, device=weights.device)
    flat = weights.view(torch.uint8)
    _list_rows[(ends.shape[0],)](flat, ends, places, weights.shape[-1], _LISTED, num_warps=4)
    return places, ends


@jit("rows")
def _list_rows(weights, ends, places, rows, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """One problem's list."""
    problem = tl.program_id(0).to(tl.int64)
    weights += problem * rows
    before = problem > 0
    place = tl.load(ends + problem - 1, mask=before, other=0)
    for start in range(0, rows, block):
        n = start + tl.arange(0, block)
        w = tl.load(weights + n, mask=n < rows, other=0).to(tl.int32)
        tl.store(places + place + tl.cumsum(w, axis=0) - 1, n, mask=w > 0)
        place += tl.sum(w, axis=0)


@jit("rows", "runs", "actions", "weight_runs", "label_runs", "steps", "p")
def _newton(  # type: ignore[no-untyped-def]
    features,
    places,
    ends,
    labels,
    ridges,
    tilts,
    thetas,
    rows,
    runs,
    actions,
    weight_runs,
    label_runs,
    steps,
    tolerance,
    relative,
    p,
    side: tl.constexpr,
    block: tl.constexpr,
):
    """One problem: the better of 0 and −b/Λ, then Newton steps, cut where they would be worse."""
    problem = tl.program_id(0).to(tl.int64)
    action = problem % actions
    run = (problem // actions) % runs
    seed = problem // (actions * runs)
    features += seed * rows * p
    labels += ((seed * label_runs + run % label_runs) * actions + action) * rows
    listed = (seed * weight_runs + run % weight_runs) * actions + action
    first = tl.load(ends + listed - 1, mask=listed > 0, other=0)
    count = (tl.load(ends + listed) - first).to(tl.int32)
    places += first
    i = tl.arange(0, side)
    ridge = tl.load(ridges + problem)
    tilt = tl.load(tilts + problem * p + i, mask=i < p, other=0.0)
    enough = tolerance + relative * tl.sqrt(tl.sum(tilt * tilt, axis=0))

    theta = tl.zeros((side,), tl.float32)
    gradient, curvature = _sums(features, places, labels, theta, count, p, side, block, False)
    gradient += tilt
    steepness = tl.sum(gradient * gradient, axis=0)
    direction = -tilt / ridge
    part = 1.0  # of the direction; the first one is left out where it would be worse
    shortest = 0.0
    taken = 0
    while taken <= steps:
        there = theta + part * direction
        gradient, curvature = _sums(features, places, labels, there, count, p, side, block, True)
        gradient += tilt + ridge * there
        now = tl.sum(gradient * gradient, axis=0)
        if (now > steepness) & (part > shortest):
            part = shortest
        else:
            theta = there
            steepness = now
            taken += 1
            if now <= enough * enough:
                taken = steps + 1
            else:
                direction = _solved(curvature, -gradient, ridge, p, side)
                length = tl.sqrt(tl.sum(direction * direction, axis=0))
                part = 1.0
                shortest = tl.minimum(tl.log2(1.0 + length) / tl.maximum(length, 1e-30), 1.0)
    tl.store(thetas + problem * p + i, theta, mask=i < p)


@jit("count", "p")
def _sums(  # type: ignore[no-untyped-def]
    features,
    places,
    labels,
    theta,
    count,
    p,
    side: tl.constexpr,
    block: tl.constexpr,
    curved: tl.constexpr,
):
    """Σ (σ(x·θ) − y)·x over the listed rows and, if ``curved``, Σ σ'·x xᵀ."""
    i = tl.arange(0, side)
    gradient = tl.zeros((side,), tl.float32)
    missed = tl.zeros((side,), tl.float32)  # what rounding took, block by block [Kahan 1965]
    matrix = tl.zeros((side, side), tl.float32)
    for start in range(0, count, block):
        listed = start + tl.arange(0, block)
        there = listed < count
        n = tl.load(places + listed, mask=there, other=0)
        cells = features + n[:, None] * p + i[None, :]
        x = tl.load(cells, mask=there[:, None] & (i < p)[None, :], other=0.0)
        y = tl.load(labels + n, mask=there, other=0.0)
        mean = tl.sigmoid(tl.sum(x * theta[None, :], axis=1))
        more = tl.sum(x * (mean - y)[:, None], axis=0) - missed
        total = gradient + more
        missed = (total - gradient) - more
        gradient = total
        if curved:
            z = x * tl.sqrt(mean * (1.0 - mean))[:, None]
            matrix += tl.dot(tl.trans(z), z, input_precision="tf32x3")
    return gradient, matrix


@jit("p")
def _solved(matrix, vector, ridge, p, side: tl.constexpr):  # type: ignore[no-untyped-def]
    """(M + Λ I)⁻¹ v by elimination; the vector is the last column of the matrix."""
    i = tl.arange(0, side)[:, None]
    j = tl.arange(0, side)[None, :]
    matrix += tl.where(i == j, ridge, 0.0)
    matrix = tl.where(j == side - 1, vector[:, None], matrix)
    for k in range(p):
        row, column, pivot = pivot_of(matrix, k, side)
        pivot = tl.maximum(pivot, 0.5 * ridge)  # in exact numbers it is at least Λ
        matrix -= tl.where(i == k, 0.0, column / pivot) * row
    diagonal = tl.sum(tl.where(i == j, matrix, 0.0), axis=1)
    solution = tl.sum(tl.where(j == side - 1, matrix, 0.0), axis=1)
    return tl.where(tl.arange(0, side) < p, solution / diagonal, 0.0)
