"""VanillaPO: the average of exponential updates with one predictor."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from discreet.arrays.backend import as_like, namespace, per_run, softmax
from discreet.policies import one_row
from discreet.policies.allocation import Policy, draw, uniform
from discreet.policies.oracle_errors import batch_error
from discreet.releases.policy_view import PolicyView
from discreet.types import Array, Numbers, NumpyArray
from discreet.validate import one_of, positive

_NODES = 14
"""Nodes per panel: error below 2e-11 for up to 1,000 actions (docs/vanilla-quadrature.md)."""


@dataclass(frozen=True)
class VanillaPO(Policy):
    """π_m(c, a) = (1/B) Σ_{k<B} softmax_a(−η_m·k·f̂(c, a)), η_m = η0·min{1/A, 1/√(A·B·E)}.

    ``scale`` η0; ``error_bound`` E is 1 in the paper's experiments and six times the oracle's
    bound in its proof (``theoretical``). B is the length of the current batch
    (``rollout="current"``, the paper's text) or of the previous one (``"previous"``, its public
    scripts). Sampling draws K ~ Unif{0, …, B−1} and then one softmax. [paper, Algorithm 2]

    >>> from discreet.releases.released import Released
    >>> import numpy as np
    >>> from discreet.releases.release import Predictor, Release
    >>> released = Released(2).add(Release(1, 1, Predictor(np.array([[1.0], [0.0]]), "identity")))
    >>> VanillaPO(scale=2.0).probabilities(released, np.ones((1, 1))).round(4)
    array([[0.3845, 0.6155]])
    """

    scale: float = 8.0
    rollout: str = "current"
    error_bound: float = 1.0
    _gpu_rule = "softmax"

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        positive("error_bound", self.error_bound)
        one_of("rollout", self.rollout, ("current", "previous"))

    @classmethod
    def theoretical(
        cls, *, horizon: int, functions: int, delta: float, epsilon: float = math.inf
    ) -> VanillaPO:
        """The rates of the proof, η_m = min{1/A, 1/√(6·A·B_m·Err)}, for a finite class.

        Err is that of least squares, or of the exponential mechanism at a finite ε.
        [paper, equation "vanilla-batch-rate"]

        >>> round(VanillaPO.theoretical(horizon=1000, functions=16, delta=0.05).error_bound, 2)
        567.43
        """
        return cls(scale=1.0, error_bound=6.0 * batch_error(horizon, functions, delta, epsilon))

    def probabilities(self, view: PolicyView, features: Array) -> Array:
        """The exact mixture: a direct sum for small B, Gauss rules on dyadic panels beyond."""
        if view.latest is None:
            return uniform(view, features)
        length, rate = self._length_and_rate(view, features)
        losses = rate * view.latest.predictor.losses(features)
        nodes, weights = mixture_nodes(length)
        total: Numbers = 0.0
        for group in range(0, len(nodes), 16):
            k = as_like(nodes[group : group + 16], losses)
            w = as_like(weights[group : group + 16], losses)
            components = softmax(-k[:, None] * losses[..., None, :])  # (..., n, 16, A)
            total = total + namespace(losses).sum(w[:, None] * components, axis=-2)
        return total

    def sample(self, view: PolicyView, features: Array, u: Array) -> Array:
        """K from u[..., 0], the action of softmax(−η·K·f̂) from u[..., 1]."""
        if view.latest is None:  # like every policy, so that all begin with equal actions
            return draw(uniform(view, features), u[..., 0])
        if (drawn := self._drawn_on_gpu(view, features, u)) is not None:
            return drawn
        length, rate = self._length_and_rate(view, features)
        k = as_like(namespace(u).floor(u[..., 0] * length), features)[..., None]
        losses = view.latest.predictor.losses(features)
        return draw(softmax(-(rate * k) * losses), u[..., 1])

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        if view.latest is None:
            return one_row.uniform(view)
        length, rate = self._length_and_rate(view, None)
        losses, rate = view.latest.predictor.losses, float(rate)

        def sample(features: Array, u: float, v: float) -> int:
            slope = -(rate * math.floor(u * length))
            logits = [slope * loss for loss in one_row.row(losses(features))]
            return one_row.draw(one_row.softmax(logits), v)

        return replace(one_row.by_arrays(self, view), sample=sample)

    def _length_and_rate(self, view: PolicyView, features: Array) -> tuple[int, Numbers]:
        rate, _, length = self._gpu_parameters(view)
        return length, per_run(rate, features)

    def _gpu_parameters(self, view: PolicyView) -> tuple[Numbers, Numbers, int]:
        length = view.batch_length
        if self.rollout == "previous":
            length = view.schedule.nominal(len(view.items))
        actions = view.n_actions
        slow = (actions * length * self.error_bound) ** -0.5
        return self.scale * np.minimum(1.0 / actions, slow), 0.0, length


@lru_cache(maxsize=128)
def mixture_nodes(length: int) -> tuple[NumpyArray, NumpyArray]:
    """Nodes k and weights w with Σ w·g(k) = (1/B) Σ_{k<B} g(k) for smooth decaying g.

    The points 0 … 15 stand for themselves; each panel [2^j, 2^(j+1)) carries a 14-point Gauss
    rule for the counting measure on its points.
    """
    panels = [(0, min(length, 16))]
    while panels[-1][1] < length:
        panels.append((panels[-1][1], min(length, 2 * panels[-1][1])))
    nodes, weights = zip(*(_counting_rule(stop - start) for start, stop in panels), strict=True)
    starts = [start for start, _ in panels]
    shifted = [node + start for node, start in zip(nodes, starts, strict=True)]
    return np.concatenate(shifted), np.concatenate(weights) / length


def _counting_rule(points: int) -> tuple[NumpyArray, NumpyArray]:
    """Gauss rule for Σ_{k=0}^{N−1} g(k): Golub–Welsch for discrete Chebyshev polynomials.

    Recurrence: α_k = (N−1)/2, β_k = k²(N²−k²) / (4(4k²−1)). [Gautschi 2004, table 1.1]
    """
    if points <= 16:
        return np.arange(points, dtype=np.float64), np.ones(points)
    k = np.arange(1, _NODES, dtype=np.float64)
    off_diagonal = np.sqrt(k**2 * (float(points) ** 2 - k**2) / (4.0 * (4.0 * k**2 - 1.0)))
    jacobi = np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    return nodes + (points - 1) / 2, points * vectors[0] ** 2
