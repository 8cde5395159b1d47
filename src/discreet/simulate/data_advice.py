"""What is probably not meant about contexts that were handed over for evaluation.

The rules look at all rows, so they are for public or simulated sets: a learner, whose rows are
private, never calls them. [docs/warnings.md]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from discreet.features.sample_schema import is_identifier
from discreet.features.unit_ball import UnitBall
from discreet.text import advise

LONG = 0.5
"""Share of rows longer than 1 from which on their length is worth a warning."""
DOMINANT = 0.95
"""Share of all squares in one column from which on the other columns hardly count."""


def advise_on_contexts(features: Any, contexts: Any, columns: Sequence[str] = ()) -> None:
    """Warn about plain contexts that lose what they say; a schema scales by declared ranges."""
    if isinstance(features, UnitBall):
        rows = np.atleast_2d(np.asarray(contexts, dtype=np.float64))
        for topic, words in findings(rows, columns):
            advise(topic, words, stacklevel=4)


def findings(
    contexts: np.ndarray[Any, Any], columns: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Topic and words of everything that is odd about contexts (n, d)."""
    rows, width = contexts.shape
    names = [repr(name) for name in columns] or [f"{place}" for place in range(1, width + 1)]
    ids = [
        name
        for place, name in enumerate(names)
        if is_identifier(contexts[:, place], name.strip("'"))
    ]
    if ids:
        yield (
            "identifiers",
            f"column {', '.join(ids)} looks like an identifier: it has another whole number in "
            "each row. Leave it out: nothing that is learned from it holds for the next person.",
        )
    largest = max(float(np.abs(contexts).max(initial=0.0)), 1.0)
    squares = (contexts / largest) ** 2  # so that none overflows
    long = float((squares.sum(axis=1) > largest**-2).mean())
    shares = squares.sum(axis=0) / max(float(squares.sum()), np.finfo(float).tiny)
    if width > 1 and shares.max() > DOMINANT and not ids:
        yield (
            "a-column-that-dominates",
            f"column {names[int(shares.argmax())]} makes up {shares.max():.0%} of the squared "
            "length of all rows, so the others hardly count. Declare ranges with a Schema.",
        )
    if long > LONG:
        yield (
            "long-rows",
            f"{long:.0%} of {rows:,} rows are longer than 1 and are shortened to 1, so their "
            "length is lost. Scale columns by public ranges: declare a Schema.",
        )
