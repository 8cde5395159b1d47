"""Other people's private bandits in a campaign: their names, settings and families of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet.lab.campaign.presets import budget_of
from discreet.lab.rivals import (
    AdaSSP,
    BatchedLinUCB,
    CodedBandit,
    EpsGreedy,
    LocalLinUCB,
    PlainLinUCB,
    ShuffledLinUCB,
    ThompsonSampling,
    TreeLinUCB,
)
from discreet.lab.rivals.rival_contract import Rival, RivalPlan
from discreet.registry import register

WIDTHS = (0.1, 1.0)
"""Between these the mean loss is flat, with noise and without."""
ROUNDS: Mapping[str, Sequence[Rival]] = {
    "TreeLinUCB": [TreeLinUCB(width) for width in WIDTHS],
    "TreeLinUCB-published": [TreeLinUCB(width, constants="published") for width in WIDTHS],
    "BatchedLinUCB": [BatchedLinUCB(width) for width in WIDTHS],
    "ShuffledLinUCB": [ShuffledLinUCB(width) for width in WIDTHS],
    "ShuffledLinUCB-published": [ShuffledLinUCB(width, protocol="vector-sum") for width in WIDTHS],
    "LocalLinUCB": [LocalLinUCB(width) for width in WIDTHS],
    "LocalLinUCB-published": [LocalLinUCB(width, constants="published") for width in WIDTHS],
    "P2B": [CodedBandit(codes=codes, batches=4) for codes in (4, 8)],  # crowds need few codes
    "P2B-published": [CodedBandit(width, constants="published") for width in WIDTHS],
    "PlainLinUCB": [PlainLinUCB(width) for width in WIDTHS],
}
"""Those with a runner of their own. A ``-published`` one has the constants of its paper; P2B's do
not protect actions and losses. [docs/privacy/rivals.md]"""
DECLARED: tuple[Mapping[str, Any], ...] = (
    {"name": "Epsilon-greedy", "policy": {"kind": "EpsGreedy", "share": [0.02, 0.1]}},
    {"name": "Thompson", "policy": {"kind": "ThompsonSampling", "width": [0.1, 0.5]}},
)
"""Policies of others on our own releases."""
EXTENSIONS: Mapping[str, type[Any]] = {
    each.__name__: each for each in (EpsGreedy, ThompsonSampling, AdaSSP)
}
"""Rivals on the public extension points, as anybody's own classes are."""
FAMILIES = tuple(
    dict.fromkeys(f"{type(each).__name__}.rounds" for listed in ROUNDS.values() for each in listed)
)


def register_named(algorithms: Iterable[str], declared: Iterable[Any]) -> None:
    """Make those of the extensions known that a grid names."""
    named: set[Any] = {*algorithms}
    for table in declared:
        parts = (table.get(part) for part in ("policy", "oracle") if isinstance(table, Mapping))
        named |= {part.get("kind") for part in parts if isinstance(part, Mapping)}
    for name in named & EXTENSIONS.keys():
        register(EXTENSIONS[name])


def rival_plans(
    algorithm: str, n_actions: int, dimension: int, epsilons: Sequence[float]
) -> list[RivalPlan]:
    """Every setting at every privacy level; without privacy at ε = ∞ alone."""
    return [
        RivalPlan(rival, n_actions, dimension + 1, budget_of(epsilon))
        for epsilon in epsilons
        for rival in ROUNDS[algorithm]
        if math.isinf(epsilon) or not isinstance(rival, PlainLinUCB)
    ]
