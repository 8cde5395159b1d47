"""GPU kernels of policies: predictions to actions, replays, updates of BonusPO, and draws.

Each is one launch; the rules are those of the policies and of ``allocation``.
The replay takes some rows of a few runs through all releases and keeps their weights in registers:
as array calls, each release would pass several times over runs × rows × actions.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays.backend import as_like
from discreet.arrays.triton_kernels import jit, tl, triton
from discreet.releases.policy_view import PolicyView
from discreet.types import Array, Numbers

_ROWS = 64
"""Rows of a program."""
_FEATURES = 16
"""Features of one product."""
_LARGEST = 64
"""Actions that fit into the registers of a program."""
_LINKS = {"identity": 0, "clip": 1, "logistic": 2}


def suits(view: PolicyView, features: Array, u: Array) -> bool:
    """Return whether kernels play these rounds: several runs that share rows and uniforms."""
    if triton is None or not getattr(features, "is_cuda", False) or features.element_size() != 4:
        return False
    links = {item.predictor.link for item in view.items}
    shared = features.ndim == u.ndim == 4 and features.shape[1] == u.shape[1] == 1
    return shared and len(links) == 1 and links <= set(_LINKS)


def rule_of(policy: object, n_actions: int) -> str | None:
    """Return the rule of a policy that a kernel has too: its own, as a subclass may change it."""
    small = triton is not None and n_actions <= _LARGEST
    return vars(type(policy)).get("_gpu_rule") if small else None


_RULES = ["gaps", "relative gaps", "optimism", "survivors", "surviving gaps", "softmax", "minimum"]
"""Of SquareCB, FastCB, LinUCB, RegCB, AdaCB, VanillaPO and Greedy; the kernel has their numbers."""
_CELLS = 2048
"""Rows times actions of a program."""


def ruled(
    rule: str,
    view: PolicyView,
    features: Array,
    u: Array,
    slope: Numbers,
    width: Numbers,
    length: int,
) -> Array:
    """Actions (S, R, n) for features (S, 1, n, p) and uniforms u (S, 1, n, 2).

    ``slope`` is that of gaps or of softmax, ``width`` that of radii, each of one run or of (R,);
    ``length`` is the number of updates that softmax averages.
    """
    import torch

    predictor = view.items[-1].predictor
    scores = predictor.scores(features)
    squares = view.squared_radii(features) if rule in _RULES[2:5] else scores
    both = [np.atleast_1d(each) for each in (slope, width)]
    runs = max(scores.shape[1], squares.shape[1], *map(len, both))
    seeds, _, rows, actions = scores.shape
    # Stored row after row of an action, as products are: then nothing is copied.
    scores, squares = (
        each.mT.contiguous().expand(seeds, runs, actions, rows) for each in (scores, squares)
    )
    slopes, widths = (as_like(np.broadcast_to(each, (runs,)), features) for each in both)
    chosen = torch.empty((seeds, runs, rows), dtype=torch.uint8, device=u.device)
    wide = triton.next_power_of_2(actions)
    block = _CELLS // wide
    strides = (*scores.stride()[:3], *squares.stride()[:3], u.stride(0), *u.stride()[2:])
    numbers = (rows, runs, actions, _RULES.index(rule), _LINKS[predictor.link], length)
    grid = (triton.cdiv(rows, block) * seeds * runs,)
    given = (scores, squares, u, slopes, widths, chosen)
    _rule[grid](*given, *numbers, *strides, wide, block, num_warps=4)
    return chosen


@jit(
    *("rows", "runs", "actions", "rule", "link", "length", "s_seed", "s_run", "s_action"),
    *("q_seed", "q_run", "q_action", "u_seed", "u_row", "u_column"),
    views=["scores", "squares", "uniforms"],
)
def _rule(  # type: ignore[no-untyped-def]
    scores,
    squares,
    uniforms,
    slopes,
    widths,
    chosen,
    rows,
    runs,
    actions,
    rule,
    link,
    length,
    s_seed,
    s_run,
    s_action,
    q_seed,
    q_run,
    q_action,
    u_seed,
    u_row,
    u_column,
    wide: tl.constexpr,
    block: tl.constexpr,
):
    """Some rows of one run: predictions, shares of the actions, and a draw."""
    program, blocks = tl.program_id(0).to(tl.int64), (rows + block - 1) // block
    place = program // blocks
    seed, run = place // runs, place % runs
    n = (program % blocks) * block + tl.arange(0, block)
    a = tl.arange(0, wide)[:, None]
    there = n < rows
    real = a < actions
    cells = real & there[None, :]
    score = tl.load(
        scores + seed * s_seed + run * s_run + a * s_action + n[None, :], mask=cells, other=0.0
    )
    losses = score
    if link == 1:
        losses = tl.minimum(tl.maximum(score, 0.0), 1.0)
    if link == 2:
        losses = tl.sigmoid(score)
    slope, width = tl.load(slopes + run), tl.load(widths + run)
    values = tl.where(real, losses, float("inf"))
    if (rule >= 2) & (rule <= 4):
        square = tl.load(
            squares + seed * q_seed + run * q_run + a * q_action + n[None, :], mask=cells, other=0.0
        )
        radius = width * tl.sqrt(tl.maximum(square, 0.0))
        if rule == 2:
            values -= radius
        else:
            bound = tl.min(tl.where(real, score + radius, float("inf")), axis=0)[None, :]
            values = tl.where(score - radius <= bound, values, float("inf"))
    best = tl.min(values, axis=0)[None, :]
    alive = tl.where(values < float("inf"), 1.0, 0.0)
    spot = uniforms + seed * u_seed + n * u_row
    u = tl.load(spot, mask=there, other=0.0)
    shares = tl.where(values - best <= 1e-12 * (1.0 + tl.abs(best)), 1.0, 0.0)
    if rule == 3:
        shares = alive
    if rule == 5:
        times = slope * tl.floor(u * length)
        shares = tl.exp(-times[None, :] * (values - best))
        shares = tl.where(real, shares, 0.0)
        u = tl.load(spot + u_column, mask=there, other=0.0)
    if (rule == 0) | (rule == 1) | (rule == 4):
        usable = tl.where((rule == 1) & (best > 0.0), best, 1.0)
        spread = usable / (tl.sum(alive, axis=0)[None, :] * usable + slope * (values - best))
        first = tl.min(tl.where(values == best, a, wide), axis=0)[None, :]
        rest = 1.0 - tl.sum(spread, axis=0)[None, :]
        spread += tl.where(a == first, rest, 0.0)
        shares = tl.where((rule == 1) & (best <= 0.0), shares, spread)
    goal = u * tl.sum(shares, axis=0)
    passed = (tl.cumsum(shares, axis=0) <= goal[None, :]) & (a < actions - 1)
    tl.store(chosen + place * rows + n, tl.sum(passed.to(tl.int32), axis=0), mask=there)


def replayed(view: PolicyView, features: Array, u: Array, rate: Numbers, bonus: Numbers) -> Array:
    """Actions (S, R, n) for features (S, 1, n, p), uniforms u (S, 1, n) and parameters (R,).

    Parameters and weights that all runs or all seeds share may have the length one there.
    """
    import torch

    each = [item.predictor.weights for item, _ in view.remembered]
    shared = ((features.shape[0], 1, 1, 1), (len(rate), 1, 1), (len(bonus), 1, 1))
    # Not torch's own, whose first call imports for seconds.
    shape = np.broadcast_shapes(*(weights.shape for weights in each), *shared)
    weights = torch.stack([part.expand(shape) for part in each])
    seeds, runs, actions, p = shape
    rows = features.shape[-2]
    records = [share * item.records for item, share in view.remembered]
    # The kernel reads as many numbers as there are seeds and runs.
    features = features.expand(seeds, 1, rows, p).contiguous()
    u = u.expand(seeds, 1, rows).contiguous()
    rate, bonus = (as_like(np.broadcast_to(part, (runs,)), features) for part in (rate, bonus))
    given = (features, u, weights, rate, bonus, as_like(records, features))
    chosen = torch.empty((seeds, runs, rows), dtype=torch.uint8, device=features.device)
    wide = triton.next_power_of_2(actions)
    together = max(1, 16 // wide)
    link = _LINKS[view.items[-1].predictor.link]
    numbers = (rows, seeds, runs, len(each), actions, p, link, together, wide, _ROWS, _FEATURES)
    grid = (triton.cdiv(rows, _ROWS) * seeds * triton.cdiv(runs, together),)
    _replay[grid](*given, chosen, *numbers, num_warps=4)
    return chosen


@jit("rows", "seeds", "runs", "releases", "actions", "p", "link", views=["features", "uniforms"])
def _replay(  # type: ignore[no-untyped-def]
    features,
    uniforms,
    weights,
    rates,
    bonuses,
    records,
    chosen,
    rows,
    seeds,
    runs,
    releases,
    actions,
    p,
    link,
    together: tl.constexpr,
    wide: tl.constexpr,
    block: tl.constexpr,
    deep: tl.constexpr,
):
    """Some rows of as many runs as fill the sixteen columns of a product."""
    # One axis for all programs: the others hold 65,535 at most.
    blocks, groups = (rows + block - 1) // block, (runs + together - 1) // together
    group = tl.program_id(0) // blocks
    seed = (group // groups).to(tl.int64)
    first = (group % groups) * together
    n = (tl.program_id(0) % blocks) * block + tl.arange(0, block)
    i = tl.arange(0, deep)
    column = tl.arange(0, together * wide)
    run, a = first + column // wide, column % wide
    own = first + tl.arange(0, together)
    here, real = n < rows, ((a < actions) & (run < runs))[None, :]
    row = features + (seed * rows + n)[:, None] * p
    rate = tl.load(rates + own, mask=own < runs, other=0.0)[None, :, None]
    bonus = tl.load(bonuses + own, mask=own < runs, other=0.0)[None, :, None]
    possible = (tl.arange(0, wide) < actions)[None, None, :]
    logits = tl.zeros((block, together, wide), tl.float32)
    mass = tl.zeros((block, together, wide), tl.float32)
    current = tl.zeros((block, together, wide), tl.float32) + 1.0 / actions
    rounds = 0.0
    for release in range(releases):
        place = ((release * seeds + seed) * runs + run) * actions + a
        cells = weights + place[None, :] * p
        losses = tl.zeros((block, together * wide), tl.float32)
        for start in range(0, p, deep):  # the same code for every number of features
            k = start + i
            x = tl.load(row + k[None, :], mask=here[:, None] & (k < p)[None, :], other=0.0)
            theta = tl.load(cells + k[:, None], mask=real & (k < p)[:, None], other=0.0)
            losses += tl.dot(x, theta, input_precision="tf32x3")
        losses = tl.reshape(losses, (block, together, wide))
        if link == 1:
            losses = tl.minimum(tl.maximum(losses, 0.0), 1.0)
        if link == 2:
            losses = tl.sigmoid(losses)
        count = tl.load(records + release)
        rounds += count
        optimism = tl.minimum(bonus * tl.sqrt(rounds / actions) / (1.0 + mass), 1.0)
        mass += count * current
        logits -= rate * count * tl.maximum(losses - optimism, 0.0)
        logits = tl.where(possible, logits, float("-inf"))
        current = tl.exp(logits - tl.max(logits, axis=2)[:, :, None])
        current /= tl.sum(current, axis=2)[:, :, None]
    u = tl.load(uniforms + seed * rows + n, mask=here, other=0.0)
    reached = tl.cumsum(current, axis=2)
    goal = u[:, None] * tl.sum(current, axis=2)
    passed = (reached <= goal[:, :, None]) & (tl.arange(0, wide) < actions - 1)[None, None, :]
    action = tl.sum(passed.to(tl.int32), axis=2).to(tl.uint8)
    cells = chosen + (seed * runs + own)[None, :] * rows + n[:, None]
    tl.store(cells, action, mask=here[:, None] & (own < runs)[None, :])


_BLOCK = 128
"""Cells of a program: a row has a cell per worse action, rounded up to a power of two."""
_LOOK = 64
"""Steps between two checks of whether a program is finished."""


def can_update() -> bool:
    """Return whether the kernel can be built here."""
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


_ROWS_OF_DRAWS = 1024
"""Rows of a program."""


def suits_draws(probabilities: Array, u: Array) -> bool:
    """Return whether the kernel draws runs (S, R, n, A) whose uniforms (S, 1, n) are shared."""
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
    grid = (triton.cdiv(rows, _ROWS_OF_DRAWS) * seeds * runs,)
    _draw[grid](
        probabilities, u, chosen, rows, runs, actions, *strides, _ROWS_OF_DRAWS, num_warps=4
    )
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
