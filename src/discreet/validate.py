"""All checks of arguments, and the messages of the errors they raise.

Each function returns the checked value, so that a caller writes ``x = positive("x", x)``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from discreet.errors import CorruptRelease, InvalidInput
from discreet.types import NumpyArray

Value = TypeVar("Value")
LONGEST_SHOWN = 200
"""Characters of a value in an error; a longer one is named by its class."""


def _numbers(name: str, value: object, rule: str, step: str) -> NumpyArray:
    """Numbers as float64; arrays are allowed, since a stack of parameters is an array."""
    if isinstance(value, str):
        step = "Write a number, without quotes."
    if isinstance(value, (bool, str, bytes)) or value is None:
        raise InvalidInput(f"{name} must be {rule}; got {value!r}. {step}")
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be {rule}; got {value!r}. {step}") from None


def positive(name: str, value: Value | None, step: str = "Give a number above zero.") -> Value:
    """A finite number (or array of numbers) above zero."""
    if isinstance(value, float) and 0.0 < value < math.inf:  # the usual case, without an array
        return value
    numbers = _numbers(name, value, "a positive finite number", step)
    if value is None or not bool(np.all(np.isfinite(numbers) & (numbers > 0))):
        raise InvalidInput(f"{name} must be a positive finite number; got {value!r}. {step}")
    return value


def in_range(
    name: str, value: Value, low: float, high: float, step: str = "", *, open_high: bool = False
) -> Value:
    """A number in [low, high], or [low, high) with ``open_high``."""
    if type(value) in (float, int) and low <= float(value) < high:  # type: ignore[arg-type]
        return value  # the usual case, without an array
    rule = f"a number in [{low:g}, {high:g}{')' if open_high else ']'}"
    step = step or "Choose a value in that range."
    numbers = _numbers(name, value, rule, step)
    inside = (numbers >= low) & ((numbers < high) if open_high else (numbers <= high))
    if not bool(np.all(inside)):
        raise InvalidInput(f"{name} must be {rule}; got {value!r}. {step}")
    return value


def whole(name: str, value: object, minimum: int, step: str = "") -> int:
    """A whole number of at least ``minimum``."""
    step = step or f"Give a whole number of at least {minimum}."
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidInput(f"{name} must be a whole number; got {value!r}. {step}")
    if value < minimum:
        raise InvalidInput(f"{name} must be at least {minimum}; got {value!r}. {step}")
    return int(value)


def instance(
    name: str, value: object, kinds: tuple[type[Value], ...], step: str = "Make one and pass it."
) -> Value:
    """An object of one of a few classes."""
    if not isinstance(value, kinds):
        listed = ", ".join(kind.__name__ for kind in kinds)
        rule = f"a {listed}" if len(kinds) == 1 else f"one of {listed}"
        shown = repr(value)
        if len(shown) > LONGEST_SHOWN or "\n" in shown:
            shown = f"{type(value).__name__}(…)"
        raise InvalidInput(f"{name} must be {rule}; got {shown}. {step}")
    return value


def one_of(name: str, value: object, choices: Iterable[str]) -> str:
    """One of a few words; the error names the nearest one."""
    options = list(choices)
    if isinstance(value, str) and value in options:
        return value
    listed = ", ".join(repr(option) for option in options)
    raise InvalidInput(f"{name} must be one of {listed}; got {value!r}. {nearest(value, options)}")


def nearest(word: object, options: Iterable[str]) -> str:
    """'Did you mean …?' for a misspelt word."""
    close = difflib.get_close_matches(str(word), list(options), n=1, cutoff=0.55)
    return f"Did you mean {close[0]!r}?" if close else "Choose one of them."


def check_keys(where: str, given: Iterable[str], kind: type[Any]) -> None:
    """Refuse keys that a dataclass does not have, and a missing one without a default."""
    known, keys = {each.name: each for each in fields(kind)}, list(given)
    for name in keys:
        if name not in known:
            raise InvalidInput(
                f"{where} must have only known keys; got {name!r}. {nearest(name, known)}"
            )
    for name, each in known.items():
        if each.default is each.default_factory is MISSING and name not in keys:
            raise InvalidInput(f"{where}.{name} must be given; it is missing. Add it.")


def as_float(value: object) -> float:
    """The value as a float; NaN for what is no number, or too large for a float."""
    if not isinstance(value, (bool, np.bool_, int, float, np.integer, np.floating)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def matrix(name: str, value: object, columns: int, step: str) -> NumpyArray:
    """Finite float64 rows of a known width: (columns,) or (n, columns)."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        kind = type(value).__name__
        listed = ", not all numbers or not of one length" * isinstance(value, (list, tuple))
        raise InvalidInput(
            f"{_first_odd_row(value, columns)}{name} must be an array of numbers; "
            f"got {kind}{listed}. {step}"
        ) from None
    if array.ndim not in (1, 2) or array.shape[-1] != columns:
        raise InvalidInput(
            f"{name} must be of shape ({columns},) or (n, {columns}); got {array.shape}. {step}"
        )
    if array.ndim == 1:
        finite = all(map(math.isfinite, array.tolist()))
    else:  # a finite sum has finite terms; where it is not, it may have overflowed: check each
        with np.errstate(over="ignore", invalid="ignore"):
            finite = math.isfinite(float(array.sum())) or bool(np.isfinite(array).all())
    if not finite:
        row = "" if array.ndim == 1 else f"row {np.argwhere(~np.isfinite(array))[0][0]}: "
        raise InvalidInput(f"{row}{name} must be finite; got NaN or infinity. {step}")
    return array


def _first_odd_row(rows: object, columns: int) -> str:
    """Return "row 3: " for the first of several rows that is no list of numbers; else nothing."""
    for number, row in enumerate(rows) if isinstance(rows, (list, tuple)) else ():
        if not isinstance(row, (list, tuple, np.ndarray)):  # the numbers of one row
            return ""
        numbers = [isinstance(each, (int, float, np.number)) for each in row]
        if len(row) != columns or not all(numbers):
            return f"row {number}: "
    return ""


@contextmanager
def usable(
    path: str | Path, rule: str = "file must be readable", step: str = "Check the path."
) -> Iterator[None]:
    """Turn an error of the system into one that names the path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or "not a file of that kind"
        raise InvalidInput(f"{rule}; {path} is not ({reason}). {step}") from None


@contextmanager
def intact(message: str) -> Iterator[None]:
    """Turn an error of reading a document that is not as discreet writes it into CorruptRelease."""
    try:
        yield
    except CorruptRelease:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise CorruptRelease(message) from None


writable = partial(usable, rule="output must be writable", step="Choose another place.")


def installed(extra: str, purpose: str, *libraries: str, instead: str = "") -> None:
    """Refuse at once where a library of an extra is missing."""
    absent = [name for name in libraries if find_spec(name) is None]
    if absent:
        raise InvalidInput(
            f"{' and '.join(absent)} must be installed {purpose}; this Python lacks it. "
            f"Run pip install 'discreet[{extra}]'{instead}."
        )
