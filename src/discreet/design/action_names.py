"""Names of actions: people read and write names, everything inside counts from 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from discreet.errors import InvalidInput, kind_of
from discreet.text import listed
from discreet.types import NumpyArray
from discreet.validate import nearest

ActionName = str | int
"""A name, or a number where a plan has no names."""


class Actions(Protocol):
    """The number and names of actions: of a plan, or of its releases."""

    @property
    def n_actions(self) -> int: ...
    @property
    def actions(self) -> Sequence[str] | None: ...


def checked_names(names: object) -> tuple[str, ...]:
    """Two or more distinct words without blanks around them."""
    # Python would read a single word as a list of letters.
    words = () if isinstance(names, (str, bytes)) else tuple(names) if np.iterable(names) else ()
    good = all(isinstance(word, str) and word and word == word.strip() for word in words)
    if not good or len(words) < 2 or len(set(words)) != len(words):
        raise InvalidInput(
            "actions must be two or more distinct words without blanks around them; "
            f"got {names!r}. Write actions=['none', 'mail', 'call'], or --actions none,mail,call."
        )
    return tuple(str(word) for word in words)


def action_index(of: Actions, values: object, name: str = "action", *, public: bool = False) -> Any:
    """Names (or numbers) of actions as numbers: an int for one, an array of ints for many.

    Only a ``public`` value, such as a setting, is quoted where it is wrong.

    >>> class Greetings:
    ...     n_actions, actions = 3, ("none", "mail", "call")
    >>> action_index(Greetings(), "mail"), action_index(Greetings(), ["call", "none"])
    (1, array([2, 0]))
    """
    given = np.asarray(values)
    if given.dtype.kind in "iu":
        known: NumpyArray | list[int] = np.where((given >= 0) & (given < of.n_actions), given, -1)
    else:
        places = {word: place for place, word in enumerate(of.actions or ())}
        flat = given.reshape(-1).tolist()
        known = [
            places.get(value, -1) if isinstance(value, str) else _number(value, of.n_actions)
            for value in flat
        ]
    numbers = np.asarray(known, dtype=np.int64).reshape(given.shape)
    if (numbers < 0).any():
        wrong = np.flatnonzero(numbers.reshape(-1) < 0)[0]
        where = f"row {wrong}: " * (numbers.ndim > 0)
        raise _no_action(of, given.reshape(-1).tolist()[wrong], f"{where}{name}", public)
    return int(numbers) if numbers.ndim == 0 else numbers


def action_name(of: Actions, numbers: Any) -> Any:
    """The name of an action, or an array of names; the numbers themselves without names."""
    if of.actions is None:
        return numbers
    if np.ndim(numbers) == 0:
        return of.actions[int(numbers)]
    return np.asarray(of.actions, dtype=object)[numbers]  # plain words of any length


def _number(value: object, n_actions: int) -> int:
    """The number of an action among other things in a list; −1 for everything else."""
    return value if type(value) is int and 0 <= value < n_actions else -1


def _no_action(of: Actions, value: object, name: str, public: bool) -> InvalidInput:
    if of.actions is None:
        step = "Give the number of an action, or name actions with Plan(actions=[…])."
        rule = f"a whole number from 0 to {of.n_actions - 1}"
    else:
        rule, step = f"one of {listed([*map(repr, of.actions)])}", "Compare its spelling with them."
        step = nearest(value, of.actions) if public else step
    got = repr(value) if public else f"{kind_of(value)} that is none of them"
    return InvalidInput(f"{name} must be {rule}; got {got}. {step}")
