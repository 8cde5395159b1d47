"""Runs of rivals that act every round: all seeds and settings at once, as in the engine.

Between two changes of the policy nothing changes, so these rounds are one product. With lag 0 the
policy changes after every round, as published; tests hold that form to a literal loop.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.arrays.backend import (
    apply_rows,
    as_like,
    at_least,
    namespace,
    per_run,
    to_numpy,
    weighted_sums,
)
from discreet.arrays.linear_algebra import (
    identity,
    inverse_repaired,
    pack_products,
    quadratic_forms,
    triangle,
    unpack,
)
from discreet.errors import InvalidInput
from discreet.lab.rivals.coded_bandit import CodedBandit, CodedRuns
from discreet.lab.rivals.linucb_rivals import AdaPrivateTS
from discreet.lab.rivals.rival_contract import NoiseClock, RivalPlan, RivalRows
from discreet.policies.allocation import draw, even_split
from discreet.privacy.noise import SeededNoise
from discreet.simulate.engine import Machine
from discreet.simulate.played_batches import shuffle
from discreet.types import Array, NumpyArray

PIECE = 2048
"""RivalRows that are summed at once: their products b ⊗ b are held meanwhile."""


@dataclass(frozen=True)
class LinearRuns:
    """Runs of LinUCB or of Thompson sampling on noisy sums with one clock, computed together."""

    plans: Sequence[RivalPlan]
    clock: NoiseClock
    rounds: int
    seeds: Sequence[int]

    @property
    def sampled(self) -> bool:
        """Return True where values are drawn from a posterior."""
        return isinstance(self.plans[0].rival, AdaPrivateTS)

    def play(self, rows: RivalRows, noted: NumpyArray) -> Iterator[NumpyArray]:
        """Yield losses (S, R), summed from one recorded round to the next."""
        features, u = rows.features, rows.uniforms[..., 0]
        A, p = self.plans[0].n_actions, features.shape[-1]
        numbers = [plan.scales(self.rounds) for plan in self.plans]
        scale = {
            name: per_run(np.array([getattr(each, name) for each in numbers]), features, 3)
            for name in vars(numbers[0])
        }
        width = per_run(np.array([plan.rival.width for plan in self.plans]), features)
        noisy = any(each.response > 0.0 for each in numbers)
        actions = np.arange(A)[:, None]
        if not isinstance(features, np.ndarray):
            actions = namespace(features).asarray(actions, device=features.device)
        ends = self.clock.ends(self.rounds)
        noise = self._noise(ends, A, p, features, noisy)
        gram: Array = 0.0
        response: Array = 0.0  # Σ y·b
        policy, changes = None, set(ends)
        lost: Array = 0.0
        pieces = range(PIECE, self.rounds, PIECE)
        for start, end in pairwise([0, *sorted({*ends, *noted.tolist(), *pieces})]):
            x = features[..., start:end, :]
            if policy is None or not self.sampled:
                chosen = self._chosen(policy, x, width, u[..., start:end], A)
            else:
                drawn = SeededNoise(tuple(self.seeds)).for_batch(start).normal
                chosen = self._drawn(policy, x, as_like(drawn("posterior", (end - start, A)), x))
            losses = rows.losses(chosen, start, end)
            lost = lost + losses.sum(-1)
            if end in noted:
                summed = to_numpy(lost).astype(np.float64)
                yield np.broadcast_to(summed, (len(self.seeds), len(self.plans)))
                lost = 0.0
            xp = namespace(x)
            taken = xp.astype((chosen[..., None, :] == actions).mT, x.dtype)
            gram = gram + weighted_sums(taken, pack_products(x))
            response = response + weighted_sums(taken * xp.astype(losses, x.dtype)[..., None], x)
            if end in changes and end < self.rounds:
                units = self.clock.units(end)
                policy = self._policy(gram, response, next(noise), scale, units, p)
                if self.sampled:
                    spread = width[..., None] ** 2 * policy[1]
                    counted = units * scale["posterior"] ** 2 * (policy[1] @ policy[1])
                    policy = policy[0], spread + counted

    def _noise(
        self, ends: Sequence[int], n_actions: int, p: int, like: Array, noisy: bool
    ) -> Iterator[Array]:
        """Yield standard normals (S, 1, A, p(p+1)/2 + p) of the sums at each end, for all runs."""
        size = p * (p + 1) // 2 + p
        source = SeededNoise(tuple(self.seeds))

        def drawn(unit: int) -> Array:
            if not noisy:
                return 0.0
            return source.for_batch(unit).normal("rival", (n_actions, size))

        for each in self.clock.noise(ends, drawn):
            yield as_like(each, like) if noisy and not isinstance(each, float) else None

    @staticmethod
    def _policy(
        gram: Array, response: Array, noise: Array, scale: Mapping[str, Array], units: int, p: int
    ) -> tuple[Array, Array]:
        """Return θ (S, R, A, p) for y − ½ and V⁻¹ (S, R, A, p, p) from sums and their noise."""
        gram, centred = noisy_sums(gram, response, noise, scale, p)
        ridge = scale["ridge"] + scale["shift"] * math.sqrt(units)
        shifted = unpack(gram, p) + ridge * identity(p, gram)
        inverse = inverse_repaired(shifted, ridge[..., 0, 0] + 0.0 * gram[..., 0])
        return (inverse @ centred[..., None])[..., 0], inverse

    @staticmethod
    def _chosen(policy: Any, x: Array, width: Array, u: Array, n_actions: int) -> Array:
        """Return actions (S, R or 1, n); uniform before the first policy."""
        if policy is None:
            return namespace(x).astype(u * n_actions, namespace(x).int64)
        theta, inverse = policy
        squares = at_least(quadratic_forms(x, inverse), 0.0)
        values = apply_rows(x, theta) - width * namespace(x).sqrt(squares)
        return draw(even_split(values), u)

    @staticmethod
    def _drawn(posterior: tuple[Array, Array], x: Array, normal: Array) -> Array:
        """Return the actions (S, R, n) whose losses, drawn from θ and its covariance, are least."""
        theta, covariance = posterior
        spread = namespace(x).sqrt(at_least(quadratic_forms(x, covariance), 0.0))
        return namespace(x).argmin(apply_rows(x, theta) + spread * normal, axis=-1)


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
    rows, columns = triangle(p)
    diagonal = as_like(1.0 * (rows == columns), gram)
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
        codes = plan.rival.codes if isinstance(plan.rival, CodedBandit) else 0
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
            stack = kind([plans[i] for i in some], clock, rounds, chosen)
            lost = np.stack(list(stack.play(rows, noted)), axis=-1)  # (seeds, runs, batches)
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
