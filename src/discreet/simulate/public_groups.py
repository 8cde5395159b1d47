"""Which group each row is of: a public column of public data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.data import Dataset

SMALLEST = 20
"""A group with fewer rounds says little: a loss of 0.5 would be known to ±0.22 only."""
MOST = 50
"""More groups than this are nearly always a number that should be cut into classes."""
OTHERS = "other groups"
MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class Groups:
    """Names, the largest group first, and for every row the place of its group among them."""

    names: tuple[str, ...]
    places: np.ndarray[Any, Any] = field(repr=False)

    @classmethod
    def of(cls, values: Any, rows: int, rounds: int | None = None) -> Groups:
        """One value per row; what would have too few of the rounds is pooled as "other groups".

        >>> Groups.of(["south"] * 30 + ["north"] * 50 + ["east", "west"], 82).names
        ('north', 'south', 'other groups')
        """
        words = _words(values, rows)
        share = (rounds or rows) / rows
        counts = sorted(Counter(words).items(), key=lambda each: (-each[1], each[0]))
        names = [word for word, count in counts if count * share >= SMALLEST]
        if not 1 <= len(names) <= MOST:
            raise InvalidInput(
                f"groups must be at most {MOST}, and one of them must have at least {SMALLEST} "
                f"rounds; got {len(names)} of that size among {len(counts)}. Cut numbers into a "
                "few classes, or take more rows."
            )
        known = {word: place for place, word in enumerate(names)}
        places = np.asarray([known.get(word, len(names)) for word in words])
        pooled = (OTHERS,) * (len(names) < len(counts))
        return cls((*names, *pooled), places)


def file_groups(data: Dataset, name: str) -> np.ndarray[Any, Any]:
    """A column of a file as groups; rows without a value are a group of their own."""
    values = data.named_column("group", name).tolist()
    return np.asarray(
        [MISSING if each is None or each != each else each for each in values], object
    )


def _words(values: Any, rows: int) -> list[str]:
    array = np.asarray(values) if isinstance(values, np.ndarray) else np.asarray(values, object)
    if array.shape != (rows,):
        raise InvalidInput(
            f"groups must be one value per context, {rows} of them; got shape {array.shape}. "
            "Pass an array or a series, or name a column of a frame."
        )
    listed = array.tolist()
    gap = next((row for row, each in enumerate(listed) if each is None or each != each), None)
    if gap is not None:
        raise InvalidInput(
            f"groups must be known for every row; row {gap} has none. "
            "Give such rows a group of their own, or leave them out."
        )
    return [f"{each:.15g}" if isinstance(each, float) else str(each) for each in listed]
