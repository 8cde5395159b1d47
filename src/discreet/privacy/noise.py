"""Where privacy noise comes from.

Two sources with the same four laws. ``SecureNoise`` draws from the operating system's
entropy through OpenDP's exact samplers and is what a private release needs. ``SeededNoise``
draws from a seed, so that experiments can be repeated and paired; whoever knows the seed can
subtract the noise, so everything made with it is marked ``NonPrivate``.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from discreet.errors import PrivateData
from discreet.privacy.events import Composed, Event, Gaussian, NonPrivate

Floats = np.ndarray[Any, Any]


class Noise(Protocol):
    """What an oracle may ask for. ``name`` tells draws of one batch apart."""

    exact: bool
    """True: statistics are integers and noise is drawn on their grid."""

    def for_batch(self, batch: int) -> Noise:
        """The noise of one batch."""

    def claim(self, event: Event) -> Event:
        """What may be said of a release made with this noise."""

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Any) -> Any:
        """Gaussian noise for a statistic: integers if ``exact``, else ``scale`` × normals."""

    def normal(self, name: str, shape: tuple[int, ...]) -> Any:
        """Standard normal draws."""

    def ball(self, name: str, shape: tuple[int, ...]) -> Any:
        """Vectors along the last axis with density ∝ exp(−‖v‖)."""

    def choose(self, name: str, scores: Any, scale: Any) -> Any:
        """An index with probability ∝ exp(−scores / scale), over the last axis."""


@dataclass(frozen=True)
class SecureNoise:
    """Noise nobody can reproduce: operating-system entropy, exact samplers on an integer grid.

    ``fast`` replaces OpenDP's discrete Gaussian (15–60 µs an entry) by a rounded continuous
    one: post-processing of the Gaussian mechanism, given a good continuous sampler.
    """

    fast: bool = False
    exact = True

    def for_batch(self, batch: int) -> SecureNoise:  # noqa: ARG002
        return self

    def claim(self, event: Event) -> Event:
        if self.fast and isinstance(event, Gaussian):
            said = "Gaussian noise is a rounded continuous draw from 53-bit uniforms"
            return replace(event, assumes=(*event.assumes, said))
        if self.fast and isinstance(event, Composed):
            return Composed(tuple(self.claim(part) for part in event.events))
        return event

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Any) -> Any:
        scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), shape)
        if self.fast:
            return np.rint(self.normal(name, shape) * scales).astype(np.int64)
        drawn = np.zeros(shape, dtype=np.int64)
        for value in np.unique(scales):
            where = scales == value
            drawn[where] = _discrete_gaussian(float(value), int(where.sum()))
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

    def choose(self, name: str, scores: Any, scale: Any) -> Any:  # noqa: ARG002
        if not np.issubdtype(np.asarray(scores).dtype, np.integer) or np.ndim(scores) != 1:
            raise PrivateData(
                "scores must be one row of integers for SecureNoise; they are not. "
                "Quantise them on a public grid first."
            )
        return np.asarray(
            _exponential_mechanism([int(score) for score in scores], float(np.squeeze(scale)))
        )


@dataclass(frozen=True)
class SeededNoise:
    """Noise for experiments: repeatable, shared by all runs of a seed, never private.

    A draw depends on (seed, batch, name, shape) alone: ε only rescales it, and algorithms that
    share a mechanism share its noise, as in the paper's protocol. Several seeds give draws with
    two leading axes, (seeds, 1).
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

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Any) -> Any:
        return self.normal(name, shape) * scale

    def normal(self, name: str, shape: tuple[int, ...]) -> Floats:
        return self._each(name, lambda rng: rng.standard_normal(shape))

    def ball(self, name: str, shape: tuple[int, ...]) -> Floats:
        def draw(rng: np.random.Generator) -> Floats:
            direction = rng.standard_normal(shape)
            direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
            return direction * rng.gamma(shape[-1], size=(*shape[:-1], 1))

        return self._each(name, draw)

    def choose(self, name: str, scores: Any, scale: Any) -> Any:
        gumbel = self._each(name, lambda rng: rng.gumbel(size=np.shape(scores)[-1]))
        return np.argmin(np.asarray(scores) / scale - gumbel, axis=-1)

    def _each(self, name: str, draw: Any) -> Floats:
        tag = zlib.crc32(name.encode())
        if isinstance(self.seed, (int, np.integer)):
            return np.asarray(draw(np.random.default_rng([int(self.seed), self.batch, tag])))
        draws = [draw(np.random.default_rng([int(s), self.batch, tag])) for s in self.seed]
        return np.stack(draws)[:, None]


def _uniforms(shape: tuple[int, ...]) -> Floats:
    """Uniforms in (0, 1) from the operating system: odd multiples of 2^−54."""
    count = int(np.prod(shape, dtype=np.int64))
    bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(11)
    return ((bits.astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)


def _discrete_gaussian(scale: float, count: int) -> Any:
    """Exact draws of the discrete Gaussian on the integers."""
    if scale == 0.0:
        return np.zeros(count, dtype=np.int64)
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=count), dp.l2_distance(T=float)
    return np.asarray(dp.m.make_gaussian(*space, scale=scale, k=0)([0] * count), dtype=np.int64)


def _exponential_mechanism(scores: list[int], scale: float) -> int:
    """Index of the noisy minimum with exact Gumbel noise: the exponential mechanism."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=len(scores)), dp.linf_distance(T="i64")
    measure = dp.zero_concentrated_divergence()
    return int(dp.m.make_noisy_max(*space, measure, scale=scale, negate=True)(scores))
