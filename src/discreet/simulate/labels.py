"""What is known of every action on a labelled set: labels as actions, or a table of losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.validate import nearest

Whole = np.ndarray[Any, np.dtype[np.int64]]
SHOWN = 5
"""So many classes are named in a complaint."""


def label_actions(
    labels: Any, rows: int, n_actions: int, names: Sequence[str] | None = None
) -> Whole:
    """Labels (rows,) as actions 0 … A−1.

    Whole numbers are actions already. Words and other classes become actions in sorted order, so
    there must be A of them; where the plan has names for its actions, words are these names.

    >>> label_actions(["no", "yes", "no"], 3, 2)
    array([0, 1, 0])
    >>> label_actions(["call", "mail"], 2, 3, names=["none", "mail", "call"])
    array([2, 1])
    """
    array = _one_per_row(labels, rows, n_actions)
    if array.dtype.kind in "iufb":  # False is 0 and True is 1, also in sorted order
        return _numbered(array, n_actions)
    words = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in array]
    if any(each is None or each != each for each in words):
        raise _missing()
    if array.dtype.kind == "O" and all(_is_number(each) for each in words):
        return _numbered(np.asarray(words, dtype=np.float64), n_actions)
    if names is not None:
        return _named([str(each) for each in words], names)
    found = _sorted({str(each) for each in words})
    if len(found) != n_actions:
        listed = ", ".join(found[:SHOWN]) + ", …" * (len(found) > SHOWN)
        # With too few words nobody knows which action is absent.
        step = f"Encode the classes as 0 … {n_actions - 1} yourself"
        if len(found) > n_actions:
            step = f"Make the plan with n_actions={len(found)}"
        raise InvalidInput(
            f"labels must be of {n_actions} classes, one for each action; got {len(found)}: "
            f"{listed}. {step}."
        )
    places = {word: place for place, word in enumerate(found)}
    return np.asarray([places[str(each)] for each in words], dtype=np.int64)


def loss_table(losses: Any, rows: int, n_actions: int, structure: str) -> np.ndarray[Any, Any]:
    """Losses (rows, A) in [0, 1], as the plan's ``losses`` says."""
    array = action_table("losses", losses, rows, n_actions)
    if not bool(((array >= 0.0) & (array <= 1.0)).all()):
        raise InvalidInput(
            "losses must be numbers in [0, 1]; some are not. Rescale them with a fixed public "
            "range: (losses - low) / (high - low). Rewards go into rewards=, in their own units."
        )
    one_label = (array == 0.0).sum(axis=1) == 1
    if structure == "one_label" and not bool(
        (one_label & (array.sum(axis=1) == n_actions - 1)).all()
    ):
        raise InvalidInput(
            "losses must be 0 for one action of a row and 1 for the others, as the plan's "
            "losses='one_label' says; some rows are not. Make the plan with losses='general'."
        )
    return array


def action_table(name: str, values: Any, rows: int, n_actions: int) -> np.ndarray[Any, Any]:
    """Return numbers (rows, A), or refuse another shape."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (rows, n_actions) or not rows:
        raise InvalidInput(
            f"{name} must be numbers of shape ({rows}, {n_actions}), a row per context and a "
            f"column per action; got shape {array.shape}. With one class per context, pass labels "
            "instead."
        )
    return array


def _one_per_row(labels: Any, rows: int, n_actions: int) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(labels)
        if array.dtype.kind == "U" and not isinstance(labels, np.ndarray):
            array = np.asarray(labels, dtype=object)  # in a list NaN would become a word
    except ValueError:  # lists of different lengths
        array = np.empty((0, 0))
    if array.shape != (rows,) or not rows:
        raise InvalidInput(
            f"labels must be one class per context, {rows} of them; got shape {array.shape}. "
            f"Pass a one-dimensional array of 0 … {n_actions - 1} or of words; for a loss of each "
            "action, pass losses=."
        )
    return array


def _numbered(array: np.ndarray[Any, Any], n_actions: int) -> Whole:
    array = array.astype(np.int8) if array.dtype.kind == "b" else array
    if bool(np.isnan(array).any()):
        raise _missing()
    if not bool((array == np.floor(array)).all()) or not bool(np.isfinite(array).all()):
        raise InvalidInput(
            "labels must be classes; got fractions or infinity. Cut a target into classes "
            "first, for example with np.digitize(labels, borders)."
        )
    low, high = int(array.min()), int(array.max())
    if low >= 0 and high < n_actions:
        return array.astype(np.int64)
    if low == 1 and high == n_actions:
        step = "Count from 0: pass np.asarray(labels) - 1."
    elif len(np.unique(array)) == n_actions:
        step = "Number the classes: pass np.unique(labels, return_inverse=True)[1]."
    else:
        step = "Set n_actions of the plan to the number of classes, and number them from 0."
    raise InvalidInput(f"labels must be actions 0 … {n_actions - 1}; got {low} … {high}. {step}")


def _missing() -> InvalidInput:
    return InvalidInput(
        "labels must be given for every context; some are missing. Drop those rows first."
    )


def _named(words: list[str], names: Sequence[str]) -> Whole:
    places = {name: place for place, name in enumerate(names)}
    unknown = next((word for word in words if word not in places), None)
    if unknown is not None:
        raise InvalidInput(
            f"labels must be names of actions, {', '.join(map(repr, names))}; got {unknown!r}. "
            f"{nearest(unknown, names)}"
        )
    return np.asarray([places[word] for word in words], dtype=np.int64)


def _is_number(value: Any) -> bool:
    numbers = (int, float, np.integer, np.floating)
    return isinstance(value, numbers)


def _sorted(words: set[str]) -> list[str]:
    from discreet.data.table import in_order  # as files do; discreet alone needs no data

    unordered = list(words)
    return [unordered[place] for place in in_order(unordered)]
