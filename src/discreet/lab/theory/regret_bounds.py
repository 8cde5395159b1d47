"""Regret bounds with explicit constants, and the five guarantees for a finite class.

Each bound holds with probability 1 − δ. The regret is the paper's:
Σ_t Σ_a π_t(c_t, a)·Δ(c_t, a), the expected gap at the observed contexts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discreet.lab.theory.rates import (
    batch_length,
    batched_bonus_po_parameters,
    batched_vanilla_po_rate,
    fits,
    vanilla_po_rate,
)
from discreet.policies.oracle_errors import (
    batch_least_squares_error,
    epochs,
    exponential_mechanism_error,
    least_squares_error,
)
from discreet.validate import in_range, one_of, positive, whole

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
    in_range("error", error, 1.0, math.inf, "Give a bound of at least 1.")
    return Bound(
        {
            "first epoch": 1.0,
            "actions": factor * A * epochs(T),
            "regression": factor * root * math.sqrt(A * T * error),
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
_MOST_ROUNDS = 2**200
"""The search for a meaningful horizon ends here; every bound grows like √T·log^k T."""


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
    if name.startswith("private"):
        error = exponential_mechanism_error(T, F, delta, positive("epsilon", epsilon))
    else:
        error = batch_least_squares_error(T, F, delta)
    length, calls = batch_length(epochs(T)), epochs(T) - 1
    if name.endswith("vanilla"):
        rate = batched_vanilla_po_rate(length, A, error)
        return Statement(error, rate, batched_vanilla_po_regret(T, A, error, delta), calls)
    rate = batched_bonus_po_parameters(max(2, length), A, error).rate
    return Statement(error, rate, batched_bonus_po_regret(T, A, error, delta), calls)


def below_horizon_from(bound: Callable[[int], float]) -> int:
    """The least T with bound(T) < T, for a bound that grows slower than T.

    Below this T the bound says nothing, since regret never exceeds T. Where T doubles, a bound may
    jump slightly, so bound(T) < T may fail again for a few T just above.

    >>> below_horizon_from(lambda T: 10 * T**0.5)
    101
    """
    high = 1
    while bound(high) >= high and high < _MOST_ROUNDS:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return high


def bounds_document(T: int, A: int, F: int, delta: float, epsilon: float) -> dict[str, Any]:
    """Return every guarantee with its rates, terms and the horizon from which it is below T."""
    document: dict[str, Any] = {
        "T": T,
        "A": A,
        "F": F,
        "epsilon": epsilon,
        "delta": delta,
        "epochs": epochs(T),
        "fits": fits(T),
    }
    for name, found in all_statements(T, A, F, delta, epsilon).items():

        def bound(horizon: int, name: str = name) -> float:
            return statement(name, horizon, A, F, delta, epsilon).regret_bound.total

        document[name] = {
            "error_bound": found.error_bound,
            "learning_rate": found.learning_rate,
            "regret_bound": found.regret_bound.total,
            "terms": found.regret_bound.terms,
            "dominant": found.regret_bound.dominant,
            "bound_over_T": found.regret_bound.total / T,
            "below_T_from": below_horizon_from(bound),
            "fits": found.fits,
            "epochs": _epoch_parameters(name, T, A, found.error_bound),
        }
    return document


def _epoch_parameters(name: str, T: int, A: int, error: float) -> list[dict[str, float]]:
    """Return rate, exploration and bonus of each epoch that has them."""
    lengths = [batch_length(m) for m in range(2, epochs(T) + 1)]
    if name == "vanilla":
        return []
    if name.endswith("vanilla"):
        return [{"rate": batched_vanilla_po_rate(B, A, error)} for B in lengths]
    return [asdict(batched_bonus_po_parameters(B, A, error)) for B in lengths]
