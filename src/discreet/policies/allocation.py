"""What several policies share: how predictions become probabilities, and probabilities actions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from discreet.backend import namespace
from discreet.release import Released
from discreet.types import Array


class Policy(ABC):
    """A frozen dataclass of public parameters with a rule that broadcasts.

    Inputs are releases and features, nothing else. Privacy holds for every fixed ``u``.
    """

    uses_radii: ClassVar[bool] = False
    """Whether releases must carry Grams."""
    needs_bounded_losses: ClassVar[bool] = False
    """Whether predictions must lie in [0, 1]."""

    @abstractmethod
    def probabilities(self, released: Released, features: Array) -> Array:
        """(..., n, p) -> (..., n, A), rows on the simplex; uniform before the first release."""

    def sample(self, released: Released, features: Array, u: Array) -> Array:
        """Actions (..., n) from uniforms u (..., n, 2)."""
        return draw(self.probabilities(released, features), u[..., 0])


def uniform(released: Released, features: Array) -> Array:
    """1/A for every action."""
    xp = namespace(features)
    shape = (*features.shape[:-1], released.n_actions)
    extra = {} if xp is np else {"device": features.device}
    return xp.full(shape, 1.0 / released.n_actions, dtype=features.dtype, **extra)


def draw(probabilities: Array, u: Array) -> Array:
    """Inverse-CDF draw: the first action whose cumulative probability exceeds u."""
    xp = namespace(probabilities)
    if xp is np:
        cumulative = np.cumsum(probabilities, axis=-1)
    else:
        cumulative = xp.cumulative_sum(probabilities, axis=-1)
    # Scaled by the total, so that rounding can never push u past the last action.
    passed = cumulative[..., :-1] <= (u * cumulative[..., -1])[..., None]
    return xp.sum(passed, axis=-1, dtype=xp.int64)


def is_first_minimum(losses: Array) -> Array:
    """Mask of the first minimiser of each row."""
    xp = namespace(losses)
    best = xp.argmin(losses, axis=-1)
    actions = np.arange(losses.shape[-1])
    if xp is not np:
        actions = xp.asarray(actions, device=losses.device)
    return actions == best[..., None]


def even_split(values: Array) -> Array:
    """Even probabilities among the minimisers, up to 1e-12 relative."""
    xp = namespace(values)
    least = xp.min(values, axis=-1, keepdims=True)
    tied = xp.astype(values - least <= 1e-12 * (1.0 + xp.abs(least)), values.dtype)
    return tied / xp.sum(tied, axis=-1, keepdims=True)


def inverse_gap(losses: Array, gamma: Any, survivors: Array | None = None) -> Array:
    """p(a) = 1/(|S| + γ·gap_a) for a ≠ b in S, the rest on b; b the first minimiser in S.

    [SquareCB: Foster and Rakhlin 2020; inside a survivor set S: AdaCB, Foster et al. 2021]
    """
    xp = namespace(losses)
    count: Any = float(losses.shape[-1])
    if survivors is not None:
        losses = xp.where(survivors, losses, math.inf)
        count = xp.sum(xp.astype(survivors, losses.dtype), axis=-1, keepdims=True)
    gap = losses - xp.min(losses, axis=-1, keepdims=True)
    others = xp.where(is_first_minimum(losses), 0.0, 1.0 / (count + gamma * gap))
    return rest_on_best(others, losses)


def rest_on_best(others: Array, losses: Array) -> Array:
    """Fill the first minimiser's probability (zero in ``others``) with what is left."""
    xp = namespace(losses)
    return xp.where(is_first_minimum(losses), 1.0 - xp.sum(others, axis=-1, keepdims=True), others)


def surviving(scores: Array, widths: Array) -> Array:
    """{a : g_a − w_a ≤ min_b (g_b + w_b)}. [RegCB: Foster et al. 2018]"""
    xp = namespace(scores)
    return scores - widths <= xp.min(scores + widths, axis=-1, keepdims=True)
