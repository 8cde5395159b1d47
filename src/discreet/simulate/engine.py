"""Engine: all runs of a data set at once; seeds × configurations become a few matrix products.

Policies and mechanisms are those of a learner. Plans that differ only in numbers are stacked into
families; a family plays all its runs and seeds batch by batch. Runs are independent, so a family
is cut into as many parts as the memory budget needs, with the same results.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter

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
from discreet.simulate.evaluation import refuse_imported
from discreet.simulate.played_batches import PlayedOffers, play, played_control, shuffle
from discreet.types import Array, NumpyArray, Values


@dataclass(frozen=True)
class JointRuns(Policy):
    """Policies of one or more classes side by side: each plays its own runs of one mechanism."""

    members: tuple[tuple[Policy, int], ...]

    def probabilities(self, released: PolicyView, features: Array) -> Array:
        return self._each(released, features, None, -2)

    def sample(self, released: PolicyView, features: Array, u: Array) -> Array:
        return self._each(released, features, u, -1)

    def _each(self, released: PolicyView, features: Array, u: Array | None, axis: int) -> Array:
        """Apply each policy to its runs, some rows at a time; ``axis`` is that of the rows."""
        offered = isinstance(features, OfferedRows)

        def decide(policy: Policy, seen: PolicyView, rows: slice) -> Array:
            some = features if offered else features[..., rows, :]
            if u is None:
                return policy.probabilities(seen, some)
            return policy.sample(seen, some, u[..., rows, :])

        everything = slice(0, features.shape[-2])
        if released.latest is None:  # all begin in the same way
            return decide(self.members[0][0], released, everything)
        answers, first = [], 0
        for policy, runs in self.members:
            seen, blocks = released._runs(slice(first, first + runs)), [everything]
            if not offered:
                blocks = row_blocks(features.shape[-2], runs * released.n_actions, features)
            answer = _joined([decide(policy, seen, rows) for rows in blocks], axis)
            shape = (answer.shape[0], runs, *answer.shape[2:])  # Uniform has one answer for all
            answers.append(namespace(answer).broadcast_to(answer, shape))
            first += runs
        return _joined(answers, 1)


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
    guardrail_sums: None = None  # a simulation has no reports of guardrails
    planned: Schedule = field(default_factory=Schedule)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Family:
        """Stack plans in an order that keeps policies of one class together."""
        policies = [plan.played_policy for plan in plans]
        groups = groupby(zip(structures(policies), policies, strict=True), key=itemgetter(0))
        same = [[policy for _, policy in group] for _, group in groups]
        members = tuple((stack(policies), len(policies)) for policies in same)
        one = plans[0]  # whose control and horizon all share, where there is a control
        sums = None if one.control is None else stack([plan.loss_sums for plan in plans])
        mechanism = stack([plan.mechanism for plan in plans])
        control = one.control, one.control_action, sums, None, one.schedule
        return cls(JointRuns(members), mechanism, one.feedback, *control)


@dataclass(frozen=True)
class Machine:
    """Machine of a run: a torch device name or "numpy", a floating type, a memory budget."""

    device: str = "numpy"
    dtype: str = "float64"
    memory: int = 2**31

    def array(self, values: NumpyArray) -> Array:
        """Return numbers on this machine, floats in its floating type."""
        if values.dtype.kind == "f":
            values = values.astype(self.dtype)
        if self.device == "numpy":
            return values
        import torch

        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def run(
    plans: Sequence[Plan],
    features: NumpyArray | PlayedOffers,
    truth: NumpyArray,
    seeds: Sequence[int],
    machine: Machine | None = None,
    rounds: int | None = None,
    users: Values = None,
) -> NumpyArray:
    """Return the progressive-validation loss at the end of every batch: (plans, seeds, batches).

    ``features`` (T, p) are mapped already, or offers of T rounds, and ``truth`` are labels (T,),
    losses (T, A) or those of offered actions (T, K); all plans share their actions and their
    batches. ``rounds`` ends each run before its rows end. ``users`` (T,) are the ids of people, if
    plans have the unit "user".
    """
    summed, ends = summed_losses(plans, features, truth, seeds, machine, rounds, users=users)
    return np.asarray(summed[..., 0] / ends)


def summed_losses(
    plans: Sequence[Plan],
    features: NumpyArray | PlayedOffers,
    truth: NumpyArray,
    seeds: Sequence[int],
    machine: Machine | None = None,
    rounds: int | None = None,
    groups: NumpyArray | None = None,
    users: Values = None,
) -> tuple[NumpyArray, NumpyArray]:
    """Return losses summed up to the end of every batch, (plans, seeds, batches, G), and the ends.

    ``groups`` (T,) are the groups 0 … G−1 of the rows; without it all rows are of one.
    """
    machine = machine or Machine()
    _refuse_unlike(plans)
    of_users = plans[0].participation is not None
    owners = user_ids("users", users, len(features), needed=of_users, single=False)
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
        """A mask (S, 1, T) of the slots that count for their owners in each seed's order."""
        if people is None or often is None:
            return None
        orders = [shuffle(seed, len(people))[0][:rounds] for seed in chosen_seeds]
        lengths = schedule.lengths()
        masks = [slots_that_count(people[order], lengths, often) for order in orders]
        return machine.array(np.stack(masks)[:, None])

    @lru_cache(maxsize=1)
    def family_of(indices: tuple[int, ...]) -> Family:
        return Family.of([plans[i] for i in indices])

    # Offers of different lengths have another order in each seed.
    alone = isinstance(features, PlayedOffers) and features.sizes is not None
    width = features.offered.count if isinstance(features, PlayedOffers) else None
    cut = memory_parts(plans, features.shape, schedule, 1 if alone else len(seeds), machine, width)
    if alone:
        cut = ((indices, [seed]) for indices, _ in list(cut) for seed in range(len(seeds)))
    for indices, some_seeds in cut:
        one, some = plans[indices[0]], tuple(seeds[s] for s in some_seeds)
        family, n_actions = family_of(tuple(indices)), one.n_actions
        counts = slots_of(some, one.participation)
        rows = rows_of(some, precise_machine(one, machine))
        found = _play_family(family, n_actions, schedule, rows, some, kinds, counts)
        results[np.ix_(indices, some_seeds)] = np.moveaxis(found, 2, 0).cumsum(axis=2)
    return results, ends


def _refuse_unlike(plans: Sequence[Plan]) -> None:
    """Refuse plans that cannot be played together, or need ``evaluate``."""
    for plan in plans:
        refuse_imported(plan)
    kinds = {(replace(plan.schedule, horizon=None), plan.participation is None) for plan in plans}
    alone = any(plan.prior or (plan.control and plan.participation) for plan in plans)
    if len(kinds) > 1 or alone:
        raise InvalidInput(
            "plans must have one unit, one schedule but for the horizon, no prior, and no control "
            "share for users, where several are played at once; some differ. Call "
            "evaluate(plan, contexts, labels, …) for each."
        )


def _shuffled(
    features: NumpyArray | PlayedOffers,
    truth: NumpyArray,
    seeds: Sequence[int],
    machine: Machine,
    rounds: int,
    groups: NumpyArray | None,
) -> tuple[Array, ...]:
    """Return features (S, 1, T, p), truth (S, 1, T, …), uniforms (S, 1, T, 2) and any groups
    (S, 1, T), in each seed's order.
    """
    drawn = [shuffle(seed, len(features)) for seed in seeds]
    orders = np.stack([order[:rounds] for order, _ in drawn])
    below_one = 1.0 - np.finfo(machine.dtype).epsneg
    u = np.minimum(np.stack([each[:rounds] for _, each in drawn])[:, None], below_one)
    order = machine.array(orders)
    if isinstance(features, PlayedOffers):
        x = features.in_order(orders, machine.array)
    else:
        x = machine.array(features)[order][:, None]
    others = [machine.array(each)[order][:, None] for each in (truth, groups) if each is not None]
    return x, others[0], machine.array(u), *others[1:]


def _play_family(
    family: Family,
    n_actions: int,
    schedule: Schedule,
    rows: tuple[Array, ...],
    seeds: Sequence[int],
    kinds: int,
    counts: Array | None = None,
) -> NumpyArray:
    """Return losses of each batch, summed by group: (seeds, batches, runs, G)."""
    released = Released(n_actions, schedule)
    features, truth, u, *groups = rows
    control = None
    if family.control is not None:
        control = played_control(family.control, family.planned, sum(schedule.lengths()), None)
        if namespace(u) is not np:
            control = namespace(u).asarray(control, device=u.device)
    release = partial(fit_batch, family, SeededNoise(tuple(seeds)))
    played = play(family, released, features, truth, u, release, counts, control)
    summed = [
        _summed(batch.incurred, schedule.start(number), kinds, *groups)
        for number, batch in enumerate(played, start=1)
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
                some_seeds = list(range(seed, min(seeds, seed + seeds_at_once)))
                yield members[first : first + size], some_seeds


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
    offered: int | None,
    drawn: bool,
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
    double = _double(plan)
    held = itemsize * per_row * pairs + (8 if double else itemsize) * HELD_PER_ENTRY * blocks
    if double and whole:  # weights, and their products with losses
        held += 2 * (8 - itemsize) * pairs
    if offered is not None:  # each run has the features of the pairs that it chose
        held += 8 * HELD_STRETCHED * rows * p
    if plan.pooling is not None:
        # In double precision: the statistics and matrices of all batches, the pool, and the rows'
        # weights, losses and lengths where they are stretched.
        matrices = HELD_PER_MATRIX * p * p * plan.pooling.stretched
        batches = len(remembered(schedule.lengths(), schedule.half_life))
        stored = batches * (blocks + matrices) + HELD_PER_ENTRY * blocks
        held += 8 * (stored + HELD_STRETCHED * rows * plan.blocks * plan.pooling.stretched)
    return held
