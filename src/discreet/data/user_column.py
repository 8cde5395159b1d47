"""Whose row each is: a column of a file holds ids of people, and is no context."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.data.dataset import Dataset, check_contexts
from discreet.data.table import table
from discreet.errors import InvalidInput


def with_users(data: Dataset, user: str, encoded: bool = True) -> Dataset:
    """The set with the column ``user`` taken out as ids; the others become contexts.

    ``data`` was read without encoding: an id of words would become a column for each person.
    """
    ids = _ids(user, data.named_column("user", user))
    assert data.source is not None  # it has the column
    kept = [place for place, title in enumerate(data.source.titles) if title != user]
    source = replace(
        data.source,
        titles=tuple(data.source.titles[place] for place in kept),
        columns=tuple(data.source.columns[place] for place in kept),
    )
    contexts = data.contexts
    if encoded:
        contexts = table(data.name, source.columns)
        check_contexts(data.name, contexts)
    return replace(data, contexts=contexts, source=source, users=ids)


def _ids(name: str, column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Ids as text; 7.0 of a column of numbers is the person 7."""
    values = column.tolist()
    gap = next((row for row, each in enumerate(values) if each is None or each != each), None)
    if gap is not None:
        raise InvalidInput(
            f"user {name!r} must be known in every record; record {gap + 1} has none. "
            "Add it, or drop such records."
        )
    if column.dtype.kind == "f" and not all(each.is_integer() for each in values):
        raise InvalidInput(
            f"user {name!r} must be text or whole numbers; got fractions or infinity. "
            "Name the column of ids: a measurement is none."
        )
    return np.asarray([str(int(each)) if isinstance(each, float) else each for each in values])
