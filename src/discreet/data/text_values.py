"""Words that may be numbers: what is missing, what is a number, in which order they stand."""

from __future__ import annotations

from collections.abc import Sequence

MISSING = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null"})
"""How text files say that a value is missing; spaces around it do not matter."""


def number(word: str) -> float | None:
    """The number that a word writes, or None."""
    try:
        return float(word)
    except ValueError:
        return None


def in_order(words: Sequence[str]) -> list[int]:
    """Places of the words, sorted: as numbers where all are numbers (9 before 10), else as text.

    >>> in_order(["10", "9"]), in_order(["10", "9", "none"])
    ([1, 0], [0, 1, 2])
    """
    numbers = [number(word) for word in words]
    if all(each is not None and each == each for each in numbers):
        # Words of equal value, 1 and 1.0, stay apart; their text decides.
        return sorted(range(len(words)), key=lambda place: (numbers[place], words[place]))
    return sorted(range(len(words)), key=words.__getitem__)
