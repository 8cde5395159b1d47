"""Scores and sums over rows on the grid, without the rounding error of long sums.

A factor is split into a coarse part, whose products with the integer rows add up without any
rounding, and a remainder so small that its rounding is negligible. The remaining error comes from
single operations, so it has a bound for every batch and every order of its rows.
[docs/privacy/logistic.md, "Rounding"]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.oracles.mechanisms.legal_rows import GRID

UNIT = 2.0**-53
"""Relative error of one floating-point operation."""
_EXACT = 2**53
"""Sums of integers up to this size are exact in floating point, in any order."""
_EXACT_ROWS = _EXACT // GRID**2

Floats = np.ndarray[Any, Any]


def exact_scores(grid: Floats, theta: Floats) -> Floats:
    """x·θ_a, x = z/(2^20·√2), for (n, p) and (..., A, p): (..., n, A), three roundings each."""
    p = grid.shape[-1]
    flat = theta.reshape(-1, p)
    # p products of integers up to 2^20 and 2^bits sum to at most 2^53.
    bits = (_EXACT // (GRID * p)).bit_length() - 1
    exponents = np.frexp(np.abs(flat).max(axis=-1, keepdims=True))[1]
    step = np.ldexp(1.0, exponents - bits)
    coarse = np.rint(flat / step) * step
    products = np.concatenate([coarse, flat - coarse]) @ grid.T
    scores = products[: len(flat)]
    scores += products[len(flat) :]
    scores *= math.sqrt(0.5) / GRID
    return scores.reshape(*theta.shape[:-1], len(grid)).mT


def exact_sums(grid: Floats, factors: Floats) -> Floats:
    """Σ_n r_na·x_n for factors in [−1, 1]: (n, p) and (..., n, A) -> (..., A, p)."""
    rows, p = grid.shape
    scaled = factors.mT.reshape(-1, rows) * GRID
    coarse = np.rint(scaled)
    both = np.concatenate([coarse, scaled - coarse])
    whole, rest = np.zeros((len(scaled), p), dtype=np.int64), np.zeros((len(scaled), p))
    for start in range(0, rows, _EXACT_ROWS):
        part = slice(start, start + _EXACT_ROWS)
        sums = both[:, part] @ grid[part]
        whole += sums[: len(scaled)].astype(np.int64)
        rest += sums[len(scaled) :]
    sums = (whole.astype(np.float64) + rest) * (math.sqrt(0.5) / GRID**2)
    return np.asarray(sums.reshape(*factors.shape[:-2], factors.shape[-1], p))


def attainable_norm(records: int, p: int, ridge: Any, tilt: Any) -> Any:
    """A gradient norm that plain gradient steps reach and that these sums show, for any rows.

    Privacy: four times the largest error of a step; ``tilt`` is the largest norm that the
    objective's noise can have. [docs/privacy/logistic.md, "Rounding"]
    """
    ridge, tilt = np.asarray(ridge, dtype=float), np.asarray(tilt, dtype=float)
    reach = 1.0 + 2.0 * tilt / ridge + np.sqrt(2.0 * math.log(2.0) * records / ridge)
    each = 11.0 + (0.25 + p**2.5 * 2.0**-34) * reach
    return 4.0 * UNIT * (each * records + tilt + 2.0 * ridge * reach)
