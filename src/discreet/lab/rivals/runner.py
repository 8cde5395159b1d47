"""Runs of rivals that act every round: all seeds and settings at once, as in the engine.

Between two changes of the policy nothing changes, so these rounds are one product. With lag 0 the
policy changes after every round, as published; tests hold that form to a literal loop.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet.arrays import backend, linear_algebra
from discreet.errors import InvalidInput
from discreet.lab.rivals import coded_bandit
from discreet.lab.rivals.linucb_rivals import AdaPrivateTS
from discreet.lab.rivals.rival_contract import NoiseClock, RivalPlan
from discreet.policies.allocation import draw, even_split
from discreet.privacy.noise import SeededNoise
from discreet.simulate.engine import Machine
from discreet.simulate.played_batches import shuffle
from discreet.types import Array, NumpyArray

PIECE = 2048
"""Rows that are summed at once: their products b ⊗ b are held meanwhile."""


class RivalRows(NamedTuple):
    """Features (S, 1, T, p), labels (S, 1, T) or losses (S, 1, T, A), and uniforms (S, 1, T, 2).

    Rows are in each seed's order; ``data`` are all features (T, p) in their own order.
    """

    features: Array
    truth: Array
    uniforms: Array
    data: NumpyArray

    def losses(self, chosen: Array, some: slice) -> Array:
        """Return the losses (S, R, n) of the actions chosen in some rounds; booleans for labels."""
        if self.truth.ndim == 3:
            return chosen != self.truth[..., some]
        known, xp = self.truth[..., some, :], backend.namespace(chosen)
        known = xp.broadcast_to(known, (*chosen.shape, known.shape[-1]))
        return xp.take_along_axis(known, chosen[..., None], axis=-1)[..., 0]


@dataclass
class RivalRuns:
    """Runs of rivals with one clock, computed together.

    They ``choose`` actions for some rounds, ``add`` what people report, and ``change`` the policy
    with the clock.
    """

    plans: Sequence[RivalPlan]
    clock: NoiseClock
    rounds: int
    seeds: Sequence[int]
    rows: RivalRows

    pieces: ClassVar[int | None] = None
    """Largest number of rows between two sums; None for all up to the next change."""

    def numbers(self, values: Iterable[float], trailing: int = 2) -> Array:
        """Return one number per run, broadcast against the features."""
        return backend.per_run(np.array([*values], dtype=np.float64), self.rows.features, trailing)

    def uniformly(self, u: Array) -> Array:
        """Return the actions (S, 1, n) before the first policy."""
        xp = backend.namespace(u)
        return xp.astype(u * self.plans[0].n_actions, xp.int64)


@dataclass
class CodedRuns(RivalRuns):
    """Runs of P2B: counts of reports instead of sums of products."""

    def __post_init__(self) -> None:
        rivals = [
            plan.rival for plan in self.plans if isinstance(plan.rival, coded_bandit.CodedBandit)
        ]
        chances = [
            coded_bandit.sampling(plan.budget, each.constants)
            for plan, each in zip(self.plans, rivals, strict=True)
        ]
        self.codes = coded_bandit.coded(
            self.rows.features, coded_bandit.code_centres(self.rows.data, rivals[0].codes)
        )
        self.reports = self.numbers((share for share, _ in chances), 1)
        whole = (each.constants == "tight" for each in rivals)
        self.limits = self.numbers(least for _, least in chances), self.numbers(whole)
        self.width = self.numbers(each.width for each in rivals)
        self.waiting: Array = 0.0  # (S, R, A, K, 2): this batch without and with a loss
        self.passed: Array = 0.0
        self.table: Array = None

    def choose(self, some: slice, u: Array) -> Array:
        if self.table is None:
            return self.uniformly(u)
        return draw(even_split(backend.apply_rows(self.codes[..., some, :], self.table)), u)

    def add(self, some: slice, taken: Array, losses: Array) -> None:
        here, xp = self.codes[..., some, :], backend.namespace(self.codes)
        taken = taken & (self.rows.uniforms[..., some, 1] < self.reports)[..., None]
        reported = taken & ~losses[..., None], taken & losses[..., None]
        sums = [backend.weighted_sums(xp.astype(each, here.dtype), here) for each in reported]
        self.waiting = self.waiting + xp.stack(sums, axis=-1)

    def change(self, end: int) -> None:  # noqa: ARG002
        self.passed = self.passed + coded_bandit.passed(self.waiting, *self.limits)
        self.waiting = 0.0
        count = self.passed.sum(-1)
        bonus = self.width / backend.namespace(count).sqrt(1.0 + count)
        self.table = (self.passed[..., 1] - 0.5 * count) / (1.0 + count) - bonus


@dataclass
class LinearRuns(RivalRuns):
    """Runs of LinUCB or of Thompson sampling on noisy sums."""

    pieces = PIECE

    def __post_init__(self) -> None:
        found = [plan.scales(self.rounds) for plan in self.plans]
        self.scale = {
            name: self.numbers((getattr(each, name) for each in found), 3)
            for name in vars(found[0])
        }
        self.width = self.numbers(plan.rival.width for plan in self.plans)
        self.p = self.rows.features.shape[-1]
        self.source = SeededNoise(tuple(self.seeds))
        self.noise: Iterator[Array] = repeat(None)
        if any(each.response > 0.0 for each in found):
            self.noise = self.clock.noise(self.clock.ends(self.rounds), self._drawn_unit)
        self.gram: Array = 0.0
        self.response: Array = 0.0  # Σ y·b
        self.policy: tuple[Array, Array] | None = None

    @property
    def sampled(self) -> bool:
        """Return True where values are drawn from a posterior."""
        return isinstance(self.plans[0].rival, AdaPrivateTS)

    def _drawn_unit(self, unit: int) -> Array:
        """Return standard normals (S, 1, A, p(p+1)/2 + p) of one unit, for all runs."""
        size = self.p * (self.p + 1) // 2 + self.p
        return self.source.for_batch(unit).normal("rival", (self.plans[0].n_actions, size))

    def choose(self, some: slice, u: Array) -> Array:
        x = self.rows.features[..., some, :]
        if self.policy is None:
            return self.uniformly(u)
        theta, spread = self.policy
        means, xp = backend.apply_rows(x, theta), backend.namespace(x)
        radii = xp.sqrt(backend.at_least(linear_algebra.quadratic_forms(x, spread), 0.0))
        if not self.sampled:
            return draw(even_split(means - self.width * radii), u)
        shape = x.shape[-2], self.plans[0].n_actions
        normal = self.source.for_batch(some.start).normal("posterior", shape)
        return xp.argmin(means + radii * backend.as_like(normal, x), axis=-1)

    def add(self, some: slice, taken: Array, losses: Array) -> None:
        x, xp = self.rows.features[..., some, :], backend.namespace(self.rows.features)
        taken = xp.astype(taken, x.dtype)
        self.gram = self.gram + backend.weighted_sums(taken, linear_algebra.pack_products(x))
        lost = taken * xp.astype(losses, x.dtype)[..., None]
        self.response = self.response + backend.weighted_sums(lost, x)

    def change(self, end: int) -> None:
        """Solve for θ (S, R, A, p) of y − ½ and for V⁻¹, or the covariance of a posterior."""
        noise, units, scale = next(self.noise), self.clock.units(end), self.scale
        drawn = None if noise is None else backend.as_like(noise, self.gram)
        gram, centred = noisy_sums(self.gram, self.response, drawn, scale, self.p)
        ridge = scale["ridge"] + scale["shift"] * math.sqrt(units)
        shifted = linear_algebra.unpack(gram, self.p) + ridge * linear_algebra.identity(
            self.p, gram
        )
        inverse = linear_algebra.inverse_repaired(shifted, ridge[..., 0, 0] + 0.0 * gram[..., 0])
        theta = (inverse @ centred[..., None])[..., 0]
        if self.sampled:
            counted = units * scale["posterior"] ** 2 * (inverse @ inverse)
            inverse = self.width[..., None] ** 2 * inverse + counted
        self.policy = theta, inverse


def _play(runs: CodedRuns | LinearRuns, noted: NumpyArray) -> Iterator[NumpyArray]:
    """Yield losses (S, R), summed from one recorded round to the next."""
    x, u = runs.rows.features, runs.rows.uniforms
    actions = np.arange(runs.plans[0].n_actions)[:, None]
    if not isinstance(x, np.ndarray):
        actions = backend.namespace(x).asarray(actions, device=x.device)
    lost: Array = 0.0
    changes = {*runs.clock.ends(runs.rounds)}
    stops = {*changes, *noted.tolist(), *range(0, runs.rounds, runs.pieces or runs.rounds)}
    for start, end in pairwise(sorted({0, *stops})):
        some = slice(start, end)
        chosen = runs.choose(some, u[..., some, 0])
        losses = runs.rows.losses(chosen, some)
        lost = lost + losses.sum(-1)
        if end in noted:
            summed = backend.to_numpy(lost).astype(np.float64)
            yield np.broadcast_to(summed, (len(runs.seeds), len(runs.plans)))
            lost = 0.0
        runs.add(some, (chosen[..., None, :] == actions).mT, losses)
        if end in changes and end < runs.rounds:
            runs.change(end)


def noisy_sums(
    gram: Array, response: Array, noise: Array, scale: Mapping[str, Array], p: int
) -> tuple[Array, Array]:
    """Return packed Σ b bᵀ (..., A, p(p+1)/2) and Σ (y − centre)·b (..., A, p) with noise.

    ``response`` is Σ y·b, and ``noise`` are standard normals in units of ``scale``. Off-diagonal
    entries stand twice in a norm, so each has 1/√2 of the noise of svec.
    """
    # The first feature is 1/√2, so the first row of a Gram block is Σ b / √2.
    centred = response - scale["centre"][..., 0] * math.sqrt(2.0) * gram[..., :p]
    if noise is None:
        return gram, centred
    packed = p * (p + 1) // 2
    rows, columns = linear_algebra.triangle(p)
    diagonal = backend.as_like(1.0 * (rows == columns), gram)
    law = scale["diagonal"][..., 0] * diagonal
    law = law + scale["gram"][..., 0] * math.sqrt(0.5) * (1.0 - diagonal)
    noisy = gram + law * noise[..., :packed]
    return noisy, centred + scale["response"][..., 0] * noise[..., packed:]


HELD = 8
"""Numbers that a run holds at once for each entry of its blocks, and for each row and action."""


def run(
    plans: Sequence[RivalPlan],
    features: NumpyArray,
    truth: NumpyArray,
    seeds: Sequence[int],
    machine: Machine | None = None,
    rounds: int | None = None,
    users: Any = None,
) -> NumpyArray:
    """Return the loss so far at the ends of the default batches: (plans, seeds, batches).

    ``features`` (T, p) are mapped already and ``truth`` are labels (T,) or losses (T, A); P2B takes
    labels only. Seeds have the rows, uniforms and order that they have in the engine.
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
        codes = plan.rival.codes if isinstance(plan.rival, coded_bandit.CodedBandit) else 0
        if codes and truth.ndim > 1:
            raise InvalidInput(
                "truth must be labels (T,) for P2B, which reports one bit; got losses. "
                "Leave P2B out."
            )
        sampled = isinstance(plan.rival, AdaPrivateTS)
        groups[plan.rival.clock(rounds), codes, sampled].append(i)
    for (clock, codes, _), members in groups.items():
        for some, some_seeds in _parts(members, plans[members[0]], rounds, len(seeds), machine):
            chosen = [seeds[s] for s in some_seeds]
            rows = _rows(features, truth, chosen, machine, rounds)
            kind = CodedRuns if codes else LinearRuns
            stack = kind([plans[i] for i in some], clock, rounds, chosen, rows)
            lost = np.stack(list(_play(stack, noted)), axis=-1)  # (seeds, runs, batches)
            results[np.ix_(some, some_seeds)] = np.moveaxis(lost, 1, 0).cumsum(-1) / noted
    return results


def _rows(
    features: NumpyArray, truth: NumpyArray, seeds: Sequence[int], machine: Machine, rounds: int
) -> RivalRows:
    """Return the rows of a data set in each seed's order."""
    drawn = [shuffle(seed, len(features)) for seed in seeds]
    order = machine.array(np.stack([each[:rounds] for each, _ in drawn]))
    u = np.stack([each[:rounds] for _, each in drawn])[:, None]
    below_one = float(np.nextafter(np.asarray(1.0, machine.dtype), np.asarray(0.0, machine.dtype)))
    x, y = machine.array(features), machine.array(truth)
    uniforms = machine.array(np.minimum(u, below_one))
    return RivalRows(x[order][:, None], y[order][:, None], uniforms, features)


def _parts(
    members: Sequence[int], plan: RivalPlan, rounds: int, seeds: int, machine: Machine
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield runs and seeds that fit into the memory together."""
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
