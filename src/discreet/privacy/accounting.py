"""The cost of an event: ε at a given δ, through dp_accounting, rounded outward.

dp_accounting takes a second to import, so it is imported only where a private event is priced.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.privacy.events import (
    Event,
    Gaussian,
    NonPrivate,
    ObjectivePerturbation,
    flattened,
    is_renyi,
    pure_epsilon,
)

RENYI_ORDERS = tuple(np.concatenate([1 + np.geomspace(0.01, 8, 120), np.geomspace(9.5, 2000, 120)]))


@lru_cache(maxsize=4096)
def epsilon(event: Event, delta: float) -> float:
    """The smallest ε that we can prove for ``event`` at ``delta``; ∞ if there is none."""
    parts = flattened(event)
    if any(isinstance(part, NonPrivate) for part in parts):
        return math.inf
    pure = sum((pure_epsilon(part) for part in parts), 0.0)
    gaussians = [part for part in parts if isinstance(part, Gaussian)]
    objectives = tuple(part for part in parts if is_renyi(part))
    if not gaussians and not objectives:
        return pure
    multipliers = tuple(part.multiplier for part in gaussians)
    distance = sum(part.sampler_distance for part in gaussians)
    # Privacy: an ideal sampler that is (ε, δ') makes ours (ε, δ' + (1 + e^ε)·d), d the total
    # variation between them. The ε at δ/2 bounds the ε at any δ' ≥ δ/2, so the exponent may
    # use it as long as the sampler takes at most half of δ.
    # [docs/privacy/arithmetic.md, "What δ pays for it"]
    loose = _approximate_epsilon(multipliers, objectives, delta / 2)
    if not math.isfinite(loose) or loose > 700:
        return math.inf
    taken = (1.0 + math.exp(loose)) * distance
    if taken > delta / 2:
        return math.inf
    return pure + _approximate_epsilon(multipliers, objectives, delta - taken)


@lru_cache(maxsize=4096)  # events of problems that differ in sensitivities alone cost the same
def _approximate_epsilon(
    multipliers: tuple[float, ...], objectives: tuple[ObjectivePerturbation, ...], delta: float
) -> float:
    if delta <= 0.0:
        return math.inf
    import dp_accounting

    # Gaussian mechanisms compose into one: 1/multiplier² add up.
    inverse_square = sum(multiplier**-2 for multiplier in multipliers)
    if not objectives:
        return float(dp_accounting.get_epsilon_gaussian(inverse_square**-0.5, delta))
    orders = np.asarray(RENYI_ORDERS)
    curve = orders * inverse_square / 2
    for part in objectives:
        curve = curve + objective_renyi(part, orders)
    return float(dp_accounting.rdp.compute_epsilon(orders, curve, delta)[0])


def objective_renyi(event: ObjectivePerturbation, orders: Any) -> Any:
    """Rényi divergence of Gaussian objective perturbation under replacement.

    ε(α) = κ + m²/2 + [m²(α−1)²/2 + log(2Φ(m(α−1)))]/(α−1), m = 2/σ, for each block.
    [Redberg et al. 2023; replacement in docs/privacy/logistic.md]
    """
    from scipy.special import log_ndtr

    m, excess = event.shift, np.asarray(orders) - 1.0
    moment = m**2 * excess**2 / 2 + math.log(2.0) + log_ndtr(m * excess)
    return event.blocks * (event.kappa + m**2 / 2 + moment / excess)
