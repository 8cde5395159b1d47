"""A stack of policies is a policy: parameters become arrays, the rules broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from discreet.errors import InvalidInput

T = TypeVar("T")
PLAIN = (str, int, type(None))
"""Types that are compared as they are, and are no parameters."""


def stack(items: Sequence[T]) -> T:
    """R equal-class dataclasses as one whose number fields are arrays of shape (R,).

    Args:
        items: Plans, policies or oracles of one class that differ in numbers.

    Raises:
        InvalidInput: Classes or words differ.

    >>> from discreet.policies import SquareCB
    >>> stack([SquareCB(scale=1.0, exponent=0.5), SquareCB(scale=4.0, exponent=0.5)]).scale
    array([1., 4.])
    """
    if not items:
        raise InvalidInput("stack must be given at least one item; got none. Pass a list.")
    kinds = {type(item) for item in items}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidInput(
            f"stack must be given items of one class; got {names}. Make one stack per class."
        )
    return _merge(type(items[0]).__name__, list(items))  # type: ignore[no-any-return]


def _merge(name: str, values: list[Any]) -> Any:
    first, kinds = values[0], set(map(type, values))
    if _is_record(first):
        if len(kinds) > 1:
            raise InvalidInput(
                f"{name} must be of one class in a stack; got several. Make one stack per class."
            )
        kind: Any = type(first)
        merged = object.__new__(kind)  # already validated: skip the checks
        for field, decimal, fixed, stacked in _parameters(kind):
            if fixed:
                object.__setattr__(merged, field, stacked)
                continue
            parts = list(map(attrgetter(field), values))
            if decimal:
                parts = [float(part) if type(part) is int else part for part in parts]
            object.__setattr__(merged, field, _merge(f"{name}.{field}", parts))
        return merged
    # Whole numbers, words and flags are structure and must be equal; floats are parameters.
    if all(issubclass(kind, (float, np.floating)) for kind in kinds):
        return np.asarray(values, dtype=np.float64)
    if len(kinds) == 1:
        if isinstance(first, PLAIN):
            same = values.count(first) == len(values)
        else:
            same = all(bool(np.array_equal(value, first)) for value in values)
        if same:
            return first
    raise InvalidInput(
        f"{name} must be the same throughout a stack; got different values. "
        "Make one stack per value."
    )


def one_run(item: T, run: int) -> T:
    """One of the items that ``stack`` put together; its parts may be stacks too."""
    alone = object.__new__(type(item))  # already validated before stacking
    for each in fields(item):  # type: ignore[arg-type]
        value = getattr(item, each.name)
        if is_dataclass(value) and not isinstance(value, type):
            value = one_run(value, run)
        elif isinstance(value, np.ndarray) and value.ndim == 1:
            value = float(value[run])
        object.__setattr__(alone, each.name, value)
    return alone


def structures(items: Iterable[Any]) -> list[Any]:
    """The structure of each item; a part that comes again, as in a grid, is read once."""
    listed, known = list(items), dict[int, Any]()
    return [structure(item, known) for item in listed]


def structure(item: object, known: dict[int, Any] | None = None) -> Any:
    """A hashable description without the parameters; items with equal ones can be stacked.

    ``known`` are those of objects that stay alive, by ``id``.
    """
    if isinstance(item, PLAIN):
        return item
    if isinstance(item, (float, np.floating)):
        return "number"
    if known is not None and id(item) in known:
        return known[id(item)]
    if _is_record(item):
        kind: Any = type(item)
        parts = []
        for name, decimal, fixed, _ in _parameters(kind):
            if not fixed:
                value = getattr(item, name)
                whole = decimal and type(value) is int
                parts.append((name, "number" if whole else structure(value, known)))
        found = (kind.__name__, tuple(parts))
        if known is not None:
            known[id(item)] = found
        return found
    if isinstance(item, tuple):
        return tuple(structure(part, known) for part in item)
    if isinstance(item, np.ndarray):
        return item.shape, item.tobytes()
    return item


@lru_cache(maxsize=256)  # thousands of plans of a grid have a few classes
def _parameters(kind: Any) -> tuple[tuple[str, bool, bool, Any], ...]:
    """Name of each field, if it is of floats, if it is fixed, and its value in every stack.

    In a field of floats the whole number 8 is the parameter 8.0.
    """
    return tuple(
        (each.name, "float" in str(each.type), "stacked" in data, data.get("stacked"))
        for each in fields(kind)
        for data in (each.metadata,)
    )


def _is_record(item: object) -> bool:
    return is_dataclass(item) and not isinstance(item, type)
