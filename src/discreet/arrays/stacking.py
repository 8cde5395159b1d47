"""A stack of policies is a policy: parameters become arrays, the rules broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from discreet.errors import InvalidInput

T = TypeVar("T")


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
    first = values[0]
    if is_dataclass(first) and not isinstance(first, type):
        if any(type(value) is not type(first) for value in values):
            raise InvalidInput(
                f"{name} must be of one class in a stack; got several. Make one stack per class."
            )
        merged = object.__new__(type(first))  # already validated: skip the checks
        for each in fields(first):
            if "stacked" in each.metadata:  # a field with one fixed value in every stack
                object.__setattr__(merged, each.name, each.metadata["stacked"])
                continue
            path = f"{name}.{each.name}"
            parts = [_parameter(value, each) for value in values]
            object.__setattr__(merged, each.name, _merge(path, parts))
        return merged
    # Whole numbers, words and flags are structure and must be equal; floats are parameters.
    if all(isinstance(value, (float, np.floating)) for value in values):
        return np.asarray(values, dtype=np.float64)
    if all(type(value) is type(first) for value in values):
        same = [bool(np.array_equal(value, first)) for value in values]
        if all(same):
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


def _parameter(item: Any, each: Any) -> Any:
    """A field's value; in a field of floats the whole number 8 is the parameter 8.0."""
    value = getattr(item, each.name)
    return float(value) if "float" in str(each.type) and type(value) is int else value


def structure(item: Any) -> Any:
    """A hashable description without the parameters; items with equal ones can be stacked."""
    if is_dataclass(item) and not isinstance(item, type):
        parts = [
            (each.name, structure(_parameter(item, each)))
            for each in fields(item)
            if "stacked" not in each.metadata
        ]
        return type(item).__name__, tuple(parts)
    if isinstance(item, tuple):
        return tuple(structure(part) for part in item)
    if isinstance(item, np.ndarray):
        return item.shape, item.tobytes()
    return "number" if isinstance(item, (float, np.floating)) else item
