"""Epochs, learning rates and bonus parameters that the theorems prescribe."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.policies.oracle_errors import epochs
from discreet.validate import in_range, positive, whole


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
