"""Bandits whose expected losses are known, and regret measured on them instead of estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays.backend import softmax
from discreet.batch import Batch
from discreet.batches.release_batch import fit_batch
from discreet.data import Dataset
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.features.joint import Joint
from discreet.features.offered import OfferedPairs
from discreet.features.unit_ball import UnitBall
from discreet.oracles import FiniteClass, Problem
from discreet.oracles.mechanisms.finite_choice import FiniteChoice
from discreet.policies.allocation import draw
from discreet.privacy.budget import Budget
from discreet.privacy.noise import SeededNoise
from discreet.releases.release import Predictor
from discreet.releases.released import Released
from discreet.simulate.played_batches import Playable
from discreet.types import Array, Floats
from discreet.validate import in_range, whole


@dataclass(frozen=True, eq=False)
class Truth:
    """C contexts with their chances, and the expected losses (G, C, A) of G possible worlds.

    ``features`` (C, p). A world is drawn for each seed, so that an average over seeds is one over
    worlds. ``weights`` (F, A, p) is the finite class, where there is one; the worlds are among it.
    """

    features: Floats = field(repr=False)
    expected: Floats = field(repr=False)
    chances: Floats = field(repr=False)
    weights: Floats | None = field(default=None, repr=False)
    items: Floats | None = field(default=None, repr=False)
    """Features (A, da + 1) of the actions, where functions are of ``joint`` features."""
    joint: Joint | None = field(default=None, repr=False)

    @property
    def offered(self) -> Any:
        """Features of all contexts for a policy: (C, p), or pairs with all items."""
        if self.joint is None or self.items is None:
            return self.features[None, None]
        return OfferedPairs(self.joint, self.features[None, None], self.items)

    @property
    def n_actions(self) -> int:
        return int(self.expected.shape[-1])

    @cached_property
    def gaps(self) -> Floats:
        """Δ(c, a) = f*(c, a) − min_b f*(c, b): (G, C, A)."""
        return np.asarray(self.expected - self.expected.min(axis=-1, keepdims=True))

    @cached_property
    def predictions(self) -> Floats:
        """Predictions of each function of the class in each context: (C, A, F)."""
        if self.weights is None:
            raise InvalidInput(
                "truth must have a finite class; this truth has none. Make one with gap_class."
            )
        features = self.features if self.joint is None else self.offered
        losses = Predictor(self.weights, "clip").losses(features)  # (F, C, A)
        losses = losses.reshape(len(self.weights), len(self.features), -1)
        return np.ascontiguousarray(np.moveaxis(losses, 0, -1))

    def draw(self, horizon: int, seeds: int, first_seed: int = 0) -> Rounds:
        """Draw contexts, uniforms and a world for the seeds first_seed, first_seed + 1, …"""
        whole("horizon", horizon, 1)
        whole("seeds", seeds, 1)
        numbers = tuple(range(first_seed, first_seed + seeds))
        streams = [np.random.default_rng([seed, horizon, 17]) for seed in numbers]
        worlds = np.array([rng.integers(len(self.expected)) for rng in streams])
        thresholds = np.cumsum(self.chances)[:-1]
        contexts = np.stack([np.searchsorted(thresholds, rng.random(horizon)) for rng in streams])
        u = np.stack([rng.random((horizon, 3)) for rng in streams])
        return Rounds(numbers, worlds, contexts, u[..., :2], u[..., 2])


@dataclass(frozen=True, eq=False)
class Rounds:
    """Worlds (S,), contexts (S, T) and uniforms of S seeds, independent of the policy.

    ``u`` (S, T, 2) chooses actions; an action of expected loss f has loss 1 where ``v`` (S, T) < f.
    """

    seeds: tuple[int, ...]
    worlds: Floats
    contexts: Floats
    u: Floats
    v: Floats

    @property
    def horizon(self) -> int:
        return int(self.contexts.shape[-1])


def table(expected: Floats) -> Truth:
    """Return a class of F tables (F, C, A) over C equally likely contexts; features are one-hot."""
    tables = np.asarray(expected, dtype=np.float64)
    in_range("expected", tables, 0.0, 1.0, "Losses lie in [0, 1].")
    contexts = tables.shape[1]
    weights = np.swapaxes(tables, 1, 2)  # a one-hot feature picks the column of its context
    return Truth(np.eye(contexts), tables, np.full(contexts, 1 / contexts), weights)


def random_class(functions: int, actions: int, contexts: int = 16, *, seed: int = 0) -> Truth:
    """Return losses drawn uniformly: most gaps are wide, and few functions are close to the truth.

    >>> random_class(8, 3).expected.shape
    (8, 16, 3)
    """
    return table(_stream("random", seed).random((functions, contexts, actions)))


def gap_class(
    functions: int, actions: int, gap: float, contexts: int = 16, *, seed: int = 0
) -> Truth:
    """In every context one action, which only the truth knows, is better by ``gap``.

    f(c, a) = (1 − gap)/2 for the good action, (1 + gap)/2 for the rest; good actions are drawn for
    each function and context. With ``worst_gap`` this is a hard instance, with 1/2 an easy one.
    """
    good = _stream("gap", seed).integers(actions, size=(functions, contexts, 1))
    better = np.arange(actions) == good
    return table(np.where(better, (1.0 - gap) / 2, (1.0 + gap) / 2))


def joint_class(functions: int, actions: int, contexts: int = 16, *, seed: int = 0) -> Truth:
    """Functions of joint features of a context and an item: one set of weights for all items.

    Items come one after the other, so more actions are those of fewer and some new ones.

    >>> joint_class(8, 3).expected.shape, joint_class(8, 30).weights.shape
    ((8, 16, 3), (8, 1, 9))
    """
    rng = _stream("joint", seed)
    ball = UnitBall(2)
    joint = Joint(ball, ball, "all")
    weights = rng.normal(size=(functions, 1, joint.p))
    weights[..., 0] = math.sqrt(0.5)  # losses about one half
    known = ball.map(rng.normal(size=(contexts, 2)))
    items = ball.map(np.stack([rng.normal(size=2) for _ in range(actions)]))
    whole = Truth(known, np.empty(0), np.full(contexts, 1 / contexts), weights, items, joint)
    return replace(whole, expected=np.moveaxis(whole.predictions, -1, 0))


def worst_gap(T: int, A: int, F: int, epsilon: float = math.inf) -> float:
    """The gap at which playing blindly costs ½·√(A·T·log F·(1 + 1/ε)); at most 1/2.

    T rounds barely fail to tell such gaps from none, so no algorithm does much better.
    """
    blind = 0.5 * math.sqrt(A * math.log(max(2, F)) * (1.0 + 1.0 / epsilon) / T)
    return min(0.5, blind * A / (A - 1))


def known(data: Dataset) -> Truth:
    """Return a generated set with its contexts and their expected losses.

    >>> from discreet.data import linear
    >>> known(linear(500)).gaps.shape
    (1, 500, 3)
    """
    if data.expected is None:
        raise InvalidInput(
            f"data must be a set whose expected losses are known; {data.name} is not one. "
            "Use fried, linear or logistic."
        )
    rows = data.rows
    features = UnitBall(data.dimension).map(data.contexts)
    return Truth(features, data.expected[None], np.full(rows, 1 / rows))


def _stream(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([*name.encode(), seed])


class KnownContexts(FiniteChoice):
    """``FiniteChoice`` for one-hot features: the same sums, without a pass over rows a function.

    Σ (f(c, a) − y)² = Σ_{c,a} (n·f² − 2·f·Σy + Σy²), with n, Σy, Σy² over the rows of c and a.
    """

    def _summed_losses(
        self, features: Array, weights: Array, targets: Array, grid: int | None
    ) -> Any:
        if grid is not None:
            raise TypeError("rounding to a grid must happen row by row; use FiniteClass")
        predicted = np.clip(np.swapaxes(self.oracle.weights, -1, -2), 0.0, 1.0)  # (F, C, A)
        predicted = predicted.reshape(len(predicted), -1).T
        rows = np.swapaxes(features, -1, -2)  # (..., C, n)
        counts, sums, squares = (
            (rows @ (weights * values)).reshape(*weights.shape[:-2], -1)
            for values in (1.0, targets, targets**2)
        )
        total = (
            counts @ predicted**2 - 2.0 * (sums @ predicted) + squares.sum(axis=-1, keepdims=True)
        )
        return np.round(total, 9)  # functions that agree on all rows must stay tied


def mechanism_for(truth: Truth, epsilon: float) -> FiniteChoice:
    """Return least squares at ε = ∞, else the exponential mechanism, on the class of the truth."""
    weights = truth.weights
    assert weights is not None
    budget = Budget(epsilon) if np.isfinite(epsilon) else Budget.none()
    if truth.joint is not None:
        return FiniteChoice.of(FiniteClass(weights), Problem(1, truth.joint.p, joint=True), budget)
    problem = Problem(truth.n_actions, truth.features.shape[-1])
    return KnownContexts.of(FiniteClass(weights), problem, budget)


@dataclass(frozen=True, eq=False)
class Regret:
    """Regret of each batch, (M, R, S), for R runs and S seeds.

    ``observed`` is the paper's: Σ_a π(c_t, a)·Δ(c_t, a) summed over the observed contexts;
    ``population`` averages over the context distribution instead (None where not measured).
    """

    ends: Floats
    observed: Floats
    population: Floats | None
    fits: int

    @property
    def total(self) -> Floats:
        """The regret of the whole run, (R, S)."""
        return np.asarray(self.observed.sum(axis=0))


def play_known(plan: Playable, truth: Truth, rounds: Rounds, first_batch: int = 1) -> Regret:
    """Play a plan, or a stack of R plans, on S seeds.

    The policy is frozen in a batch, so its probabilities are computed once for each context.
    """
    schedule = Schedule(first_batch, rounds.horizon)
    released = Released(truth.n_actions, schedule)
    noise = SeededNoise(rounds.seeds)
    seeds = np.arange(len(rounds.seeds))[:, None]
    gaps, expected = truth.gaps[rounds.worlds], truth.expected[rounds.worlds]
    actions = np.arange(truth.n_actions)
    observed, population, calls = [], [], 0
    for number, length in enumerate(schedule.lengths(), start=1):
        rows = slice(schedule.start(number), schedule.start(number) + length)
        c, u = rounds.contexts[:, rows], rounds.u[:, rows]
        policy = plan.played_policy.probabilities(released, truth.offered)
        policy = np.broadcast_to(policy, (len(seeds), *policy.shape[1:]))  # (S, R, C, A)
        expected_gap = (policy * gaps[:, None]).sum(axis=-1)  # (S, R, C)
        observed.append(np.take_along_axis(expected_gap, c[:, None], axis=-1).sum(axis=-1).T)
        population.append(length * (expected_gap @ truth.chances).T)
        if not schedule.fitted(number):
            break
        chosen = draw(np.take_along_axis(policy, c[:, None, :, None], axis=2), u[:, None, :, 0])
        losses = (rounds.v[:, rows, None] < expected[seeds, c]).astype(float)[:, None]
        batch = Batch(truth.features[c][:, None], losses, chosen[..., None] == actions)
        if truth.joint is not None and truth.items is not None:
            pairs = truth.joint.rows(truth.features[c][:, None], truth.items[chosen])
            observed_losses = np.take_along_axis(losses, chosen[..., None], axis=-1)
            batch = Batch(pairs, observed_losses, np.ones_like(observed_losses, dtype=bool))
        released = released.add(fit_batch(plan, noise, batch, released))._compact()
        calls += 1
    return Regret(np.cumsum(schedule.lengths()), _together(observed), _together(population), calls)


def _together(batches: list[Floats]) -> Floats:
    """Return (M, R, S); before the first release all R runs play the same."""
    runs = max(each.shape[0] for each in batches)
    return np.stack([np.broadcast_to(each, (runs, each.shape[1])) for each in batches])


def vanilla_po(
    truth: Truth, rounds: Rounds, oracle: LeastSquares, rates: Sequence[float]
) -> Regret:
    """Play T rounds: π_{t+1} ∝ π_t·exp(−η·f̂_t), that is softmax(−η·Σ_s f̂_s). [paper, Algorithm 1]

    ``rates`` (R,) are played side by side, on the same contexts and losses.
    """
    eta = np.asarray(rates, dtype=np.float64).reshape(-1, 1, 1)
    seeds = np.arange(len(rounds.seeds))
    gaps, expected = truth.gaps[rounds.worlds], truth.expected[rounds.worlds]
    ends = np.cumsum(1 << np.arange(rounds.horizon.bit_length()))
    ends = np.minimum(ends, rounds.horizon)
    regret = np.zeros((len(eta), len(seeds)))
    at_ends: list[Floats] = []
    for t in range(rounds.horizon):
        c = rounds.contexts[:, t]
        policy = softmax(-eta * oracle.summed(c))
        actions = draw(policy, rounds.u[:, t, 0])
        regret += (policy * gaps[seeds, c]).sum(axis=-1)
        oracle.learn(c, actions, (rounds.v[:, t] < expected[seeds, c, actions]).astype(float))
        if t + 1 == ends[len(at_ends)]:
            at_ends.append(regret.copy())
    return Regret(ends, np.diff(np.stack(at_ends), axis=0, prepend=0.0), None, rounds.horizon)


class LeastSquares:
    """Least squares in a finite class: squared losses and counts of minimisers, (R, S, F).

    The policy needs Σ_f n_f·f(c, a), n_f the rounds after which f was the (first) minimiser.
    """

    def __init__(self, truth: Truth, seeds: int, rates: int = 1) -> None:
        self._predictions = truth.predictions  # (C, A, F)
        shape = (rates, seeds, self._predictions.shape[-1])
        self.squares, self.counts = np.zeros(shape), np.zeros(shape)
        self._where = np.ix_(np.arange(rates), np.arange(seeds))

    def summed(self, contexts: Floats) -> Floats:
        """Σ_{s<t} f̂_s(c, a) at each seed's context: (R, S, A)."""
        return np.asarray(np.einsum("saf,rsf->rsa", self._predictions[contexts], self.counts))

    def learn(self, contexts: Floats, actions: Floats, losses: Floats) -> None:
        """Add one observation per seed and fit again: contexts (S,), the rest (R, S)."""
        errors = self._predictions[contexts, actions]  # (R, S, F)
        errors -= losses[..., None]
        errors *= errors
        self.squares += errors
        self.counts[(*self._where, self.squares.argmin(axis=-1))] += 1.0
