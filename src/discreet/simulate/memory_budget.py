"""Memory of simulated runs: families of plans are cut into parts that fit a budget."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.stacking import structures
from discreet.design.schedule import Schedule
from discreet.oracles.mechanisms.moments import needs_double
from discreet.plan.plan import Plan
from discreet.releases.statistics import remembered

if TYPE_CHECKING:
    from discreet.simulate.engine import Machine

HELD_PER_ROW = 14
"""Numbers that a run holds at once for each row and action, measured on the widest rules."""
HELD_IN_BLOCKS = 7
"""The same on a CPU, where most steps take some rows at a time."""
HELD_BY_KERNELS = 9
"""The same on a GPU, where a kernel draws the actions from predictions and squared radii."""
HELD_PER_ENTRY = 6
"""Numbers that a run holds at once for each entry of its matrices."""
HELD_PER_MATRIX = 3
"""A batch's matrix, its inverse and the matrix of the next batch."""
HELD_STRETCHED = 4
"""Numbers more for each row and action, where rows are stretched."""


def memory_parts(
    plans: Sequence[Plan],
    shape: tuple[int, ...],
    schedule: Schedule,
    seeds: int,
    machine: Machine,
    offered: int | None = None,
) -> Iterator[tuple[list[int], list[int]]]:
    """Cut families to the memory budget: yield indices of plans and of seeds."""
    groups: dict[object, list[int]] = defaultdict(list)
    mechanisms = structures(plan.mechanism for plan in plans)
    for i, (plan, mechanism) in enumerate(zip(plans, mechanisms, strict=True)):
        # Runs without noise keep their blocks: among dense ones they would become dense too. And
        # their sums are in double precision, which those of other runs need not be.
        # Plans with another participation have other slots that count, and plans with another
        # horizon other slots of the control.
        kind = (mechanism, plan.feedback, _dense(plan), _double(plan), plan.participation)
        groups[*kind, plan.control, plan.control and plan.horizon].append(i)
    policies = [repr(each) for each in structures(plan.played_policy for plan in plans)]
    for members in groups.values():
        members.sort(key=policies.__getitem__)
        one = plans[members[0]]
        used, drawn = precise_machine(one, machine), False
        if machine.device == "cuda":
            from discreet.policies.kernels import rule_of

            drawn = all(rule_of(plans[i].played_policy, one.n_actions) for i in members)
        each = _held_by_a_run(one, shape, schedule, used, offered, drawn)
        together = max(1, machine.memory // each)
        # A CPU forms the products of a seed's rows once for all runs; a GPU wants few launches.
        seeds_at_once = min(seeds, together) if machine.device == "cuda" else 1
        runs_at_once = max(1, together // seeds_at_once)
        rounds = math.ceil(len(members) / runs_at_once)
        size = math.ceil(len(members) / rounds)
        for first in range(0, len(members), size):
            for seed in range(0, seeds, seeds_at_once):
                yield (
                    members[first : first + size],
                    list(range(seed, min(seeds, seed + seeds_at_once))),
                )


def _dense(plan: Plan) -> bool:
    """Return whether a run has matrices over all actions: the paper's noise couples them."""
    return plan.budget.private and getattr(plan.mechanism, "couples_actions", False)


def _double(plan: Plan) -> bool:
    """Return whether sums need double precision, as some regressions without noise do."""
    ridge = getattr(plan.oracle, "ridge", 0.0)
    return needs_double(getattr(plan.mechanism, "response", 1.0), ridge)


def precise_machine(plan: Plan, machine: Machine) -> Machine:
    """Return the machine, with float64 for pooled statistics without noise.

    Rounding of float32 features makes small eigenvalues of collinear columns arbitrary.
    """
    pooled = plan.pooling is not None
    return replace(machine, dtype="float64") if pooled and _double(plan) else machine


def _held_by_a_run(
    plan: Plan,
    shape: tuple[int, ...],
    schedule: Schedule,
    machine: Machine,
    offered: int | None = None,
    drawn: bool = False,
) -> int:
    """Bytes that one run of one seed holds at its largest batch; ``drawn`` by a kernel or not."""
    rows, p = max(schedule.lengths()), shape[1]
    itemsize = np.dtype(machine.dtype).itemsize
    whole = machine.device == "cuda" or offered is not None
    per_row = HELD_PER_ROW if whole else HELD_IN_BLOCKS
    if drawn and offered is None and itemsize == 4:
        per_row = HELD_BY_KERNELS
    blocks = plan.blocks * p * p
    if _dense(plan):
        blocks *= 2 * plan.blocks  # a dense matrix is also copied, factored and inverted
    pairs = rows * (offered or plan.n_actions)
    held = itemsize * per_row * pairs + (8 if _double(plan) else itemsize) * HELD_PER_ENTRY * blocks
    if _double(plan) and whole:  # weights, and their products with losses
        held += 2 * (8 - itemsize) * pairs
    if offered is not None:  # each run has the features of the pairs that it chose
        held += 8 * HELD_STRETCHED * rows * p
    if plan.pooling is not None:
        # In double precision: the statistics and matrices of all batches, the pool, and the rows'
        # weights, losses and lengths where they are stretched.
        matrices = HELD_PER_MATRIX * p * p * plan.pooling.stretched
        batches = len(remembered(schedule.lengths(), schedule.half_life))
        kept = batches * (blocks + matrices) + HELD_PER_ENTRY * blocks
        held += 8 * (kept + HELD_STRETCHED * rows * plan.blocks * plan.pooling.stretched)
    return held
