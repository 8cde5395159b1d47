"""Statements of the paper as functions: rates, lemmas, regret bounds, five guarantees.

Each bound holds with probability 1 − δ. The regret is the paper's:
Σ_t Σ_a π_t(c_t, a)·Δ(c_t, a), the expected gap at the observed contexts. In a lemma ``gap`` is
d_m(c, a) = f̃(c, a) − min_b f̃(c, b) ∈ [0, 1]; it may be an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from discreet.policies.oracle_errors import approximate_erm_error as approximate_erm_error
from discreet.policies.oracle_errors import batch_error as batch_error
from discreet.policies.oracle_errors import batch_least_squares_error as batch_least_squares_error
from discreet.policies.oracle_errors import epochs as epochs
from discreet.policies.oracle_errors import (
    exponential_mechanism_error as exponential_mechanism_error,
)
from discreet.policies.oracle_errors import (
    exponential_mechanism_excess as exponential_mechanism_excess,
)
from discreet.policies.oracle_errors import least_squares_error as least_squares_error
from discreet.types import Array, JsonObject
from discreet.validate import in_range, one_of, positive, whole


def vanilla_po_rate(T: int, A: int, error: float) -> float:
    """η = √((1 + log(AT)) / (A·T·(1 + Err))), with Err = Err_orc(T, δ/2). [paper, Theorem 1]

    >>> round(vanilla_po_rate(2**17, 2, 24 * math.log(64 / 0.025)), 7)
    0.0005211
    """
    pulls = whole("A", A, 2) * whole("T", T, 1)
    return math.sqrt((1.0 + math.log(pulls)) / (pulls * (1.0 + positive("error", error))))


def batched_vanilla_po_order(B: int, A: int, error: float) -> float:
    """min{1/A, 1/√(A·B_m·Err)}: the order that Theorem 2 states, with constant one."""
    return min(1.0 / whole("A", A, 2), 1.0 / math.sqrt(A * whole("B", B, 1) * _error(error)))


def batched_vanilla_po_rate(B: int, A: int, error: float) -> float:
    """η_m = min{1/A, 1/√(6·A·B_m·Err)}. [paper, equation "vanilla-batch-rate"]

    >>> round(batched_vanilla_po_rate(2**16, 2, 114.31), 7)
    0.0001055
    """
    return batched_vanilla_po_order(B, A, 6.0 * _error(error))


@dataclass(frozen=True)
class BonusParameters:
    """γ_m (exploration), Λ_m (scale of the bonus) and η_m (rate of the auxiliary updates)."""

    exploration: float
    bonus: float
    rate: float


def batched_bonus_po_parameters(B: int, A: int, error: float) -> BonusParameters:
    """γ_m = min{B_m, √(A·B_{m−1}/Err)}, Λ_m = B_m/γ_m, η_m = min{1, √(2·log A/B_m)}; m ≥ 2.

    [paper, equation "bonus-parameters"]

    >>> batched_bonus_po_parameters(2, 2, 2.0)
    BonusParameters(exploration=1.0, bonus=2.0, rate=0.8325546111576977)
    """
    previous = whole("B", B, 2, "Epochs from the second on have a bonus.") / 2
    exploration = min(float(B), math.sqrt(whole("A", A, 2) * previous / _error(error)))
    rate = min(1.0, math.sqrt(2.0 * math.log(A) / B))
    return BonusParameters(exploration, B / exploration, rate)


def _error(error: float) -> float:
    """Err_batch(T, δ) ≥ 1, as the theorems of the batched algorithms require."""
    return float(in_range("error", error, 1.0, math.inf, "Give a bound of at least 1."))


def fits(T: int) -> int:
    """Exactly M − 1 calls of the regression oracle: no fit uses the last batch.

    >>> fits(1), fits(40_768)
    (0, 15)
    """
    return epochs(T) - 1


def batch_length(m: int) -> int:
    """B_m = 2^(m−1), also where the horizon cuts the last epoch short.

    >>> [batch_length(m) for m in (1, 2, 3)]
    [1, 2, 4]
    """
    return 1 << (whole("m", m, 1) - 1)


C = 16.0
"""The constant of the proof of Theorem 1: at least 2e², for the bound on inverse probabilities."""


@dataclass(frozen=True)
class Bound:
    """A sum of named terms, in the order of the paper's equation; ``total`` is the bound.

    >>> bound = Bound({"regression": 9.0, "contexts": 1.0})
    >>> bound.total, bound.dominant
    (10.0, 'regression')
    """

    terms: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.terms.values())

    @property
    def dominant(self) -> str:
        """The name of the largest term."""
        return max(self.terms, key=self.terms.__getitem__)


def concentration(T: int, delta: float) -> float:
    """√(T/2·log(1/δ)): from the context distribution to the observed contexts.

    [paper, Proposition in "Concentration of pseudo-regret"]

    >>> round(concentration(800, math.exp(-1.0)), 6)
    20.0
    """
    positive("delta", delta)
    return math.sqrt(whole("T", T, 1) / 2 * math.log(1 / in_range("delta", delta, 0.0, 1.0)))


def pathwise_regret(T: int, A: int, rate: float, squared_error: float) -> float:
    """R_T(c) ≤ C²·(A·η·T·S_T(c) + (1 + log(AT))²/η), at every context.

    ``squared_error`` is S_T(c). [paper, equation "pathwise-regret"]
    """
    scale = _scale(T, A)
    return float(C**2 * (A * rate * T * squared_error + scale**2 / positive("rate", rate)))


def vanilla_po_regret_at(T: int, A: int, error: float, delta: float, rate: float) -> Bound:
    """C²·((1 + log(AT))²/η + A·η·T·Err·H_T) + √(T/2·log(2/δ)), at any rate η ∈ (0, 1].

    [paper, proof of Theorem 1]
    """
    from scipy.special import digamma

    harmonic = float(digamma(whole("T", T, 1) + 1.0)) + np.euler_gamma
    return Bound(
        {
            "waiting": C**2 * _scale(T, A) ** 2 / positive("rate", rate),
            "regression": C**2 * A * rate * T * error * harmonic,
            "contexts": concentration(T, delta / 2),
        }
    )


def vanilla_po_regret(T: int, A: int, error: float, delta: float) -> Bound:
    """2C²·√(A·T·(1 + Err))·(1 + log(AT))^{3/2} + √(T/2·log(2/δ)).

    [paper, Theorem 1, equation "tuned-bound"]; ``error`` is Err_orc(T, δ/2).

    >>> vanilla_po_regret(2**17, 2, 188.35, 0.05).total > 2**17
    True
    """
    pulls = whole("A", A, 2) * whole("T", T, 1)
    rated = math.sqrt(pulls * (1 + positive("error", error))) * _scale(T, A) ** 1.5
    return Bound({"regression": 2 * C**2 * rated, "contexts": concentration(T, delta / 2)})


def batched_vanilla_po_regret(T: int, A: int, error: float, delta: float) -> Bound:
    """1 + (30 + 4·log A)·(A·M + 9·√(A·T·Err)) + √(T/2·log(2/δ)).

    [paper, Theorem 2, equation "batched-vanilla-bound"]; the private version has the same bound
    with the private oracle's Err. [paper, Theorem 3 and its corollary]
    """
    factor = 30 + 4 * math.log(whole("A", A, 2))
    return _batched(T, A, error, delta, factor, 9.0)


def batched_bonus_po_regret(T: int, A: int, error: float, delta: float) -> Bound:
    """1 + (32 + 8·log(T + 1))·(A·M + 5·√(A·T·Err)) + √(T/2·log(2/δ)).

    [paper, Theorem "Batched bonus PO", equation "bonus-total-regret", and its corollary]
    """
    factor = 32 + 8 * math.log(whole("T", T, 1) + 1)
    return _batched(T, A, error, delta, factor, 5.0)


def batched_vanilla_po_epoch_regret(B: int, A: int, error: float) -> float:
    """R(π_m) ≤ (30 + 4·log A)/(B_m·η_m). [paper, equation "vanilla-epoch-regret"]"""
    return (30 + 4 * math.log(A)) / (B * batched_vanilla_po_rate(B, A, error))


def batched_bonus_po_epoch_regret(B: int, A: int, error: float) -> float:
    """R(π_m) ≤ (32 + 8·log(B_m + 1))·A/γ_m. [paper, proof of Theorem "Batched bonus PO"]"""
    exploration = batched_bonus_po_parameters(B, A, error).exploration
    return (32 + 8 * math.log(B + 1)) * A / exploration


def _batched(T: int, A: int, error: float, delta: float, factor: float, root: float) -> Bound:
    return Bound(
        {
            "first epoch": 1.0,
            "actions": factor * A * epochs(T),
            "regression": factor * root * math.sqrt(A * T * _error(error)),
            "contexts": concentration(T, delta / 2),
        }
    )


def _scale(T: int, A: int) -> float:
    """Λ = 1 + log(AT)."""
    return 1.0 + math.log(whole("A", A, 2) * whole("T", T, 1))


STATEMENTS = {
    "vanilla": "Algorithm 1, a fit every round (Theorem 1)",
    "batched_vanilla": "batched VanillaPO (Theorem 2)",
    "batched_bonus": "batched BonusPO (Theorem “Batched bonus PO”)",
    "private_batched_vanilla": "batched VanillaPO, exponential mechanism (Theorem 3)",
    "private_batched_bonus": "batched BonusPO, exponential mechanism (its corollary)",
}


@dataclass(frozen=True)
class Statement:
    """One guarantee in numbers: the oracle's error, the rate of the last epoch, the bound."""

    error_bound: float
    learning_rate: float
    regret_bound: Bound
    fits: int


def all_statements(
    T: int, A: int, F: int, delta: float, epsilon: float | None = None
) -> dict[str, Statement]:
    """Every guarantee that applies; the private ones need ε.

    >>> list(all_statements(1000, 2, 16, 0.05))
    ['vanilla', 'batched_vanilla', 'batched_bonus']
    """
    names = [name for name in STATEMENTS if epsilon is not None or "private" not in name]
    return {name: statement(name, T, A, F, delta, epsilon) for name in names}


def statement(
    name: str, T: int, A: int, F: int, delta: float, epsilon: float | None = None
) -> Statement:
    """One guarantee; δ ∈ (0, 1/2], as the theorems require."""
    one_of("name", name, STATEMENTS)
    positive("delta", delta)
    in_range("delta", delta, 0.0, 0.5, "The theorems hold for failure probabilities up to 1/2.")
    if name == "vanilla":
        error = least_squares_error(F, delta / 2)
        regret = vanilla_po_regret(T, A, error, delta)
        return Statement(error, vanilla_po_rate(T, A, error), regret, T)
    private = name.startswith("private")
    error = batch_error(T, F, delta, positive("epsilon", epsilon) if private else math.inf)
    length = batch_length(epochs(T))
    if name.endswith("vanilla"):
        rate = batched_vanilla_po_rate(length, A, error)
        return Statement(error, rate, batched_vanilla_po_regret(T, A, error, delta), fits(T))
    rate = batched_bonus_po_parameters(max(2, length), A, error).rate
    return Statement(error, rate, batched_bonus_po_regret(T, A, error, delta), fits(T))


def below_horizon_from(bound: Callable[[int], float]) -> int:
    """The least T with bound(T) < T, for a bound that grows slower than T.

    Below this T the bound says nothing, since regret never exceeds T. Where T doubles, a bound may
    jump slightly, so bound(T) < T may fail again for a few T just above.

    >>> below_horizon_from(lambda T: 10 * T**0.5)
    101
    """
    high = 1
    while bound(high) >= high:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return high


def bounds_document(T: int, A: int, F: int, delta: float, epsilon: float) -> JsonObject:
    """Return every guarantee with its rates, terms and the horizon from which it is below T."""
    document: JsonObject = {"T": T, "A": A, "F": F, "epsilon": epsilon, "delta": delta}
    document |= {"epochs": epochs(T), "fits": fits(T)}
    lengths = [batch_length(m) for m in range(2, epochs(T) + 1)]
    for name, found in all_statements(T, A, F, delta, epsilon).items():

        def bound(horizon: int, name: str = name) -> float:
            return statement(name, horizon, A, F, delta, epsilon).regret_bound.total

        error = found.error_bound
        each: list[dict[str, float]] = []
        if name.endswith("batched_vanilla"):
            each = [{"rate": batched_vanilla_po_rate(B, A, error)} for B in lengths]
        elif name.endswith("batched_bonus"):
            each = [asdict(batched_bonus_po_parameters(B, A, error)) for B in lengths]
        document[name] = {
            "error_bound": error,
            "learning_rate": found.learning_rate,
            "regret_bound": found.regret_bound.total,
            "terms": found.regret_bound.terms,
            "dominant": found.regret_bound.dominant,
            "bound_over_T": found.regret_bound.total / T,
            "below_T_from": below_horizon_from(bound),
            "fits": found.fits,
            "epochs": each,
        }
    return document


def geometric_average(B: int, x: Array) -> Array:
    """e⁻¹·min{1, 1/(Bx)} ≤ (1/B) Σ_{k<B} e^{−kx}. [paper, equation "geometric-average"]"""
    return math.exp(-1.0) / np.maximum(1.0, whole("B", B, 1) * np.asarray(x, dtype=float))


def vanilla_po_probability(B: int, A: int, rate: float, gap: Array) -> Array:
    """1/(e·A·(1 + B_m·η_m·d)) ≤ π_m(c, a).

    [paper, Lemma "Action probabilities and predicted regret of batched vanilla PO"]

    >>> vanilla_po_probability(4, 2, 0.25, 1.0).round(4)
    np.float64(0.092)
    """
    reached = whole("B", B, 1) * positive("rate", rate) * np.asarray(gap, dtype=float)
    return 1.0 / (math.e * whole("A", A, 2) * (1.0 + reached))


def vanilla_po_predicted_regret(B: int, A: int, rate: float) -> float:
    """Σ_a π_m(c, a)·d_m(c, a) ≤ 2·log A/(B_m·η_m), for η_m ≤ 1. [the same lemma]

    >>> round(vanilla_po_predicted_regret(64, 2, 0.25), 4)
    0.0866
    """
    return 2.0 * math.log(whole("A", A, 2)) / (whole("B", B, 1) * float(positive("rate", rate)))


def bonus_po_probability(B: int, A: int, error: float, gap: Array) -> Array:
    """min{1/A, 1/(γ_m·d)} ≤ π_m(c, a).

    [paper, Lemma "Action probabilities and predicted regret of batched bonus PO"]
    """
    exploration = batched_bonus_po_parameters(B, A, error).exploration
    return 1.0 / np.maximum(A, exploration * np.asarray(gap, dtype=float))


def bonus_po_predicted_regret(B: int, A: int, error: float) -> float:
    """Σ_a π_m(c, a)·d_m(c, a) ≤ (1 + 4·log(B_m + 1))·A/γ_m. [the same lemma]"""
    exploration = batched_bonus_po_parameters(B, A, error).exploration
    return (1.0 + 4.0 * math.log(B + 1)) * A / exploration


def prediction_error(error: float, B: int, coverage: float) -> float:
    """|E Σ_a π·(f̃_m − f*)| ≤ √(Err/B_{m−1} · E Σ_a π/π_{m−1}), ``coverage`` the expectation.

    ``B`` is B_{m−1}. [paper, Lemma "Prediction error under another policy"]
    """
    return math.sqrt(positive("error", error) / whole("B", B, 1) * positive("coverage", coverage))


def predicted_to_true_regret(predicted: float, A: int, exploration: float) -> float:
    """R(π) ≤ 2·R̂_m(π) + 30·A/γ_m, and the same bound with R and R̂_m exchanged.

    [paper, Lemma "Comparison of true and predicted regret"]; γ_m = A·B_m·η_m for VanillaPO.
    """
    return 2.0 * predicted + 30.0 * A / float(positive("exploration", exploration))


def late_round(T: int, A: int, rate: float, gap: float) -> float:
    """From round 1 + 4·(1 + log(AT))/(η·Δ) on, an action with gap Δ is rare or was mispredicted.

    Then π_t(c, a) < 1/(AT), or Δ ≤ 256·A·η·S_{t−1}(c).
    [paper, Lemma "Late-round probability–error dichotomy"]
    """
    return 1.0 + 4.0 * _scale(T, A) / float(positive("rate", rate) * positive("gap", gap))
