"""Engine: all runs of a data set at once; seeds × configurations become a few matrix products.

Policies and mechanisms are those of a learner. Plans that differ only in numbers are stacked into
families; a family plays all its runs and seeds batch by batch. Runs are independent, so a family
is cut into as many parts as the memory budget needs, with the same results.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
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
from discreet.plan.plan import Plan
from discreet.policies import Policy
from discreet.privacy.budget import Participation
from discreet.privacy.events import Event
from discreet.privacy.noise import SeededNoise
from discreet.releases.policy_view import PolicyView
from discreet.releases.released import Released
from discreet.simulate.evaluation import refuse_imported
from discreet.simulate.memory_budget import memory_parts, precise_machine
from discreet.simulate.played_batches import play, played_control, shuffle
from discreet.simulate.played_offers import PlayedOffers
from discreet.types import Array, NumpyArray, Values


@dataclass(frozen=True)
class JointRuns(Policy):
    """Policies of one or more classes side by side: each plays its own runs of one mechanism."""

    members: tuple[tuple[Policy, int], ...]

    def probabilities(self, released: PolicyView, features: Array) -> Array:
        def decide(policy: Policy, seen: PolicyView, rows: slice) -> Array:
            return policy.probabilities(seen, _some(features, rows))

        return self._each(released, features, decide, -2)

    def sample(self, released: PolicyView, features: Array, u: Array) -> Array:
        def decide(policy: Policy, seen: PolicyView, rows: slice) -> Array:
            return policy.sample(seen, _some(features, rows), u[..., rows, :])

        return self._each(released, features, decide, -1)

    def _each(
        self,
        released: PolicyView,
        features: Array,
        decide: Callable[[Policy, PolicyView, slice], Array],
        axis: int,
    ) -> Array:
        """Apply each policy to its runs, some rows at a time; ``axis`` is that of the rows."""
        everything = slice(0, features.shape[-2])
        if released.latest is None:  # all begin in the same way
            return decide(self.members[0][0], released, everything)
        answers, first = [], 0
        for policy, runs in self.members:
            seen, blocks = released._runs(slice(first, first + runs)), [everything]
            if not isinstance(features, OfferedRows):
                blocks = row_blocks(features.shape[-2], runs * released.n_actions, features)
            answer = _joined([decide(policy, seen, rows) for rows in blocks], axis)
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
    guardrail_sums: None = None  # nobody reports guardrails in a simulation
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
    people: NumpyArray, schedule: Schedule, seeds: Sequence[int], often: Participation
) -> NumpyArray:
    """Return a mask (S, 1, T) of the slots that count for their owners in each seed's order."""
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
