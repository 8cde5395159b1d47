"""LinUCB and Thompson sampling on noisy sums: with a trusted server, a shuffler, or neither.

PlainLinUCB [Li et al. 2010], TreeLinUCB [Shariff and Sheffet 2018], LocalLinUCB [Zheng et al.
2020], AdaPrivateTS [Riyazat and Ukwatta 2026], and ShuffledLinUCB, where people add noise and a
shuffler hides who sent what [Garcelon et al. 2022; Chowdhury and Zhou 2022].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from discreet.errors import InvalidInput
from discreet.lab.rivals.rival_contract import (
    CONSTANTS,
    LAG,
    RIDGE,
    TRUSTED,
    BatchClock,
    PersonClock,
    Rival,
    RivalProblem,
    Scales,
    TreeClock,
    noise_multiplier,
    noise_norm,
    published_norm,
)
from discreet.privacy.budget import Budget
from discreet.privacy.sensitivities import ridge_sensitivity


@dataclass(frozen=True)
class PlainLinUCB(Rival):
    """argmin_a bᵀV_a⁻¹u_a − β√(bᵀV_a⁻¹b), V_a = I + Σ b bᵀ and u_a = Σ (y − ½)·b.

    >>> PlainLinUCB().scales(RivalProblem(2, 4, 1000), Budget.none()).gram
    0.0
    """

    width: float = 0.1
    lag: float = LAG

    assumes = "no privacy"

    def clock(self, rounds: int) -> PersonClock:  # noqa: ARG002
        return PersonClock(self.lag)

    def private_scales(self, problem: RivalProblem, budget: Budget) -> Scales:  # noqa: ARG002
        raise InvalidInput(
            f"epsilon must be inf for PlainLinUCB; got {budget.epsilon:g}. "
            "Play TreeLinUCB for LinUCB with privacy."
        )


@dataclass(frozen=True)
class TreeLinUCB(Rival):
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

    width: float = 0.1
    shift: float = 2.0
    constants: str = CONSTANTS[0]
    lag: float = LAG

    assumes = TRUSTED

    def clock(self, rounds: int) -> TreeClock:  # noqa: ARG002
        return TreeClock(self.lag)

    def private_scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        if self.constants == "published":
            levels = math.ceil(math.log2(problem.rounds)) + 1
            sigma = 4 * math.sqrt(levels) * 2 * math.log(4 / budget.delta) / budget.epsilon
            shift = 2 * math.sqrt(2 * levels) * sigma * published_norm(problem)
            node = math.sqrt(2.0) * sigma  # (Z + Zᵀ)/√2 has √2 σ on the diagonal and σ off it
            return Scales(node, node, sigma, shift, 0.0, centre=1.0)
        levels = TreeClock.levels(problem.rounds)
        sensitivity = ridge_sensitivity("bandit", problem.n_actions)
        sigma = sensitivity * math.sqrt(levels) * noise_multiplier(budget)
        return Scales.tight(sigma, problem.p, self.shift)


@dataclass(frozen=True)
class BatchedLinUCB(Rival):
    """LinUCB on the sum of all releases so far, one for each batch, σ = Δ/μ(ε, δ).

    Batch m closes with noisy Σ b bᵀ and Σ (y − ½)·b of its own people; after m batches an entry's
    noise has variance m·σ². The policy changes when a batch closes. No paper fixes constants for
    this form, so it has tight ones only: Δ = √(81/32), ridge 1 + ``shift``·σ√(2pm).

    >>> problem = RivalProblem(n_actions=2, p=4, rounds=1000)
    >>> round(BatchedLinUCB().scales(problem, Budget(1.0, 1e-5)).gram, 3)
    5.935

    Privacy: one Gaussian release per person. [docs/privacy/rivals.md, "Disjoint batches"]
    """

    width: float = 0.1
    shift: float = 2.0
    first: int = 16
    growth: float = 1.5

    assumes = TRUSTED

    def clock(self, rounds: int) -> BatchClock:  # noqa: ARG002
        return BatchClock(self.first, self.growth)

    def private_scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        sigma = ridge_sensitivity("bandit", problem.n_actions) * noise_multiplier(budget)
        return Scales.tight(sigma, problem.p, self.shift)


@dataclass(frozen=True)
class LocalLinUCB(Rival):
    """Person t sends b bᵀ + B_t and (y − c)·b + ξ_t for all actions, zeros where not played.

    The server sums what it receives: after t people the noise of an entry has variance t·σ². The
    action is argmin_a bᵀV_a⁻¹u_a − β√(bᵀV_a⁻¹b).

    ``published``: σ = 4√(2 log(2.5/δ))/ε, half of the budget for the matrix and half for the
    vector, independent entries on and above the diagonal, and the shift 2γ_t,
    γ_t = σ√t·(4√p + 2 log(2T/α)), with rewards 1 − y, so c = 1.
    ``tight``: σ = Δ/μ(ε, δ) with the joint sensitivity Δ = √(81/32) at c = ½, and the ridge
    1 + ``shift``·σ√(2pt), in units of the noise's norm.

    >>> problem = RivalProblem(n_actions=2, p=4, rounds=1000)
    >>> [round(LocalLinUCB(constants=each).scales(problem, Budget(1.0, 1e-5)).response, 1)
    ...  for each in ("tight", "published")]
    [5.9, 19.9]

    Privacy: one Gaussian release per person. [docs/privacy/rivals.md, "Every person alone"]
    """

    width: float = 0.1
    shift: float = 4.0
    constants: str = CONSTANTS[0]
    lag: float = LAG

    assumes = "nobody is trusted: the server sees what each person sends"

    def clock(self, rounds: int) -> PersonClock:  # noqa: ARG002
        return PersonClock(self.lag)

    def private_scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        if self.constants == "tight":
            sensitivity = ridge_sensitivity("bandit", problem.n_actions)
            sigma = sensitivity * noise_multiplier(budget)
            return Scales.tight(sigma, problem.p, self.shift)
        sigma = 4 * math.sqrt(2 * math.log(2.5 / budget.delta)) / budget.epsilon
        shift = 2 * sigma * published_norm(problem)
        return Scales(math.sqrt(2.0) * sigma, sigma, sigma, 0.0, shift, centre=1.0)


@dataclass(frozen=True)
class AdaPrivateTS(Rival):
    """argmin_a of L_a ~ N(bᵀA_a⁻¹u_a, bᵀ(v²A_a⁻¹ + mσ²A_a⁻²)b) after m disjoint batches.

    u_a = Σ (y − ½)·b carries noise N(0, mσ²I). ``width`` is v. The noise alone spreads A_a⁻¹u_a by
    mσ²A_a⁻² around its mean; ``inflated`` adds as much to the posterior, and without it the draw
    has v²A_a⁻¹. The source can be read in both ways.

    ``clear``: the published form. A_a = I + Σ b bᵀ has no noise, σ = 1/μ(ε, δ). It protects losses
    and **neither contexts nor actions**.
    ``protected``: A_a has noise as well, σ = √(81/32)/μ(ε, δ) on both, ridge 1 + ``shift``·σ√(2pm).
    This variant is ours.

    >>> problem = RivalProblem(n_actions=2, p=4, rounds=1000)
    >>> [round(AdaPrivateTS(gram=each).scales(problem, Budget(1.0, 1e-5)).response, 3)
    ...  for each in ("protected", "clear")]
    [5.935, 3.731]

    Privacy: one Gaussian release per person. [docs/privacy/rivals.md, "AdaPrivate-TS"]
    """

    width: float = 0.1
    gram: str = "protected"
    shift: float = 2.0
    first: int = 16
    growth: float = 1.5
    inflated: bool = True

    assumes = TRUSTED

    def clock(self, rounds: int) -> BatchClock:  # noqa: ARG002
        return BatchClock(self.first, self.growth)

    def private_scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        if self.gram == "clear":
            sigma = noise_multiplier(budget)  # a loss moves Σ (y − ½)·b by ‖b‖ ≤ 1 at most
            return Scales(response=sigma, posterior=self.inflated * sigma)
        sigma = ridge_sensitivity("bandit", problem.n_actions) * noise_multiplier(budget)
        return Scales.tight(sigma, problem.p, self.shift, posterior=self.inflated * sigma)


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

    def private_scales(self, problem: RivalProblem, budget: Budget) -> Scales:
        n, A, p = self.clock(problem.rounds).first, problem.n_actions, problem.p
        if self.protocol == "amplified":
            local = ridge_sensitivity("bandit", A) * noise_multiplier(local_budget(budget, n))
            sigma = math.sqrt(n) * local
            return Scales.tight(sigma, p, self.shift)
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
