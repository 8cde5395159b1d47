"""Whose decisions these are: ids of users beside contexts, checked before anything is stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.batches.observations import values_of
from discreet.errors import InvalidInput
from discreet.features.frames import is_frame, without_column
from discreet.features.schema import Schema


def apart(features: Any, contexts: Any, user: Any) -> tuple[Any, Any]:
    """Contexts and ids: a series, or a column of a frame by its name, becomes an array, and such a
    column is no context. ``features`` is how the plan reads contexts."""
    values = values_of("user", user, contexts if is_frame(contexts) else None)
    if not isinstance(user, str) or not is_frame(contexts):
        return contexts, values
    if isinstance(features, Schema) and user in {field.name for field in features.fields}:
        raise InvalidInput(
            f"column {user!r} must be the user, or a feature; got it as both. "
            "Leave it out of the schema: what is learned from an id holds for one person alone."
        )
    return without_column(contexts, user), values


def user_ids(name: str, given: Any, rows: int, *, needed: bool, single: bool) -> list[str] | None:
    """One id per row as text, so that 7 and "7" are one person; None where no user is needed."""
    if needed and given is None:
        raise InvalidInput(
            f"{name} must be given with the unit 'user'; got none. "
            f"Add {name}=…, the id of the person behind each context."
        )
    if given is None:
        return None
    if not needed:
        raise InvalidInput(
            f"{name} must be left out with the unit 'decision'; got one. "
            "Leave it out, or plan with unit='user', batches_per_user and records_per_batch."
        )
    if single:
        return [user_id(name, given)]
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, (list, tuple)) or len(listed) != rows:
        got = f"{len(listed):,}" if isinstance(listed, (list, tuple)) else "no list"
        raise InvalidInput(
            f"{name} must be a list or array with one id for each of {rows:,} contexts; got {got}. "
            "Give as many ids as there are contexts, also where one person has several."
        )
    if all(type(each) is str and each for each in listed):  # the usual call, fast
        return list(listed)
    return [user_id(name, each, f"row {row}: ") for row, each in enumerate(listed)]


def user_id(name: str, given: Any, where: str = "") -> str:
    """An id as text; the error tells its kind only, since logs keep errors."""
    if isinstance(given, str) and given:
        return str(given)
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return str(int(given))
    got = "empty text" if isinstance(given, str) else f"a {type(given).__name__}"
    raise InvalidInput(
        f"{where}{name} must be the id of one person, text or a whole number; got {got}. "
        "Write the id as text, always in the same way: two ids are two people."
    )
