"""Constants of the privacy proofs, each with its derivation in ``docs/privacy``.

Neighbours replace one record; a bandit record's action may change with it. Feature rows are
b = (1, c̄)/√2, so ‖b‖ ≤ 1 and b·b' ∈ [0, 1]; losses lie in [0, 1].
"""

from __future__ import annotations

import math

from discreet.design.schedule import LONGEST

GRID_BITS = 20
"""c̄ and centred losses are multiples of 2^−20: see docs/privacy/arithmetic.md."""

LARGEST_BATCH = LONGEST
"""Records whose integer sums, noise included, stay within int64: docs/privacy/arithmetic.md."""

SAME_ACTION_SUMS = 0.25
"""Square that sums of losses, counts and squares add to the worst pair of one action, losses 0 and
1: see docs/privacy/ridge.md."""

DISTANCE_FACTOR = 0.03
"""Total variation between a discrete and a rounded Gaussian is below 0.03 / σ² for σ ≥ 10;
the leading term is 4φ(1)/48 = 0.0202: see docs/privacy/arithmetic.md."""


def centre(losses: str, n_actions: int) -> float:
    """Return what is subtracted from a loss before it enters the structured statistics.

    ½ for general losses, which puts them into [−½, ½]; their mean 1 − 1/A, on the grid, for
    rows with exactly one zero.
    """
    if losses == "general":
        return 0.5
    return math.ldexp(round(math.ldexp(1 - 1 / n_actions, GRID_BITS)), -GRID_BITS)


def ridge_sensitivity(
    feedback: str,
    n_actions: int,
    one_zero: bool = False,
    weight: float = 1.0,
    normalised: bool = False,
) -> float:
    """Joint L2 sensitivity of (svec G, ω·q) with centred losses and a weight ω ≤ √8.

    Privacy: t = b·b' maximises 2 − 2t² plus the response term; ω stretches the centred losses.
    Where rows are stretched, ``normalised``, bandit feedback also has sums of losses, counts and
    squares. [docs/privacy/ridge.md, "Joint sensitivity, bandit feedback" and "Learned geometry"]

    >>> round(ridge_sensitivity("bandit", 5) ** 2, 5), 81 / 32
    (2.53125, 2.53125)
    >>> round(ridge_sensitivity("bandit", 5, weight=2.0) ** 2, 5), 9 / 2
    (4.5, 4.5)
    >>> round(ridge_sensitivity("bandit", 5, weight=2.0, normalised=True) ** 2, 5)
    4.75
    """
    if one_zero:
        c = centre("one_label", n_actions)
        norm = weight**2 * (c**2 + (n_actions - 1) * (1 - c) ** 2)  # ‖v‖² of a centred row
        # v·v' of different labels
        inner = weight**2 * ((n_actions - 2) * (1 - c) ** 2 - 2 * c * (1 - c))
        return math.sqrt(2 + 2 * norm + (norm if normalised else inner) ** 2 / 2)
    observed = 1 if feedback == "bandit" else n_actions
    spread = observed * weight**2 / 4  # Σ h² over the observed losses of one record
    rows = (2 + spread) ** 2 / 2 if spread <= 2 else 4 * spread
    if normalised and feedback == "bandit":
        return math.sqrt(max(rows + SAME_ACTION_SUMS, different_actions(spread)))
    return math.sqrt(rows)


def different_actions(spread: float) -> float:
    """Square of the whole change where the action changes with the record.

    Privacy: rows 2, responses h² each, half sums 1/16 each, two half counts ¼ each, and squares;
    the worst pair is 0 and 1, or 1 and ½ where responses weigh little.
    [docs/privacy/ridge.md, "Sums of losses, counts and squares"]

    >>> different_actions(1.0), different_actions(0.0)
    (4.625, 2.8125)
    """
    return 2 + spread + 9 / 16 + max(1 / 4, spread + 1 / 16)


def paper_sensitivities(
    feedback: str, n_actions: int, one_zero: bool = False
) -> tuple[float, float]:
    """(Δ_G, Δ_q) of the paper: Gram in Frobenius norm, uncentred response.

    Privacy: the bias column gives b·b' ≥ 0, without it Δ_q would be 2.
    [docs/privacy/ridge.md, "The paper's release"]
    """
    if feedback == "bandit":
        return math.sqrt(2), math.sqrt(2)
    rows = n_actions - 1 if one_zero else n_actions
    return math.sqrt(2 * n_actions), math.sqrt(2 * rows)


def zcdp(epsilon: float, delta: float) -> float:
    """ρ(ε, δ) = (√(log(1/δ) + ε) − √log(1/δ))². [paper, "Private quadratic oracle"]"""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def sampler_distance(coordinates: int, grid_sigma: float) -> float:
    """Total variation of a vector of discrete Gaussians from rounded Gaussians.

    Privacy: union over the coordinates that two neighbours touch.
    [docs/privacy/arithmetic.md, "What δ pays for it"]
    """
    return coordinates * DISTANCE_FACTOR / grid_sigma**2
