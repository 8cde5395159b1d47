"""LinUCB in the shuffle model: people add noise, and a shuffler hides who sent what.

[Garcelon et al. 2022; Chowdhury and Zhou 2022]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from discreet.lab.rivals.rival_contract import (
    RIDGE,
    BatchClock,
    Rival,
    RivalProblem,
    Scales,
    noise_multiplier,
    noise_norm,
)
from discreet.privacy.budget import Budget
from discreet.privacy.sensitivities import ridge_sensitivity


@dataclass(frozen=True)
class ShuffledLinUCB(Rival):
    """Batches of n = ⌈T/``batches``⌉ people, shuffled; LinUCB on the sum of all batches so far.

    ``amplified``: everyone adds Gaussian noise that keeps (ε₀, δ₀) alone, σ₀ = Δ/μ(ε₀, δ₀), and the
    shuffler makes it (ε, δ). ε₀ is the largest that the closed form of ``amplified`` allows, at
    least ε itself. A batch's sums carry σ₀√n.
    ``vector-sum``: the protocol for sums of vectors, with its published constants: a coordinate of
    d in [−1, 1] is rounded to a grid of g = max(2√n, d, 4) steps with Binomial(b, ¼) noise,
    b = 24·10⁴ g² log²(4(d² + 1)/δ)/(ε²n), at half of the budget each for matrix and vector. A
    batch's sums carry √(24·10⁴·3/16)·log(4(d² + 1)/δ)/ε. [Cheu et al. 2021]

    >>> problem = RivalProblem(n_actions=2, p=4, rounds=40_000)
    >>> [round(ShuffledLinUCB(protocol=each).scales(problem, Budget(1.0, 1e-5)).response, 1)
    ...  for each in ("amplified", "vector-sum")]
    [190.5, 7537.8]

    Privacy: [docs/privacy/rivals.md, "A shuffler"]
    """

    width: float = 0.1
    shift: float = 2.0
    protocol: str = "amplified"
    batches: int = 16

    assumes = "a trusted shuffler; the server sees shuffled reports of a batch"

    def clock(self, rounds: int) -> BatchClock:
        return BatchClock(math.ceil(rounds / self.batches), 1.0)

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        if not budget.private:
            return Scales()
        n, A, p = self.clock(problem.rounds).first, problem.n_actions, problem.p
        if self.protocol == "amplified":
            local = ridge_sensitivity("bandit", A) * noise_multiplier(local_budget(budget, n))
            sigma = math.sqrt(n) * local
            return Scales(sigma, sigma, sigma, RIDGE, self.shift * noise_norm(sigma, p))
        gram = _vector_sum(budget, A * p * (p + 1) // 2)
        response = _vector_sum(budget, A * p)
        root = math.sqrt(2.0) * gram  # each entry of the triangle has the same noise
        return Scales(root, gram, response, RIDGE, self.shift * noise_norm(root, p))


def _vector_sum(budget: Budget, d: int) -> float:
    """Standard deviation of a coordinate of a batch's sum, at half of the budget."""
    log = math.log(4 * (d**2 + 1) / (budget.delta / 2))
    return math.sqrt(24e4 * 3 / 16) * log / (budget.epsilon / 2)


def amplified(epsilon: float, people: int, delta: float) -> float:
    """ε at δ of ``people`` shuffled reports that are ε₀-private each; ∞ where no bound is known.

    log(1 + (e^ε₀ − 1)/(e^ε₀ + 1)·(8√(e^ε₀ log(4/δ)/n) + 8e^ε₀/n)) for ε₀ ≤ log(n/(16 log(2/δ))).
    [Feldman et al. 2021, Theorem III.1]

    >>> round(amplified(1.0, 10_000, 1e-6), 3)
    0.214
    """
    if people <= 16 * math.log(2 / delta) or epsilon > math.log(
        people / (16 * math.log(2 / delta))
    ):
        return math.inf
    grown = math.exp(epsilon)
    spread = 8 * math.sqrt(grown * math.log(4 / delta) / people) + 8 * grown / people
    return math.log1p((grown - 1) / (grown + 1) * spread)


@lru_cache(maxsize=4096)
def local_budget(budget: Budget, people: int) -> Budget:
    """The loosest (ε₀, δ₀) of each report whose shuffled batch keeps the budget.

    Half of δ pays for the amplification, half for δ₀: (e^ε + 1)(1 + e^−ε₀/2)·n·δ₀ = δ/2.
    [Feldman et al. 2021, Theorem III.8]
    """
    low, high = budget.epsilon, budget.epsilon + math.log(people)
    if amplified(low, people, budget.delta / 2) > budget.epsilon:
        return budget  # too few people to hide among: each report keeps the budget alone
    for _ in range(60):
        middle = (low + high) / 2
        fits = amplified(middle, people, budget.delta / 2) <= budget.epsilon
        low, high = (middle, high) if fits else (low, middle)
    share = (math.exp(budget.epsilon) + 1) * (1 + math.exp(-low) / 2) * people
    hidden = Budget(low, budget.delta / 2 / share)
    # With δ₀ so small more ε₀ can be worth less than the whole δ at ε.
    return min(hidden, budget, key=noise_multiplier)
