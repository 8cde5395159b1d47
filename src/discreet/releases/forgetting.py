"""How much an old release still counts: a public rule, the same for the pool and for policies.

Weighting what was published is post-processing. [docs/privacy/ridge.md, "Forgetting"]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

HALF_LIVES = 5
"""After so many half-lives a release would count less than 1/32, and is not read any more."""


def share(age: int, half_life: int | None) -> float:
    """What a release counts when ``age`` more were made after it: 2^(−age/half_life).

    >>> [share(age, half_life=2) for age in (0, 2, 4)], share(99, half_life=None)
    ([1.0, 0.5, 0.25], 1)
    """
    return 1 if half_life is None else 2.0 ** (-age / half_life)


def remembered(items: Sequence[Item], half_life: int | None) -> list[tuple[Item, float]]:
    """The releases that still count, the oldest first, and how much each does beside the newest.

    They are at most 5·half_life + 1, however many there were.

    >>> remembered("abcdefghi", half_life=1)[0], len(remembered("abcdefghi", half_life=1))
    (('d', 0.03125), 6)
    """
    kept = items if half_life is None else items[-(HALF_LIVES * half_life + 1) :]
    ages = range(len(kept) - 1, -1, -1)
    return [(item, share(age, half_life)) for item, age in zip(kept, ages, strict=True)]
