"""Algorithm 1: VanillaPO with a fit after every round, for many seeds and rates at once.

The one algorithm of this package that loops over rounds. Its policy depends on the sum of all
predictors so far, which the oracle keeps up to date instead of fitting anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays.backend import softmax
from discreet.lab.theory.known_bandits import Rounds, Truth
from discreet.lab.theory.measured_regret import Regret
from discreet.policies.allocation import draw
from discreet.types import Floats


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
        """One more observation per seed, and the next fit: contexts (S,), the rest (R, S)."""
        said = self._predictions[contexts, actions]  # (R, S, F)
        said -= losses[..., None]
        said *= said
        self.squares += said
        self.counts[(*self._where, self.squares.argmin(axis=-1))] += 1.0
