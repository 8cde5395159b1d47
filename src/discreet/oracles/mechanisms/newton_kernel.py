"""Logistic regression on a GPU: one launch solves every problem of a batch.

Each program takes one problem, an action of a run, from its start to its end. It reads its rows,
which all runs share, from the cache, keeps matrix and gradient in registers, and stops on its own.
So nothing over runs × rows × actions is stored but a list of each problem's rows, and no problem
waits for another. The rule is that of ``newton.py`` in single precision.
"""

from __future__ import annotations

import math

from discreet.arrays.triton_kernels import definite_solution, jit, tl, triton
from discreet.types import Array

LARGEST = 128
"""Features up to which a matrix fits into the registers of a program."""
_LISTED = 1024
"""Rows that are listed at once."""
_FEW = 32
"""Times the side of a matrix: a problem with more rows is first solved on an eighth of them."""
_FEW_STEPS = 15
"""Steps with some of the rows; who needs more begins again with all of them."""
_NEAR = 0.1
"""The last step with some of the rows is at most this long."""
_ROUNDING = 1e-7
"""Times curvature and ‖θ‖: what rounding of θ makes of a gradient."""


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
    last_step: float,
) -> Array:
    """Minimisers (S, R, A, p) for rows (S, 1, n, p), weights and labels (S, R or 1, n, A).

    Weights are true or false, ``ridge`` is (S, R, A) and ``tilt`` b is (S, R, A, p). A gradient's
    norm is small enough at ``tolerance``·(√n + ‖b‖), and a step that is no longer than
    ``last_step``·‖θ‖ is the last. So is one that no longer halves a gradient which may be rounding.
    """
    import torch

    seeds, runs, actions, p = tilt.shape
    rows = features.shape[-2]
    side = max(16, triton.next_power_of_2(p))
    # Stored row after row of an action, as the engine has them: then nothing is copied.
    weights, labels = weights.mT.contiguous(), labels.mT.contiguous()
    places, ends = _listed_rows(weights)
    theta = torch.empty_like(tilt, memory_format=torch.contiguous_format)
    wide = torch.nn.functional.pad(features, (0, side - p))  # so that a thread reads four at once
    given = (wide.contiguous(), places, ends, labels, ridge.contiguous(), tilt.contiguous(), theta)
    counts = (rows, runs, actions, weights.shape[1], labels.shape[1], steps)
    stops = (tolerance * math.sqrt(rows), tolerance, last_step, _NEAR, _ROUNDING)
    block = 64 if side <= 32 else 32  # rows that a program reads at once: more take its registers
    # One stage: to load rows ahead would take the registers that let programs run side by side.
    # No fused products: lanes that add them in another order would differ in the last bit, and a
    # program whose lanes disagree about the next step never ends.
    options = {"num_stages": 1, "enable_fp_fusion": False}
    options["num_warps"] = 1 if side == 16 else max(2, side // 32)
    sizes = (p, side, block, _FEW, _FEW_STEPS)
    _newton[(seeds * runs * actions,)](*given, *counts, *stops, *sizes, **options)
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
    last_step,
    near,
    rounding,
    p,
    side: tl.constexpr,
    block: tl.constexpr,
    few: tl.constexpr,
    few_steps: tl.constexpr,
):
    """One problem: the better of 0 and −b/Λ, then Newton steps, cut where they would be worse.

    Where rows are many, the steps begin on an eighth of them (or of an eighth, and so on), with
    as large a part of ridge and tilt: that minimum is near the one of all rows.
    """
    problem = tl.program_id(0).to(tl.int64)
    action = problem % actions
    run = (problem // actions) % runs
    seed = problem // (actions * runs)
    features += seed * rows * side
    labels += ((seed * label_runs + run % label_runs) * actions + action) * rows
    listed = (seed * weight_runs + run % weight_runs) * actions + action
    first = tl.load(ends + listed - 1, mask=listed > 0, other=0)
    count = (tl.load(ends + listed) - first).to(tl.int32)
    places += first
    i = tl.arange(0, side)
    ridge = tl.load(ridges + problem)
    tilt = tl.load(tilts + problem * p + i, mask=i < p, other=0.0)
    enough = tolerance + relative * tl.sqrt(tl.sum(tilt * tilt, axis=0))
    halvings = 0  # of the number of rows
    while (count >> halvings) > few * side:
        halvings += 3
    share = tl.where(halvings > 0, (count >> halvings) / tl.maximum(count, 1), 1.0)

    theta = tl.zeros((side,), tl.float32)
    some = count >> halvings
    gradient, curvature = _sums(features, places, labels, theta, some, side, block, False)
    gradient += share * tilt
    steepness = tl.sum(gradient * gradient, axis=0)
    direction = -tilt / ridge
    part = 1.0  # of the direction; the first one is left out where it would be worse
    shortest = 0.0
    taken = 0
    while taken <= steps:
        there = theta + part * direction
        some = count >> halvings
        gradient, curvature = _sums(features, places, labels, there, some, side, block, True)
        gradient += share * (tilt + ridge * there)
        now = tl.sum(gradient * gradient, axis=0)
        # What rounding of θ alone makes of the gradient; below a few times that, steps are noise.
        bend = tl.sum(tl.sum(tl.where(i[:, None] == i[None, :], curvature, 0.0), axis=1), axis=0)
        size = tl.sqrt(tl.sum(there * there, axis=0))
        noise = 4.0 * (enough + rounding * (bend + share * ridge) * size)
        stalled = (now > 0.25 * steepness) & (now <= noise * noise)
        ended = (now <= enough * enough) | stalled
        if (now > steepness) & (part > shortest) & (not ended):
            part = shortest
        else:
            theta = there
            steepness = now
            taken += 1
            curvature += tl.where(i[:, None] == i[None, :], share * ridge, 0.0)
            # In exact numbers each pivot is at least Λ.
            floor = 0.5 * share * ridge
            direction, _ = definite_solution(curvature, -gradient, floor, (p + 15) // 16, side)
            length = tl.sqrt(tl.sum(direction * direction, axis=0))
            part = 1.0
            shortest = tl.minimum(tl.log2(1.0 + length) / tl.maximum(length, 1e-30), 1.0)
            close = length <= tl.where(halvings > 0, near, last_step * size)
            if close:  # what is left is about the square of the step
                theta += direction
            done = close | ended
            if halvings == 0:
                if done:
                    taken = steps + 1
            else:
                if done | (taken > few_steps):  # go on with more rows, or begin again with them
                    theta = tl.where(done, theta, 0.0)
                    direction = tl.zeros((side,), tl.float32)
                    halvings -= 3
                    share = tl.where(halvings > 0, (count >> halvings) / count, 1.0)
                    steepness = float("inf")
                    taken = 0
    tl.store(thetas + problem * p + i, theta, mask=i < p)


@jit("count")
def _sums(  # type: ignore[no-untyped-def]
    features,
    places,
    labels,
    theta,
    count,
    side: tl.constexpr,
    block: tl.constexpr,
    curved: tl.constexpr,
):
    """Σ (σ(x·θ) − y)·x over the listed rows and, if ``curved``, Σ σ'·x xᵀ."""
    i = tl.arange(0, side)
    gradient = tl.zeros((block, side), tl.float32)  # each place of a block has a sum of its own
    matrix = tl.zeros((side, side), tl.float32)
    for start in range(0, count, block):
        listed = start + tl.arange(0, block)
        there = listed < count
        n = tl.load(places + listed, mask=there, other=0)
        x = tl.load(features + n[:, None] * side + i[None, :], mask=there[:, None], other=0.0)
        y = tl.load(labels + n, mask=there, other=0.0)
        mean = tl.sigmoid(tl.sum(x * theta[None, :], axis=1))
        gradient += x * (mean - y)[:, None]
        if curved:
            z = x * tl.sqrt(mean * (1.0 - mean))[:, None]
            # Ten bits are enough: what is summed is still a square, and only shapes the steps.
            matrix += tl.dot(tl.trans(z), z, input_precision="tf32")
    return tl.sum(gradient, axis=0), matrix
