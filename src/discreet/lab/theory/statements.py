"""The five guarantees for a finite class, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from discreet.lab.theory.epochs import batch_length, epochs
from discreet.lab.theory.rates import (
    batched_bonus_po_parameters,
    batched_vanilla_po_rate,
    vanilla_po_rate,
)
from discreet.lab.theory.regret_bounds import (
    Bound,
    batched_bonus_po_regret,
    batched_vanilla_po_regret,
    vanilla_po_regret,
)
from discreet.policies.oracle_errors import (
    batch_least_squares_error,
    exponential_mechanism_error,
    least_squares_error,
)
from discreet.validate import in_range, one_of, positive

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
