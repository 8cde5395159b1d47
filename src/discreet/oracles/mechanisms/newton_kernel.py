"""Logistic regression on a GPU: one launch solves every problem of a batch.

Each program takes one problem, an action of a run, from its start to its end. It reads its rows,
which all runs share, from the cache, keeps matrix and gradient in registers, and stops on its own.
So nothing over runs × rows × actions is stored but a list of each problem's rows, and no problem
waits for another. The rule is that of ``newton.py`` in single precision.
"""

from __future__ import annotations

import math

from discreet.arrays.triton_kernels import definite_solution, jit, tile, tl, triton
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
_ROUGH = 2e-3
"""Relative error of a step, which second derivatives of eleven bits make."""
_PROGRAMS = {16: (64, 1), 32: (64, 2), 64: (64, 4), 128: (32, 4)}
"""Rows that a program reads at once (more take its registers), and warps, by the matrix's side."""
_ROUNDING = 1e-7
"""Times curvature and ‖θ‖: what rounding of θ makes of a gradient."""


def suits(features: Array, weights: Array) -> bool:
    """Return whether the kernel solves these: runs that share their rows, and few features."""
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
    norm is small enough at ``tolerance``·(√n + ‖b‖), and a step after which about
    ``last_step``·‖θ‖ is left is the last: the square of its length, and its own error. So is one
    that no longer halves a gradient which may be rounding.
    """
    import torch

    seeds, runs, actions, p = tilt.shape
    rows = features.shape[-2]
    alone, side = tile(p)
    # Stored row after row of an action, as the engine has them: then nothing is copied.
    weights, labels = weights.mT.contiguous(), labels.mT.contiguous()
    places, ends = _listed_rows(weights)
    theta = torch.empty_like(tilt, memory_format=torch.contiguous_format)
    # So that a thread reads four at once.
    wide = torch.nn.functional.pad(features[..., alone:], (0, side - p + alone)).contiguous()
    first = features[..., 0].contiguous()
    given = (first, wide, places, ends, labels, ridge.contiguous(), tilt.contiguous(), theta)
    counts = (rows, runs, actions, weights.shape[1], labels.shape[1], steps)
    stops = (tolerance * math.sqrt(rows), tolerance, last_step, _NEAR, _ROUNDING, _ROUGH)
    block, warps = _PROGRAMS[side]
    # One stage: to load rows ahead would take the registers that let programs run side by side.
    # No fused products: lanes that add them in another order would differ in the last bit, and a
    # program whose lanes disagree about the next step never ends.
    options = {"num_stages": 1, "enable_fp_fusion": False, "num_warps": warps}
    lanes = 128 * warps // side  # rows that the threads of a program hold side by side
    sizes = (p, alone, side, block, lanes, _FEW, _FEW_STEPS)
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
    firsts,
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
    rough,
    p,
    alone: tl.constexpr,
    side: tl.constexpr,
    block: tl.constexpr,
    lanes: tl.constexpr,
    few: tl.constexpr,
    few_steps: tl.constexpr,
):
    """One problem: the better of 0 and −b/Λ, then Newton steps, cut where they would be worse.

    Where rows are many, the steps begin on an eighth of them (or of an eighth, and so on), with
    as large a part of ridge and tilt: that minimum is near the one of all rows. Where it is not,
    so that a step from there is worse, they begin again at zero.
    """
    problem = tl.program_id(0).to(tl.int64)
    action = problem % actions
    run = (problem // actions) % runs
    seed = problem // (actions * runs)
    firsts += seed * rows
    features += seed * rows * side
    labels += ((seed * label_runs + run % label_runs) * actions + action) * rows
    listed = (seed * weight_runs + run % weight_runs) * actions + action
    start = tl.load(ends + listed - 1, mask=listed > 0, other=0)
    count = (tl.load(ends + listed) - start).to(tl.int32)
    places += start
    k = tl.arange(0, side)
    i = alone + k
    ridge = tl.load(ridges + problem)
    tilts += problem * p
    tilt = tl.load(tilts + i, mask=i < p, other=0.0)
    tilt0 = tl.load(tilts, mask=alone > 0, other=0.0)
    enough = tolerance + relative * tl.sqrt(tl.sum(tilt * tilt, axis=0) + tilt0 * tilt0)
    halvings = 0  # of the number of rows
    while (count >> halvings) > few * side:
        halvings += 3
    share = tl.where(halvings > 0, (count >> halvings) / tl.maximum(count, 1), 1.0)

    # Of what is kept apart the names end with a zero; without it, all of them stay zero.
    theta, theta0 = tl.zeros((side,), tl.float32), 0.0
    some = count >> halvings
    gradient0, gradient, head, border, curvature = _sums(
        firsts, features, places, labels, theta0, theta, some, alone, side, block, lanes, False
    )
    gradient += share * tilt
    gradient0 += share * tilt0
    steepness = tl.sum(gradient * gradient, axis=0) + gradient0 * gradient0
    direction, direction0 = -tilt / ridge, -tilt0 / ridge
    part = 1.0  # of the direction; the first one is left out where it would be worse
    shortest = 0.0
    taken = 0
    begun = False  # with some of the rows, and not again from zero
    while taken <= steps:
        there, there0 = theta + part * direction, theta0 + part * direction0
        some = count >> halvings
        gradient0, gradient, head, border, curvature = _sums(
            firsts, features, places, labels, there0, there, some, alone, side, block, lanes, True
        )
        gradient += share * (tilt + ridge * there)
        gradient0 += share * (tilt0 + ridge * there0)
        now = tl.sum(gradient * gradient, axis=0) + gradient0 * gradient0
        # What rounding of θ alone makes of the gradient; below a few times that, steps are noise.
        bend = tl.sum(tl.sum(tl.where(k[:, None] == k[None, :], curvature, 0.0), axis=1), axis=0)
        size = tl.sqrt(tl.sum(there * there, axis=0) + there0 * there0)
        noise = 4.0 * (enough + rounding * (head + bend + share * ridge) * size)
        stalled = (now > 0.25 * steepness) & (now <= noise * noise)
        ended = (now <= enough * enough) | stalled
        if (now > steepness) & (part > shortest) & (not ended):
            # Without a ridge to speak of, some of the rows may end far from where all of them do.
            theta, theta0 = tl.where(begun, 0.0, theta), tl.where(begun, 0.0, theta0)
            direction = tl.where(begun, 0.0, direction)
            direction0 = tl.where(begun, 0.0, direction0)
            part = tl.where(begun, 1.0, shortest)
            steepness = tl.where(begun, float("inf"), steepness)
            begun = False
        else:
            theta, theta0 = there, there0
            steepness = now
            taken += 1
            head += share * ridge
            curvature += tl.where(k[:, None] == k[None, :], share * ridge, 0.0)
            direction, direction0 = tl.zeros((side,), tl.float32), 0.0
            if not ended:
                floor = share * ridge  # in exact numbers no pivot is less
                blocks = (p - alone + 15) // 16
                direction0, direction, _ = definite_solution(
                    head, border, curvature, -gradient0, -gradient, floor, blocks, side
                )
            length = tl.sqrt(tl.sum(direction * direction, axis=0) + direction0 * direction0)
            part = 1.0
            shortest = tl.minimum(tl.log2(1.0 + length) / tl.maximum(length, 1e-30), 1.0)
            left = length * (length + rough)  # after this step
            close = tl.where(halvings > 0, length <= near, left <= last_step * size)
            if close:
                theta += direction
                theta0 += direction0
            done = close | ended
            if halvings == 0:
                if done:
                    taken = steps + 1
            else:
                if done | (taken > few_steps):  # go on with more rows, or begin again with them
                    theta = tl.where(done, theta, 0.0)
                    theta0 = tl.where(done, theta0, 0.0)
                    direction, direction0 = tl.zeros((side,), tl.float32), 0.0
                    halvings -= 3
                    share = tl.where(halvings > 0, (count >> halvings) / count, 1.0)
                    steepness = float("inf")
                    begun = done
                    taken = 0
    thetas += problem * p
    tl.store(thetas + i, theta, mask=i < p)
    if alone > 0:
        tl.store(thetas, theta0)


@jit("count")
def _sums(  # type: ignore[no-untyped-def]
    firsts,
    features,
    places,
    labels,
    theta0,
    theta,
    count,
    alone: tl.constexpr,
    side: tl.constexpr,
    block: tl.constexpr,
    lanes: tl.constexpr,
    curved: tl.constexpr,
):
    """Σ (σ(x·θ) − y)·x over the listed rows and, if ``curved``, Σ σ'·x xᵀ, each with what is kept
    apart before it."""
    i = tl.arange(0, side)
    gradient = tl.zeros((lanes, side), tl.float32)
    minus = tl.zeros((side, side), tl.float32)
    border = tl.zeros((lanes, side), tl.float32)
    gradient0 = tl.zeros((block,), tl.float32)
    head = tl.zeros((block,), tl.float32)
    for start in range(0, count, block):
        listed = start + tl.arange(0, block)
        there = listed < count
        n = tl.load(places + listed, mask=there, other=0)
        x = tl.load(features + n[:, None] * side + i[None, :], mask=there[:, None], other=0.0)
        y = tl.load(labels + n, mask=there, other=0.0)
        score = tl.sum(x * theta[None, :], axis=1)
        if alone:
            x0 = tl.load(firsts + n, mask=there, other=0.0)
            score += x0 * theta0
        mean = tl.sigmoid(score)
        gradient += _folded(x * (mean - y)[:, None], lanes)
        if alone:
            gradient0 += x0 * (mean - y)
        if curved:
            # Eleven bits are enough: what is summed is still a square, and only shapes the steps.
            # In sixteen bits, tensor cores read a tile and its transpose without conflicts.
            root = tl.sqrt(mean * (1.0 - mean))
            z = (x * root[:, None]).to(tl.float16)
            # Subtracted, so that tensor cores do not add to the sum themselves: it seems that they
            # cut it towards zero, and over many rows that outgrew a small ridge, so that steps did
            # not converge.
            minus -= tl.dot(tl.trans(z), z)
            if alone:
                z0 = (x0 * root).to(tl.float16).to(tl.float32)
                border += _folded(z.to(tl.float32) * z0[:, None], lanes)
                head += z0 * z0
    first, corner = tl.sum(gradient0, axis=0), tl.sum(head, axis=0)
    return first, tl.sum(gradient, axis=0), corner, tl.sum(border, axis=0), -minus


@jit()
def _folded(values, lanes: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sums of the rows that one thread holds, (block, side) -> (lanes, side): no thread waits."""
    rows: tl.constexpr = values.shape[0] // lanes
    return tl.sum(tl.reshape(values, (rows, lanes, values.shape[1])), axis=0)
