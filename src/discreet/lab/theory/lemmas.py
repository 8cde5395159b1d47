"""The lemmas about one context: lower bounds on probabilities, upper bounds on regret.

``gap`` is d_m(c, a) = f̃(c, a) − min_b f̃(c, b) ∈ [0, 1]; it may be an array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.lab.theory.rates import batched_bonus_po_parameters
from discreet.validate import positive, whole


def geometric_average(B: int, x: Any) -> Any:
    """e⁻¹·min{1, 1/(Bx)} ≤ (1/B) Σ_{k<B} e^{−kx}. [paper, equation "geometric-average"]"""
    return math.exp(-1.0) / np.maximum(1.0, whole("B", B, 1) * np.asarray(x, dtype=float))


def vanilla_po_probability(B: int, A: int, rate: float, gap: Any) -> Any:
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


def bonus_po_probability(B: int, A: int, error: float, gap: Any) -> Any:
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
    scale = 1.0 + math.log(whole("A", A, 2) * whole("T", T, 1))
    return 1.0 + 4.0 * scale / float(positive("rate", rate) * positive("gap", gap))
