"""Noise sources for audits: many releases in one fit, and noise that the auditor chose."""

from __future__ import annotations

import multiprocessing
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import log_softmax

from discreet.batch import Batch
from discreet.oracles import Mechanism
from discreet.privacy.events import Event, NonPrivate
from discreet.privacy.noise import Noise, SecureNoise
from discreet.types import Array, NumpyArray

EXACT, FAST = SecureNoise(), SecureNoise(fast=True)


def sampler(noise: Noise) -> str:
    """Words about the sampler that a question ends with."""
    return ", fast sampler" if getattr(noise, "fast", False) else ""


@dataclass
class Trials:
    """Every draw of ``source`` made ``count`` times at once: one fit gives ``count`` releases.

    Oracles are written on arrays with any leading axes, so the fit itself is the shipped one; its
    predictor and Gram get an axis of trials in front.
    """

    source: Noise
    count: int

    @property
    def exact(self) -> bool:
        return self.source.exact

    def for_batch(self, batch: int) -> Trials:
        return Trials(self.source.for_batch(batch), self.count)

    def claim(self, event: Event) -> Event:  # noqa: ARG002
        return NonPrivate("many releases of one batch, for an audit")

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Array) -> Array:
        return self.source.gaussian(name, (self.count, *shape), scale)

    def normal(self, name: str, shape: tuple[int, ...]) -> Array:
        return self.source.normal(name, (self.count, *shape))

    def ball(self, name: str, shape: tuple[int, ...]) -> Array:
        return self.source.ball(name, (self.count, *shape))

    def choose(self, name: str, scores: Array, scale: Array) -> Array:
        drawn = [self.source.choose(name, scores, scale) for _ in range(self.count)]
        return np.asarray(drawn).reshape(self.count)


@dataclass
class Chosen:
    """Standard draws that the auditor chose, by name; everything else is silence.

    The mechanism takes it for a secure source, so rows are made legal and summed in integers as in
    a private release. ``requested`` has the shapes of draws, and scores with their scale.
    """

    draws: Mapping[str, Array] = field(default_factory=dict)
    requested: dict[str, tuple[int, ...]] = field(default_factory=dict)
    scores: Array = None
    scale: float = 0.0
    exact = True

    def for_batch(self, batch: int) -> Chosen:  # noqa: ARG002
        return self

    def claim(self, event: Event) -> Event:  # noqa: ARG002
        return NonPrivate("noise that an auditor chose")

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Array) -> Array:
        return np.rint(self.normal(name, shape) * scale).astype(np.int64)

    def normal(self, name: str, shape: tuple[int, ...]) -> Array:
        self.requested[name] = shape
        return np.asarray(self.draws.get(name, np.zeros(shape)))

    def ball(self, name: str, shape: tuple[int, ...]) -> Array:
        return self.normal(name, shape)

    def choose(self, name: str, scores: Array, scale: Array) -> Array:  # noqa: ARG002
        self.scores, self.scale = np.asarray(scores), float(np.squeeze(scale))
        return np.argmin(self.scores, axis=-1)

    def log_law(self, sharper: float = 1.0) -> NumpyArray:
        """Log probabilities of the choice that was requested, or of a ``sharper`` one."""
        return np.asarray(log_softmax(-sharper * self.scores / self.scale))


def choice_of(mechanism: Mechanism, batch: Batch) -> Chosen:
    """The scores, and the scale, with which the fit of a batch chooses."""
    noise = Chosen()
    mechanism.fit(batch, noise)
    return noise


@dataclass
class Shared(Chosen):
    """Seeded draws, the same in all worlds for each name, which pass for secure.

    ``offsets`` are added to some of them, so that noise can make up for other data: once, since
    what is drawn a second time would be noise on the same sums. ``repeated`` are the names of such
    draws. A choice is always the second function, and ``scales`` keeps the scales of choices.
    """

    offsets: Mapping[str, Array] = field(default_factory=dict)
    scales: set[float] = field(default_factory=set)
    repeated: set[str] = field(default_factory=set)
    seed: int = 0

    def claim(self, event: Event) -> Event:
        return event

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Array) -> Array:
        drawn = np.rint(self.standard(name, shape) * scale).astype(np.int64)
        return drawn + self._offset(name, shape)

    def normal(self, name: str, shape: tuple[int, ...]) -> Array:
        drawn = np.asarray(self.draws.get(name, self.standard(name, shape)))
        return drawn + self._offset(name, shape)

    def choose(self, name: str, scores: Array, scale: Array) -> Array:  # noqa: ARG002
        self.scales.add(float(np.squeeze(scale)))
        return np.asarray(1)

    def standard(self, name: str, shape: tuple[int, ...]) -> NumpyArray:
        """Return the standard normal draws of this name."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())]).normal(size=shape)

    def drawn(self) -> NumpyArray:
        """The draws for Gram, response and loss sums that were requested, as they are read."""
        names = [name for name in ("gram", "response", "told") if name in self.requested]
        return np.concatenate([self.standard(n, self.requested[n]).ravel() for n in names])

    def _offset(self, name: str, shape: tuple[int, ...]) -> Array:
        if name in self.requested:
            self.repeated.add(name)
            return 0
        self.requested[name] = shape
        return self.offsets.get(name, 0)


@dataclass
class SharedByBatch(Shared):
    """Seeded draws for whole runs: other ones for each batch, which ``batches`` keeps in order."""

    batches: list[Shared] = field(default_factory=list)

    def for_batch(self, batch: int) -> Shared:
        self.batches.append(Shared(seed=batch))
        return self.batches[-1]


class Crash(Exception):  # noqa: N818
    """The process that released a batch has died."""


class Dying(SecureNoise):
    """Noise that is drawn, by a process that dies before anything can be published."""

    def gaussian(self, name: str, shape: tuple[int, ...], scale: Array) -> Array:
        drawn = super().gaussian(name, shape, scale)
        if name == "response":
            raise Crash
        return drawn


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a new process: a copy of this one where the system can fork."""
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(function, *arguments).result()
