"""Runs of rivals that act every round: all seeds and settings at once, as in the engine.

Between two changes of the policy nothing changes, so these rounds are one product. With lag 0 the
policy changes after every round, as published; tests hold that form to a literal loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.lab.rivals.coded_bandit import CodedBandit
from discreet.lab.rivals.coded_runs import CodedRuns
from discreet.lab.rivals.linear_runs import PIECE, LinearRuns
from discreet.lab.rivals.rival_contract import RivalPlan, Rows
from discreet.simulate.engine import Machine
from discreet.simulate.played_batches import shuffle

HELD = 8
"""Numbers that a run holds at once for each entry of its blocks, and for each row and action."""


def run(
    plans: Sequence[RivalPlan],
    features: np.ndarray[Any, Any],
    truth: np.ndarray[Any, Any],
    seeds: Sequence[int],
    machine: Machine | None = None,
    rounds: int | None = None,
    users: Any = None,
) -> np.ndarray[Any, Any]:
    """Progressive-validation loss at the ends of the default batches: (plans, seeds, batches).

    ``features`` (T, p) are mapped already and ``truth`` are labels (T,). Seeds have the rows,
    uniforms and order that they have in the engine.
    """
    if users is not None:
        raise InvalidInput(
            "users must be None for rivals, whose unit is a decision; got ids. Leave them out."
        )
    machine = machine or Machine()
    rounds = min(rounds or len(features), len(features))
    noted = np.cumsum(replace(RivalPlan.schedule, horizon=rounds).lengths())
    results = np.full((len(plans), len(seeds), len(noted)), np.nan)
    groups: dict[Any, list[int]] = defaultdict(list)
    for i, plan in enumerate(plans):
        codes = plan.rival.codes if isinstance(plan.rival, CodedBandit) else 0
        groups[plan.rival.clock(rounds), codes].append(i)
    for (clock, codes), members in groups.items():
        for some, some_seeds in _parts(members, plans[members[0]], rounds, len(seeds), machine):
            chosen = [seeds[s] for s in some_seeds]
            rows = _rows(features, truth, chosen, machine, rounds)
            kind = CodedRuns if codes else LinearRuns
            stack = kind([plans[i] for i in some], clock, rounds, chosen)
            lost = np.stack(list(stack.play(rows, noted)), axis=-1)  # (seeds, runs, batches)
            results[np.ix_(some, some_seeds)] = np.moveaxis(lost, 1, 0).cumsum(-1) / noted
    return results


def _rows(features: Any, truth: Any, seeds: Sequence[int], machine: Machine, rounds: int) -> Rows:
    """The rows of a data set in each seed's order."""
    drawn = [shuffle(seed, len(features)) for seed in seeds]
    order = machine.array(np.stack([each[:rounds] for each, _ in drawn]))
    u = np.stack([each[:rounds] for _, each in drawn])[:, None]
    below_one = float(np.nextafter(np.asarray(1.0, machine.dtype), np.asarray(0.0, machine.dtype)))
    x, y = machine.array(features), machine.array(truth)
    uniforms = machine.array(np.minimum(u, below_one))
    return Rows(x[order][:, None], y[order][:, None], uniforms)


def _parts(
    members: Sequence[int], plan: RivalPlan, rounds: int, seeds: int, machine: Machine
) -> Iterator[tuple[list[int], list[int]]]:
    """Runs and seeds that fit into the memory together."""
    ends = plan.rival.clock(rounds).ends(rounds)
    longest = min(PIECE, max(after - before for before, after in pairwise([0, *ends])))
    entries = plan.n_actions * (plan.p**2 + longest)
    together = max(1, machine.memory // (HELD * np.dtype(machine.dtype).itemsize * entries))
    seeds_at_once = min(seeds, together)
    runs_at_once = max(1, together // seeds_at_once)
    for first in range(0, len(members), runs_at_once):
        for seed in range(0, seeds, seeds_at_once):
            chosen = list(range(seed, min(seeds, seed + seeds_at_once)))
            yield list(members[first : first + runs_at_once]), chosen
