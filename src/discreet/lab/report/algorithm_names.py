"""Algorithms in the order of the paper's table, and the short names it gives them."""

from __future__ import annotations

from collections.abc import Iterable

SHORT = {
    "ReplayBonusPO": "bpo",
    "VanillaPO": "vpo",
    "SquareCB": "squarecb",
    "FastCB": "fastcb",
    "LinUCB": "linucb",
    "RegCB": "regcb",
    "AdaCB": "adacb",
    "BonusPO": "exact_bpo",
}
"""The paper's BonusPO is the historical replay; the exact one comes after its seven rows."""

REFERENCE = "Supervised"
"""Sees the loss of every action, so it does not compete."""


def place(algorithm: str) -> tuple[int, str]:
    """Sort key of an algorithm: the paper's order, then unknown names, the reference last."""
    if algorithm == REFERENCE:
        return len(SHORT) + 1, algorithm
    return (list(SHORT).index(algorithm) if algorithm in SHORT else len(SHORT)), algorithm


def short(algorithm: str) -> str:
    """``bpo`` for ReplayBonusPO; an unknown name stays, in small letters."""
    return SHORT.get(algorithm, algorithm.lower())


def bandits(algorithms: Iterable[str]) -> list[str]:
    """All but the reference."""
    return [each for each in algorithms if each != REFERENCE]


def listed(words: Iterable[object]) -> str:
    """``a, b and c``."""
    *most, last = [str(word) for word in words]
    return f"{', '.join(most)} and {last}" if most else last
