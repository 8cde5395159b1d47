"""A whole order of the offered actions, for display."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np

from discreet.types import Floats

Uniforms = Callable[[int, int], Floats]
"""Uniforms for a request's ranking, from its place in a call and how many actions it is offered."""
_APART = 0x72616E6B
"""Separates these streams from others of the same seed."""


class RankingDraws:
    """Uniforms for rankings, from the seed of ``draws`` where that has one, and never from its
    stream; each request has a separate stream.

    Privacy: an offer is content of a record. Were as many numbers as it has items drawn from the
    generator of the actions, it would shift the draws of everybody who comes later.
    [docs/privacy/transcript.md, "Action draws"]

    >>> first, second = (RankingDraws(np.random.default_rng(0)) for _ in range(2))
    >>> _ = first.next_call()(0, 5)
    >>> _ = second.next_call()
    >>> bool((first.next_call()(0, 3) == second.next_call()(0, 3)).all())
    True
    """

    def __init__(self, draws: object = None) -> None:
        seed = getattr(getattr(draws, "bit_generator", None), "seed_seq", None)
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence()
        self._seed: np.random.SeedSequence = seed
        self._calls = itertools.count()

    def next_call(self) -> Uniforms:
        """The uniforms of one more call, whether or not anybody asks for them."""
        return partial(self._uniforms, next(self._calls))

    def _uniforms(self, call: int, request: int, offered: int) -> Floats:
        key = (*self._seed.spawn_key, _APART, call, request)
        stream = np.random.SeedSequence(self._seed.entropy, spawn_key=key)
        return np.random.default_rng(stream).random(offered)


def sampled_order(probabilities: Floats, first: int, u: Floats) -> Floats:
    """The chosen action first, the others drawn one by one without replacement from u (K,).

    Keys log p − log(−log u) sort as draws in proportion to p do, each from what is left.
    [Gumbel-max: Yellott 1977]

    >>> sampled_order(np.array([0.1, 0.9, 0.0]), 0, np.array([0.5, 0.5, 0.5])).tolist()
    [0, 1, 2]
    """
    with np.errstate(divide="ignore"):
        keys = np.log(probabilities) - np.log(-np.log(u))
    keys[first] = np.inf
    return np.argsort(-keys, kind="stable")
