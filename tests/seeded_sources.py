"""Seeds for all randomness that a test does not seed itself, so that a test always sees the same.

Noise of ``SecureNoise``, generators made by ``default_rng()`` and the keys of people begin, for
each test and each fixture, at a seed made of its name. OpenDP draws inside its own library, so its
sampler has a seeded stand-in. A test with the marker ``entropy``, a child process, and a test that
replaces ``os.urandom`` itself have the sources of the shipped code.
"""

import os
import types
import zlib
from contextlib import contextmanager

import numpy as np
from hypothesis.internal.conjecture import providers
from opendp import measurements

from discreet.batches import users
from discreet.privacy import noise

_MADE, _URANDOM, _PROCESS = np.random.default_rng, os.urandom, os.getpid()
_LEAST_ROUNDED = 2.0**10
"""From this scale on, a rounded normal differs from a discrete Gaussian by less than 1e-7."""


class Sources:
    """The seeded sources; ``secret`` is true where the operating system's are to be used."""

    def __init__(self):
        self.secret, self._stream, self._words = False, _MADE(0), noise._words
        self._real = measurements.make_gaussian, measurements.make_noisy_max

    @property
    def _off(self):
        return self.secret or os.urandom is not _URANDOM or os.getpid() != _PROCESS

    @contextmanager
    def begun(self, name, secret=False):
        """The sources from the seed of a name on; afterwards they go on where they were."""
        before = self._stream, self.secret
        self._stream, self.secret = _MADE(zlib.crc32(name.encode())), secret
        try:
            yield
        finally:
            self._stream, self.secret = before

    def install(self, patched):
        """Put the sources into place, by a ``MonkeyPatch``."""
        patched.setattr(noise, "_words", self.words)
        patched.setattr(measurements, "make_gaussian", self.make_gaussian)
        patched.setattr(measurements, "make_noisy_max", self.make_noisy_max)
        patched.setattr(np.random, "default_rng", self.default_rng)
        keys = types.SimpleNamespace(token_bytes=self.token_bytes)
        patched.setattr(users, "secrets", keys)
        # Hypothesis tries constants of all modules that are loaded: those of earlier tests too.
        if hasattr(providers, "_get_local_constants"):
            patched.setattr(providers, "_get_local_constants", providers.Constants)

    def words(self, count):
        if self._off:
            return self._words(count)
        return np.frombuffer(self._stream.bytes(8 * count), dtype=np.uint64)

    def default_rng(self, seed=None):
        return _MADE(self._stream.integers(2**63) if seed is None and not self._off else seed)

    def token_bytes(self, count):
        return _URANDOM(count) if self._off else self._stream.bytes(count)

    def make_gaussian(self, *space, scale, **words):
        if self._off:
            return self._real[0](*space, scale=scale, **words)
        return lambda values: (np.asarray(values) + self._gaussian(scale, len(values))).tolist()

    def _gaussian(self, scale, count):
        if scale >= _LEAST_ROUNDED:
            return np.rint(self._stream.normal(scale=scale, size=count)).astype(np.int64)
        far = int(np.ceil(12 * scale))
        values = np.arange(-far, far + 1)
        chances = np.exp(-0.5 * (values / scale) ** 2)
        return self._stream.choice(values, size=count, p=chances / chances.sum())

    def make_noisy_max(self, *space, scale, negate=False, **words):
        if self._off:
            return self._real[1](*space, scale=scale, negate=negate, **words)

        def choose(scores):
            signed = np.asarray(scores, dtype=np.float64) * (-1.0 if negate else 1.0)
            return int(np.argmax(signed + scale * self._stream.gumbel(size=len(signed))))

        return choose


SOURCES = Sources()
