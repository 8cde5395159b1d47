"""What all readers of files share: complaints, missing values, numbers, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from discreet.errors import InvalidInput

MISSING = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null"})
"""How text files say that a value is missing; spaces around it do not matter."""


def unreadable(path: Path, error: OSError) -> NoReturn:
    """A complaint that names the file and the reason."""
    reason = error.strerror or "not a file of that kind"
    raise InvalidInput(
        f"file must be readable; {path} is not ({reason}). Check the path."
    ) from None


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
