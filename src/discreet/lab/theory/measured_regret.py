"""Measured regret against a known truth: batched play, and Algorithm 1 with a fit every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays.backend import softmax
from discreet.batch import Batch
from discreet.batches.release_batch import fit_batch
from discreet.design.schedule import Schedule
from discreet.lab.theory.known_bandits import Rounds, Truth
from discreet.policies.allocation import draw
from discreet.privacy.noise import SeededNoise
from discreet.releases.released import Released
from discreet.simulate.played_batches import Playable
from discreet.types import Floats


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


def vanilla_po(truth: Truth, rounds: Rounds, oracle: LeastSquares, rates: Any) -> Regret:
    """Play T rounds: π_{t+1} ∝ π_t·exp(−η·f̂_t), that is softmax(−η·Σ_s f̂_s). [paper, Algorithm 1]

    ``rates`` (R,) are played side by side, on the same contexts and losses.
    """
    eta = np.asarray(rates, dtype=np.float64).reshape(-1, 1, 1)
    seeds = np.arange(len(rounds.seeds))
    gaps, expected = truth.gaps[rounds.worlds], truth.expected[rounds.worlds]
    ends = np.cumsum(1 << np.arange(rounds.horizon.bit_length()))
    ends = np.minimum(ends, rounds.horizon)
    regret = np.zeros((len(eta), len(seeds)))
    kept: list[Floats] = []
    for t in range(rounds.horizon):
        c = rounds.contexts[:, t]
        policy = softmax(-eta * oracle.summed(c))
        actions = draw(policy, rounds.u[:, t, 0])
        regret += (policy * gaps[seeds, c]).sum(axis=-1)
        oracle.learn(c, actions, (rounds.v[:, t] < expected[seeds, c, actions]).astype(float))
        if t + 1 == ends[len(kept)]:
            kept.append(regret.copy())
    return Regret(ends, np.diff(np.stack(kept), axis=0, prepend=0.0), None, rounds.horizon)


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
