"""Sources of privacy noise.

Two sources draw from the same four distributions. ``SecureNoise`` takes the operating system's
entropy through OpenDP's exact samplers; private releases need it. ``SeededNoise`` draws from a
seed, so that experiments can be repeated and paired. Anyone who knows the seed can subtract the
noise, so every release made with it is marked ``NonPrivate``.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from discreet.errors import PrivateData
from discreet.privacy.events import Event, NonPrivate, fast_sampled
from discreet.types import Array, Floats, NumpyArray

LARGEST_NORMAL = 8.3
"""No secure normal draw is larger in size: Φ⁻¹(2⁻⁵³) = −8.21."""
LARGEST_EXPONENTIAL = 36.8
"""No secure exponential draw is larger: −log 2⁻⁵³ = 36.74."""
_TABLE_SCALE = 128
_LEAST_FAST_SCALE = 2.0**20
"""Below this scale, which no release has, the fast sampler uses the exact one."""


class Noise(Protocol):
    """Draws for a mechanism; ``name`` distinguishes the draws of one batch."""

    @property
    def exact(self) -> bool:
        """True: statistics are integers and noise is drawn on their grid."""

    def for_batch(self, batch: int) -> Noise:
        """Return the noise of one batch."""

    def claim(self, event: Event) -> Event:
        """Return the event that a release made with this noise may claim."""

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Array) -> Array:
        """Gaussian noise for a statistic: integers if ``exact``, else ``scale`` × normals."""

    def normal(self, name: str, shape: tuple[int, ...]) -> Array:
        """Standard normal draws."""

    def ball(self, name: str, shape: tuple[int, ...]) -> Array:
        """Vectors along the last axis with density ∝ exp(−‖v‖)."""

    def choose(self, name: str, scores: Array, scale: Array) -> Array:
        """An index with probability ∝ exp(−scores / scale), over the last axis."""


@dataclass(frozen=True)
class SecureNoise:
    """Noise that cannot be reproduced: system entropy, exact samplers on an integer grid.

    ``fast`` replaces OpenDP's discrete Gaussian (15–60 µs per entry) by integer sums of draws
    from a table (under 1 µs), within 1e-15 of it in total variation per coordinate; the
    event says so and the ledger charges for it. [docs/privacy/arithmetic.md, "The fast sampler"]

    >>> SecureNoise().exact  # fit for people: the ledger claims what the plan says
    True
    """

    fast: bool = False
    exact = True

    def for_batch(self, batch: int) -> SecureNoise:  # noqa: ARG002
        return self

    def claim(self, event: Event) -> Event:
        return fast_sampled(event) if self.fast else event

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Array) -> Array:  # noqa: ARG002
        scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), shape)
        draw = _fast_gaussian if self.fast else _discrete_gaussian
        drawn = np.zeros(shape, dtype=np.int64)
        for value in np.unique(scales):
            where = scales == value
            drawn[where] = draw(float(value), int(where.sum()))
        return drawn

    def normal(self, name: str, shape: tuple[int, ...]) -> Floats:  # noqa: ARG002
        from scipy.special import ndtri

        return np.asarray(ndtri(_uniforms(shape)))

    def ball(self, name: str, shape: tuple[int, ...]) -> Floats:
        direction = self.normal(name, shape)
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        # Gamma(k) for whole k is a sum of k exponentials.
        radius = -np.log(_uniforms(shape)).sum(axis=-1, keepdims=True)
        return np.asarray(direction * radius)

    def choose(self, name: str, scores: Array, scale: Array) -> Array:  # noqa: ARG002
        if not np.issubdtype(np.asarray(scores).dtype, np.integer) or np.ndim(scores) != 1:
            raise PrivateData(
                "scores must be one row of integers for SecureNoise; got another type or shape. "
                "Quantise them on a public grid first."
            )
        return np.asarray(
            _exponential_mechanism([int(score) for score in scores], float(np.squeeze(scale)))
        )


@dataclass(frozen=True)
class SeededNoise:
    """Noise for experiments: repeatable, shared by all runs with one seed, never private.

    A draw depends only on (seed, batch, name, shape): ε only rescales it, and algorithms that
    share a mechanism share its noise, as in the paper's protocol. Several seeds give draws with
    two leading axes, (seeds, 1).

    >>> SeededNoise(0).exact  # the ledger says NonPrivate
    False
    """

    seed: int | Sequence[int]
    batch: int = 0
    exact = False

    def for_batch(self, batch: int) -> SeededNoise:
        return replace(self, batch=batch)

    def claim(self, event: Event) -> Event:
        if isinstance(event, NonPrivate):
            return event
        return NonPrivate("seeded noise: whoever knows the seed can remove it")

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Array) -> Array:
        return self.normal(name, shape) * scale

    def normal(self, name: str, shape: tuple[int, ...]) -> Floats:
        return self._each(name, lambda rng: rng.standard_normal(shape))

    def ball(self, name: str, shape: tuple[int, ...]) -> Floats:
        def draw(rng: np.random.Generator) -> Floats:
            direction = rng.standard_normal(shape)
            direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
            return direction * rng.gamma(shape[-1], size=(*shape[:-1], 1))

        return self._each(name, draw)

    def choose(self, name: str, scores: Array, scale: Array) -> Array:
        gumbel = self._each(name, lambda rng: rng.gumbel(size=np.shape(scores)[-1]))
        return np.argmin(np.asarray(scores) - scale * gumbel, axis=-1)

    def _each(self, name: str, draw: Callable[[np.random.Generator], Array]) -> Floats:
        tag = zlib.crc32(name.encode())
        if isinstance(self.seed, (int, np.integer)):
            return np.asarray(draw(np.random.default_rng((int(self.seed), self.batch, tag))))
        generators = [np.random.default_rng((int(seed), self.batch, tag)) for seed in self.seed]
        return np.stack([draw(generator) for generator in generators])[:, None]


def _uniforms(shape: tuple[int, ...]) -> Floats:
    """Uniforms in (0, 1) from the operating system: odd multiples of 2^−53, so never 0 or 1."""
    bits = _words(math.prod(shape)) >> np.uint64(12)
    return ((bits.astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)


def _words(count: int) -> NumpyArray:
    """Uniform 64-bit words from the operating system."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def _discrete_gaussian(scale: float, count: int) -> NumpyArray:
    """Exact draws of the discrete Gaussian on the integers."""
    if scale == 0.0:
        return np.zeros(count, dtype=np.int64)
    from opendp import measurements  # opendp.prelude would import scikit-learn, pandas and Polars

    vectors, distance, _ = _space(count, "l2")
    drawn = measurements.make_gaussian(vectors, distance, scale=scale, k=0)([0] * count)
    return np.asarray(drawn, dtype=np.int64)


def _fast_gaussian(scale: float, count: int) -> NumpyArray:
    """Nearly exact draws of the discrete Gaussian: y = x + z·x' with table draws x', repeated.

    Privacy: with z ≤ 0.66·(scale of x) the sum is a discrete Gaussian up to 1e-19, and its
    scale is never below ``scale``. [docs/privacy/arithmetic.md, "The fast sampler"]
    """
    if scale < _LEAST_FAST_SCALE:
        return _discrete_gaussian(scale, count)
    drawn, reached = _table_draws(count), float(_TABLE_SCALE)
    while reached < scale:
        needed = math.ceil(math.sqrt(scale**2 - reached**2) / _TABLE_SCALE * (1.0 + 1e-12))
        z = max(1, min(needed, int(0.66 * reached)))
        drawn = drawn + z * _table_draws(count)
        reached = math.hypot(reached, z * _TABLE_SCALE)
    return drawn


def _table_draws(count: int) -> NumpyArray:
    """Discrete Gaussian draws of scale 128 by inversion of 64-bit uniforms."""
    thresholds = _table()
    return np.searchsorted(thresholds, _words(count), side="right") - len(thresholds) // 2


@lru_cache(maxsize=1)
def _table() -> NumpyArray:
    """⌊2^64·P(x ≤ k)⌋ for k = −K … K − 1, K = 10 scales; words above the last give x = K."""
    top = 10 * _TABLE_SCALE
    with localcontext() as context:
        context.prec = 40
        half = [(Decimal(-k * k) / (2 * _TABLE_SCALE**2)).exp() for k in range(top + 1)]
        cumulative = list(accumulate([*half[:0:-1], *half]))
        parts = [int(sum_ / cumulative[-1] * 2**64) for sum_ in cumulative[:-1]]
    return np.asarray(parts, dtype=np.uint64)


def _exponential_mechanism(scores: list[int], scale: float) -> int:
    """Index of the noisy minimum with exact Gumbel noise: the exponential mechanism."""
    from opendp import measurements

    space = _space(len(scores), "linf")
    return int(measurements.make_noisy_max(*space, scale=scale, negate=True)(scores))


@lru_cache(maxsize=64)
def _space(count: int, norm: str) -> tuple[Any, Any, Any]:
    """So many integers, their distance and the measure of privacy, in OpenDP's terms.

    They hold no number of a draw, and making them takes longer than a small draw does.
    """
    from opendp.domains import atom_domain, vector_domain
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import l2_distance, linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    distance = l2_distance(T=float) if norm == "l2" else linf_distance(T="i64")
    vectors = vector_domain(atom_domain(T="i64"), size=count)
    return vectors, distance, zero_concentrated_divergence()
