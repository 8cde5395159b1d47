"""All runs of a data set at once: seeds × configurations become a few matrix products.

The policies and mechanisms are the core's own. Plans that differ only in numbers are stacked into
families; a family plays all its runs and seeds batch by batch. Runs never meet, so a family is
cut into as many parts as the memory budget asks for, and the results are the same.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from discreet.arrays.backend import namespace, row_blocks, to_numpy
from discreet.arrays.stacking import stack, structures
from discreet.batches.release_batch import fit_batch
from discreet.batches.users import numbered, slots_that_count, user_ids
from discreet.design.control import Control
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.features.offered import OfferedRows
from discreet.oracles import Mechanism
from discreet.oracles.mechanisms.loss_sums import LossSums
from discreet.oracles.mechanisms.moments import needs_double
from discreet.plan.plan import Plan
from discreet.policies import Policy
from discreet.privacy.budget import Participation
from discreet.privacy.events import Event
from discreet.privacy.noise import SeededNoise
from discreet.releases.policy_view import PolicyView
from discreet.releases.released import Released
from discreet.releases.statistics import remembered
from discreet.simulate.environment import refuse_imported
from discreet.simulate.played_batches import play, played_control, shuffle
from discreet.simulate.played_offers import PlayedOffers
from discreet.types import Array

HELD_PER_ROW = 14
"""Numbers that a run holds at once for each row and action, measured on the widest rules."""
HELD_IN_BLOCKS = 7
"""The same on a CPU, where most steps take some rows at a time."""
HELD_PER_ENTRY = 6
"""Numbers that a run holds at once for each entry of its matrices."""
HELD_PER_MATRIX = 3
"""A batch's matrix, its inverse and the matrix of the next batch."""
HELD_STRETCHED = 4
"""Numbers more for each row and action, where rows are stretched."""


@dataclass(frozen=True)
class JointRuns(Policy):
    """Policies of one or more classes side by side: each plays its own runs of one mechanism."""

    members: tuple[tuple[Policy, int], ...]

    def probabilities(self, released: PolicyView, features: Array) -> Array:
        def ask(policy: Policy, seen: PolicyView, rows: slice) -> Array:
            return policy.probabilities(seen, _some(features, rows))

        return self._each(released, features, ask, -2)

    def sample(self, released: PolicyView, features: Array, u: Array) -> Array:
        def ask(policy: Policy, seen: PolicyView, rows: slice) -> Array:
            return policy.sample(seen, _some(features, rows), u[..., rows, :])

        return self._each(released, features, ask, -1)

    def _each(
        self,
        released: PolicyView,
        features: Array,
        ask: Callable[[Policy, PolicyView, slice], Array],
        axis: int,
    ) -> Array:
        """Each policy for its runs, some rows at a time; ``axis`` is that of the rows."""
        everything = slice(0, features.shape[-2])
        if released.latest is None:  # all begin alike
            return ask(self.members[0][0], released, everything)
        answers, first = [], 0
        for policy, runs in self.members:
            seen, blocks = released._runs(slice(first, first + runs)), [everything]
            if not isinstance(features, OfferedRows):
                blocks = row_blocks(features.shape[-2], runs * released.n_actions, features)
            answer = _joined([ask(policy, seen, rows) for rows in blocks], axis)
            shape = (answer.shape[0], runs, *answer.shape[2:])  # Uniform answers once for all
            answers.append(namespace(answer).broadcast_to(answer, shape))
            first += runs
        return _joined(answers, 1)


def _some(features: Array, rows: slice) -> Array:
    return features if isinstance(features, OfferedRows) else features[..., rows, :]


def _joined(parts: list[Array], axis: int) -> Array:
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=axis)


@dataclass(frozen=True)
class Family:
    """Plans whose mechanisms differ only in numbers, as one stacked mechanism and its policies."""

    played_policy: Policy
    mechanism: Mechanism
    feedback: str
    control: Control | None = None
    control_action: int | None = None
    loss_sums: LossSums | None = None
    planned: Schedule = field(default_factory=Schedule)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Family:
        """Plans in an order that keeps policies of one class together."""
        policies = [plan.played_policy for plan in plans]
        groups = groupby(zip(structures(policies), policies, strict=True), key=itemgetter(0))
        alike = [[policy for _, policy in group] for _, group in groups]
        members = tuple((stack(policies), len(policies)) for policies in alike)
        one = plans[0]  # whose control and horizon all share, where there is a control
        sums = None if one.control is None else stack([plan.loss_sums for plan in plans])
        mechanism = stack([plan.mechanism for plan in plans])
        control = one.control, one.control_action, sums, one.schedule
        return cls(JointRuns(members), mechanism, one.feedback, *control)


@dataclass(frozen=True)
class Machine:
    """Where to compute: a torch device name or "numpy", a floating type, a memory budget."""

    device: str = "numpy"
    dtype: str = "float64"
    memory: int = 2**31

    def array(self, values: np.ndarray[Any, Any]) -> Array:
        """Numbers on this machine, floats in its floating type."""
        if values.dtype.kind == "f":
            values = values.astype(self.dtype)
        if self.device == "numpy":
            return values
        import torch

        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def run(
    plans: Sequence[Plan],
    features: np.ndarray[Any, Any] | PlayedOffers,
    truth: np.ndarray[Any, Any],
    seeds: Sequence[int],
    machine: Machine | None = None,
    rounds: int | None = None,
    users: Any = None,
) -> np.ndarray[Any, Any]:
    """Progressive-validation loss at the end of every batch: (plans, seeds, batches).

    ``features`` (T, p) are mapped already, or offers of T rounds, and ``truth`` are labels (T,),
    losses (T, A) or those of what is offered (T, K); all plans share their actions and their
    batches. ``rounds`` ends each run before its rows end.
    ``users`` (T,) are the ids of people, where plans have the unit "user".
    """
    summed, ends = lost(plans, features, truth, seeds, machine, rounds, users=users)
    return np.asarray(summed[..., 0] / ends)


def lost(
    plans: Sequence[Plan],
    features: np.ndarray[Any, Any] | PlayedOffers,
    truth: np.ndarray[Any, Any],
    seeds: Sequence[int],
    machine: Machine | None = None,
    rounds: int | None = None,
    groups: np.ndarray[Any, Any] | None = None,
    users: Any = None,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Losses summed up to the end of every batch, and these ends: (plans, seeds, batches, G).

    ``groups`` (T,) are the groups 0 … G−1 of the rows; without it all rows are of one.
    """
    machine = machine or Machine()
    schedules = {plan.schedule for plan in plans}
    if len({replace(schedule, horizon=None) for schedule in schedules}) > 1:
        raise InvalidInput(
            "plans must have the same first_batch, growth, longest_batch and half_life; some "
            "differ. Run each kind alone."
        )
    of_users = {plan.participation is not None for plan in plans}
    if len(of_users) > 1:
        raise InvalidInput(
            "plans must have one unit; some have 'decision' and some 'user'. Run each kind alone."
        )
    if True in of_users and any(plan.control is not None for plan in plans):
        raise InvalidInput(
            "plans must have no control share where several are played for users; some have one. "
            "Call evaluate(plan, contexts, labels, users=…) for each."
        )
    for plan in plans:
        refuse_imported(plan)
        if plan.prior is not None:
            raise InvalidInput(
                "plans must have no prior where several are played at once; some have one. "
                "Call evaluate(plan, contexts, labels) for each."
            )
    owners = user_ids("users", users, len(features), needed=True in of_users, single=False)
    people = None if owners is None else numbered(owners)
    rounds = min(rounds or len(features), len(features))
    schedule = replace(plans[0].schedule, horizon=rounds)
    ends = np.cumsum(schedule.lengths())
    kinds = 1 if groups is None else int(groups.max()) + 1
    results = np.full((len(plans), len(seeds), len(ends), kinds), np.nan)

    @lru_cache(maxsize=1)
    def rows_of(chosen_seeds: tuple[int, ...], used: Machine) -> tuple[Array, ...]:
        return _shuffled(features, truth, chosen_seeds, used, rounds, groups)

    @lru_cache(maxsize=1)
    def slots_of(chosen_seeds: tuple[int, ...], often: Participation | None) -> Array | None:
        if people is None or often is None:
            return None
        return machine.array(_slots(people, schedule, chosen_seeds, often))

    @lru_cache(maxsize=1)
    def family_of(indices: tuple[int, ...]) -> Family:
        return Family.of([plans[i] for i in indices])

    # Offers of different lengths have an order of their own in each seed.
    alone = isinstance(features, PlayedOffers) and features.sizes is not None
    width = features.offered.count if isinstance(features, PlayedOffers) else None
    cut = parts(plans, features.shape, schedule, 1 if alone else len(seeds), machine, width)
    if alone:
        cut = ((indices, [seed]) for indices, _ in list(cut) for seed in range(len(seeds)))
    for indices, some_seeds in cut:
        one, some = plans[indices[0]], tuple(seeds[s] for s in some_seeds)
        family, n_actions = family_of(tuple(indices)), one.n_actions
        counts = slots_of(some, one.participation)
        rows = rows_of(some, _machine(one, machine))
        found = _play_family(family, n_actions, schedule, rows, some, kinds, counts)
        results[np.ix_(indices, some_seeds)] = np.moveaxis(found, 2, 0).cumsum(axis=2)
    return results, ends


def _shuffled(
    features: Any, truth: Any, seeds: Sequence[int], machine: Machine, rounds: int, groups: Any
) -> tuple[Array, ...]:
    """Features (S, 1, T, p), truth (S, 1, T, …) and uniforms (S, 1, T, 2) in each seed's order.

    Where there are groups they come last, (S, 1, T).
    """
    drawn = [shuffle(seed, len(features)) for seed in seeds]
    orders, uniforms = zip(*((order[:rounds], u[:rounds]) for order, u in drawn), strict=True)
    below_one = np.nextafter(np.asarray(1.0, machine.dtype), np.asarray(0.0, machine.dtype))
    u = np.minimum(np.stack(uniforms)[:, None], float(below_one))
    order = machine.array(np.stack(orders))
    y = machine.array(truth)
    if isinstance(features, PlayedOffers):
        x = features.in_order(np.stack(orders), machine.array)
    else:
        x = machine.array(features)[order][:, None]
    rows = x, y[order][:, None], machine.array(u)
    return rows if groups is None else (*rows, machine.array(groups)[order][:, None])


def _slots(
    people: np.ndarray[Any, Any], schedule: Schedule, seeds: Sequence[int], often: Participation
) -> np.ndarray[Any, Any]:
    """Which slots count for their owners in each seed's order: (S, 1, T)."""
    lengths = schedule.lengths()
    orders = [shuffle(seed, len(people))[0][: sum(lengths)] for seed in seeds]
    return np.stack([slots_that_count(people[order], lengths, often) for order in orders])[:, None]


def _play_family(
    family: Family,
    n_actions: int,
    schedule: Schedule,
    rows: tuple[Array, ...],
    seeds: Sequence[int],
    kinds: int,
    counts: Array | None = None,
) -> np.ndarray[Any, Any]:
    """Losses of each batch, summed by group: (seeds, batches, runs, G)."""
    released = Released(n_actions, schedule)
    features, truth, u, *groups = rows
    control = None
    if family.control is not None:
        control = played_control(family.control, family.planned, sum(schedule.lengths()), None)
        if namespace(u) is not np:
            control = namespace(u).asarray(control, device=u.device)
    release = partial(fit_batch, family, SeededNoise(tuple(seeds)))
    played = play(family, released, features, truth, u, release, counts, control)
    starts = (schedule.start(number) for number in itertools.count(1))
    summed = [
        _summed(batch.incurred, start, kinds, *groups)
        for start, batch in zip(starts, played, strict=False)
    ]
    # Fetched at the end, since to fetch something is to wait for a GPU.
    batches = [np.stack(list(map(to_numpy, batch)), axis=-1) for batch in summed]
    runs = max(batch.shape[1] for batch in batches)
    counted = [np.broadcast_to(batch, (len(seeds), runs, kinds)) for batch in batches]
    return np.stack(counted, axis=1)


def _summed(incurred: Array, start: int, kinds: int, groups: Array | None = None) -> list[Array]:
    """Losses (S, runs, n) of the rounds from ``start`` on, summed for each group: (S, runs)."""
    if groups is None:
        return [incurred.sum(-1)]
    of_batch = groups[..., start : start + incurred.shape[-1]]
    return [(incurred * (of_batch == each)).sum(-1) for each in range(kinds)]


def parts(
    plans: Sequence[Plan],
    shape: tuple[int, ...],
    schedule: Schedule,
    seeds: int,
    machine: Machine,
    offered: int | None = None,
) -> Iterator[tuple[list[int], list[int]]]:
    """Families cut to the memory budget: indices of plans and of seeds."""
    groups: dict[Any, list[int]] = defaultdict(list)
    mechanisms = structures(plan.mechanism for plan in plans)
    for i, (plan, mechanism) in enumerate(zip(plans, mechanisms, strict=True)):
        # Runs without noise keep their blocks: beside dense ones they would become dense too. And
        # their sums are in double precision, which those of other runs need not be.
        # Plans with another participation have other slots that count, and plans with another
        # horizon other slots of the control.
        kind = (mechanism, plan.feedback, _dense(plan), _double(plan), plan.participation)
        groups[*kind, plan.control, plan.control and plan.horizon].append(i)
    policies = [repr(each) for each in structures(plan.played_policy for plan in plans)]
    for members in groups.values():
        members.sort(key=policies.__getitem__)
        one = plans[members[0]]
        each = _held_by_a_run(one, shape, schedule, _machine(one, machine), offered)
        together = max(1, machine.memory // each)
        # A CPU forms the products of a seed's rows once for all runs; a GPU wants few launches.
        seeds_at_once = min(seeds, together) if machine.device == "cuda" else 1
        runs_at_once = max(1, together // seeds_at_once)
        rounds = math.ceil(len(members) / runs_at_once)
        size = math.ceil(len(members) / rounds)
        for first in range(0, len(members), size):
            for seed in range(0, seeds, seeds_at_once):
                last = min(seeds, seed + seeds_at_once)
                yield members[first : first + size], list(range(seed, last))


def _dense(plan: Plan) -> bool:
    """Return whether a run holds dense matrices over all actions, coupled by noise."""
    return plan.budget.private and getattr(plan.mechanism, "couples_actions", False)


def _double(plan: Plan) -> bool:
    """Return whether sums are in double precision, as for some regressions without noise."""
    response = getattr(plan.mechanism, "response", 1.0)
    return needs_double(response, getattr(plan.oracle, "ridge", 0.0))


def _machine(plan: Plan, machine: Machine) -> Machine:
    """Return the machine, with float64 for pooled statistics without noise.

    Rounding of float32 features makes small eigenvalues of collinear columns arbitrary.
    """
    exact = plan.pooling is not None and _double(plan)
    return replace(machine, dtype="float64") if exact else machine


def _held_by_a_run(
    plan: Plan, shape: tuple[int, ...], schedule: Schedule, machine: Machine, offered: int | None
) -> int:
    """Bytes that one run of one seed holds at its largest batch."""
    rows, p = max(schedule.lengths()), shape[1]
    itemsize = np.dtype(machine.dtype).itemsize
    whole = machine.device == "cuda" or offered is not None
    per_row = HELD_PER_ROW if whole else HELD_IN_BLOCKS
    blocks = plan.blocks * p * p
    if _dense(plan):
        blocks *= 2 * plan.blocks  # a dense matrix is also copied, factored and inverted
    pairs = rows * (offered or plan.n_actions)
    held = itemsize * per_row * pairs + (8 if _double(plan) else itemsize) * HELD_PER_ENTRY * blocks
    if _double(plan) and whole:  # weights, and their products with losses
        held += 2 * (8 - itemsize) * pairs
    if offered is not None:  # each run has features of its own, of the pairs that it chose
        held += 8 * HELD_STRETCHED * rows * p
    if plan.pooling is not None:
        # In double precision: the statistics and matrices of all batches, the pool, and the rows'
        # weights, losses and lengths where they are stretched.
        matrices = HELD_PER_MATRIX * p * p * plan.pooling.stretched
        batches = len(remembered(schedule.lengths(), schedule.half_life))
        kept = batches * (blocks + matrices) + HELD_PER_ENTRY * blocks
        held += 8 * (kept + HELD_STRETCHED * rows * plan.blocks * plan.pooling.stretched)
    return held
