"""Joint-DP LinUCB with the tree mechanism. [Shariff and Sheffet 2018]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from discreet.lab.rivals.rival_contract import (
    RIDGE,
    RivalProblem,
    Scales,
    ShiftedLinUCB,
    TreeClock,
    noise_multiplier,
    noise_norm,
    published_norm,
)
from discreet.privacy.budget import Budget
from discreet.privacy.sensitivities import ridge_sensitivity


@dataclass(frozen=True)
class TreeLinUCB(ShiftedLinUCB):
    """Act every round on V_a = Σ b bᵀ + N_t + ρ_t I and u_a = Σ (y − c)·b + h_t.

    N_t and h_t are sums of popcount(t) node noises, one node for each bit of t. The action is
    argmin_a bᵀV_a⁻¹u_a − β√(bᵀV_a⁻¹b).

    ``published``: m = ⌈log₂ T⌉ + 1 levels, L̃² = 2 for ‖b‖ ≤ 1 and rewards up to 1,
    σ² = 16 m L̃⁴ log(4/δ)²/ε², node noise (Z + Zᵀ)/√2 on the matrix of (b, r), and the constant
    shift 2Υ, Υ = √(2m)·σ·(4√p + 2 log(2T/α)), with rewards r = 1 − y, so c = 1.
    ``tight``: m = ⌊log₂ T⌋ + 1, σ = Δ√m/μ(ε, δ) with the joint sensitivity Δ = √(81/32) of svec(V)
    and u at c = ½, and ρ_t = 1 + ``shift``·σ√(2p·popcount(t)), in units of the noise's norm.
    Both noise the blocks of the actions alone: all other entries are 0 for every data set.

    >>> problem = RivalProblem(n_actions=2, p=4, rounds=1000)
    >>> [round(TreeLinUCB(constants=each).scales(problem, Budget(1.0, 1e-5)).gram, 1)
    ...  for each in ("tight", "published")]
    [18.8, 484.0]

    Privacy: one person is in at most m nodes, and everybody else sees functions of nodes.
    [docs/privacy/rivals.md, "The tree"]
    """

    assumes: ClassVar[str] = "a trusted server; all others together see every later policy"

    def clock(self, rounds: int) -> TreeClock:  # noqa: ARG002
        return TreeClock(self.lag)

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        if not budget.private:
            return Scales()
        if self.constants == "published":
            return self._published(problem, budget)
        levels = TreeClock.levels(problem.rounds)
        sensitivity = ridge_sensitivity("bandit", problem.n_actions)
        sigma = sensitivity * math.sqrt(levels) * noise_multiplier(budget)
        return Scales(sigma, sigma, sigma, RIDGE, self.shift * noise_norm(sigma, problem.p))

    def _published(self, problem: RivalProblem, budget: Budget) -> Scales:
        levels = math.ceil(math.log2(problem.rounds)) + 1
        sigma = 4 * math.sqrt(levels) * 2 * math.log(4 / budget.delta) / budget.epsilon
        shift = 2 * math.sqrt(2 * levels) * sigma * published_norm(problem)
        node = math.sqrt(2.0) * sigma  # (Z + Zᵀ)/√2 has √2 σ on the diagonal and σ off it
        return Scales(node, node, sigma, shift, 0.0, centre=1.0)
