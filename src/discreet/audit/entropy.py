"""The source of noise: the entropy of the operating system, and nothing else.

In a separate process a known stream replaces the entropy. Then every draw must repeat for every
state of the clock, the process and the generators of Python and NumPy, and must change with the
stream. Each entry must use separate words, and all the bits of a word that a float can hold.
OpenDP draws inside its own library, so a stand-in replaces it: its numbers, large ones too, must
be returned unchanged.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from discreet.audit.finding import Finding, listed
from discreet.audit.noise_sources import EXACT, in_fresh_process, sampler
from discreet.audit.subjects import Subject
from discreet.privacy.noise import Noise
from discreet.types import Array

CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
SCALE = 5.9 * 2.0**41
"""Roughly the noise of a Gram at ε = 1, in steps of its grid."""
FAR = 12.0
"""Deviations that a stand-in draws and that nothing may cut off."""
_UNUSED = 12
"""Low bits of a word that a float between 0 and 1 cannot hold."""


class Stream:
    """Known bytes in place of entropy; ``changed`` flips one bit of one 64-bit word."""

    def __init__(self, seed: int, changed: tuple[int, int] | None = None) -> None:
        self._seed, self._changed, self.words = seed, changed, 0

    def __call__(self, count: int) -> bytes:
        name = f"{self._seed} {self.words}".encode()
        drawn = bytearray(hashlib.shake_256(name).digest(count))
        if self._changed is not None:
            word, bit = self._changed
            place = 8 * (word - self.words) + bit // 8
            if 0 <= place < count:
                drawn[place] ^= 1 << bit % 8
        self.words += -(-count // 8)
        return bytes(drawn)


class StandIn:
    """OpenDP's measurements with numbers of the stream: ``calls`` and ``results`` list them."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.calls: list[tuple[list[int], float]] = []
        self.results: list[Array] = []

    def gaussian(self, *space: Any, scale: float, k: int = 0, **_: Any) -> Callable[[Any], Any]:  # noqa: ARG002
        def draw(values: Any) -> Any:
            words = np.frombuffer(self._stream(8 * len(values)), dtype=np.int64)
            drawn = [int(word / 2.0**63 * FAR * scale) for word in words]
            self.calls.append((list(values), scale))
            self.results.append(drawn)
            return drawn

        return draw

    def noisy_max(self, *space: Any, scale: float, **_: Any) -> Callable[[Any], Any]:  # noqa: ARG002
        def draw(scores: Any) -> int:
            self.calls.append((list(scores), scale))
            self.results.append(int.from_bytes(self._stream(8), "little") % len(scores))
            return int(self.results[-1])

        return draw


@contextmanager
def known(stream: Stream, moment: int) -> Iterator[StandIn]:
    """Everything but the stream is set by ``moment``: clocks, process number, generators."""
    from opendp import measurements

    stand_in = StandIn(stream)
    samplers: dict[str, Any] = {"make_gaussian": stand_in.gaussian}
    samplers["make_noisy_max"] = stand_in.noisy_max
    clocks: dict[str, Any] = {name: lambda: float(moment) for name in CLOCKS}
    clocks |= {f"{name}_ns": lambda: moment * 10**9 for name in CLOCKS}
    generators = random.getstate(), np.random.get_state()
    random.seed(moment)
    np.random.seed(moment)
    try:
        with (
            patch.multiple(os, urandom=stream, getpid=lambda: moment),
            patch.multiple(measurements, **samplers),
            patch.multiple(time, **clocks),
        ):
            yield stand_in
    finally:
        random.setstate(generators[0])
        np.random.set_state(generators[1])


def drawn(noise: Noise, stream: Stream, moment: int) -> dict[str, Array]:
    """One draw of each law."""
    with known(stream, moment):
        return {
            "gaussian": noise.gaussian("any", (4, 3), SCALE),
            "normal": noise.normal("any", (4, 3)),
            "ball": noise.ball("any", (4, 3)),
            "choose": noise.choose("any", np.arange(1000), 300.0),
        }


def wrong_with(noise: Noise) -> list[str]:
    """Faults of a source; none if its draws are a function of entropy alone."""
    found = []
    one, again, other = (
        drawn(noise, Stream(seed), moment) for seed, moment in ((1, 1000), (1, 2000), (2, 1000))
    )
    for name, value in one.items():
        if not np.array_equal(value, again[name]):
            found.append(f"{name}: the same entropy gives other draws")
        if np.any(np.asarray(value) == other[name]):
            found.append(f"{name}: other entropy gives the same draws")
    return found + _not_passed_on(noise) + _words_of_their_own(noise)


def _not_passed_on(noise: Noise) -> list[str]:
    """Draws of OpenDP must be returned unchanged, at the right location and scale."""
    found = []
    with known(Stream(3), 1000) as stand_in:
        scales = np.array([SCALE, 2.0**19])  # the second is below what the fast sampler serves
        returned = noise.gaussian("any", (200, 2), scales)
        made = list(zip(stand_in.calls, stand_in.results, strict=True))
        for scale, column in zip(scales, returned.T.tolist(), strict=True):
            fast = getattr(noise, "fast", False) and scale == SCALE
            if not fast and [column] != [drawn for (_, at), drawn in made if at == scale]:
                found.append("gaussian: what the exact sampler drew is not what is added")
        if any(any(values) for values, _ in stand_in.calls):
            found.append("gaussian: the exact sampler was given data")
        stand_in.calls.clear()
        chosen = [int(noise.choose("any", np.arange(1000), 300.0)) for _ in range(5)]
        if chosen != stand_in.results[-5:] or {scale for _, scale in stand_in.calls} != {300.0}:
            found.append("choose: what the exact sampler chose is not what is returned")
    return found


def _words_of_their_own(noise: Noise) -> list[str]:
    """Flipping a bit of one word moves exactly one entry (one vector of a ball)."""
    found = []
    for name in ("gaussian", "normal", "ball"):
        draw = getattr(noise, name)
        scale = (SCALE,) if name == "gaussian" else ()
        stream = Stream(4)
        with known(stream, 1000):
            before = draw("any", (4, 3), *scale)
        touched = np.zeros((4, 3), dtype=int)
        for word in range(stream.words):
            for bit in (63, _UNUSED):
                with known(Stream(4, (word, bit)), 1000):
                    moved = draw("any", (4, 3), *scale) != before
                entries = moved.any(axis=-1) if name == "ball" else moved
                # The lowest bits always decide in a normal draw; elsewhere they may round away.
                least = 1 if name == "normal" or bit == 63 else 0
                if not least <= int(entries.sum()) <= 1:
                    found.append(f"{name}: a word of entropy moves {int(entries.sum())} entries")
                touched += moved
        if not touched.all():
            found.append(f"{name}: an entry has no entropy")
    return list(dict.fromkeys(found))


def entropy_alone(subject: Subject, noise: Noise = EXACT) -> Finding:
    """Every law of the source, in a separate process, where its entropy is replaced."""
    try:
        wrong = in_fresh_process(wrong_with, noise)
    except Exception as error:
        wrong = [f"the source fails on known entropy: {type(error).__name__}"]
    correct = "draws repeat with their entropy, for every state of clock and process"
    return listed(
        subject, f"noise from entropy alone{sampler(noise)}", wrong, correct, part="noise"
    )
