"""Dataclasses to plain mappings and back. The dataclass is the schema of a file.

Decimals are written as text ("1e-05"), so that the canonical JSON of a plan is the same bytes
in every language; a reader accepts text and numbers.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from discreet.errors import InvalidInput
from discreet.releases.canonical import decode_array, encode_array
from discreet.types import JsonMapping, JsonObject
from discreet.validate import check_keys, nearest

T = TypeVar("T")
Classes = Mapping[str, type[Any]]
"""Classes that a document may name."""


def to_config(item: object) -> Any:
    """A mapping with ``kind`` and the public parameters, ready for canonical JSON."""
    if is_dataclass(item) and not isinstance(item, type):
        return {"kind": type(item).__name__, **fields_to_config(item)}
    if isinstance(item, np.ndarray):
        return encode_array(item)
    if isinstance(item, (float, np.floating)):
        return repr(float(item))
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, (list, tuple)):
        return [to_config(value) for value in item]
    return item


def fields_to_config(item: Any) -> JsonObject:
    """The public parameters of a dataclass; 8 and 8.0 are written in the same way.

    One that was added later (``types.added_later``) is left out where it has its default.
    """
    hints = _hints(type(item))
    written = {}
    for each in fields(item):
        value = getattr(item, each.name)
        if "added_later" in each.metadata and value == each.default:
            continue
        decimal = float in _options(hints[each.name]) and isinstance(value, (int, np.integer))
        written[each.name] = to_config(float(value) if decimal else value)
    return written


def from_config(registry: Classes, document: object, where: str) -> Any:
    """An instance of the class that ``document["kind"]`` names; with one class it needs no kind."""
    default = next(iter(registry)) if len(registry) == 1 else None
    if not isinstance(document, Mapping) or (default is None and "kind" not in document):
        rule = "a table with a kind"
        step = f'Write {{ kind = "…" }}, with one of {", ".join(registry)}.'
        if default is not None:
            keys = ", ".join(f"{each.name} = …" for each in fields(registry[default]))
            rule, step = "a table", f"Write {where.rpartition('.')[2]} = {{ {keys} }}."
        raise InvalidInput(f"{where} must be {rule}; got {document!r}. {step}")
    kind = document.get("kind", default)
    if not isinstance(kind, str) or kind not in registry:
        raise InvalidInput(
            f"{where}.kind must be one of {', '.join(registry)}; got {kind!r}. "
            f"{nearest(kind, registry)}"
        )
    given = {name: value for name, value in document.items() if name != "kind"}
    return build(registry[kind], given, where, registry)


def build(cls: type[T], given: JsonMapping, where: str, registry: Classes) -> T:
    """``cls(**given)``: refuses unknown keys by name, and reads values by their type."""
    check_keys(where, given, cls)
    hints, parts = _hints(cls), given.items()
    return cls(**{name: _read(hints[name], x, f"{where}.{name}", registry) for name, x in parts})


def _read(hint: object, value: object, where: str, registry: Classes) -> Any:
    options = _options(hint)
    if value is None and type(None) in options:
        return None
    if float in options and isinstance(value, (str, int)) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            raise InvalidInput(
                f"{where} must be a number; got {value!r}. Write a number, without quotes."
            ) from None
    if float in options and isinstance(value, list):  # a stack is written by encode_array
        raise InvalidInput(f"{where} must be a number; got a list. Write one plan per value.")
    if isinstance(value, Mapping) and "integers" in value:
        return decode_array(value)
    if isinstance(value, Mapping) and "kind" in value:
        return from_config(registry, value, where)
    if isinstance(value, list):
        return [_read(Any, part, f"{where}[{i}]", registry) for i, part in enumerate(value)]
    return value


_hints: Callable[[Any], dict[str, object]] = lru_cache(maxsize=256)(typing.get_type_hints)
"""The types of a class, whose texts Python would evaluate again at every question."""


def _options(hint: object) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def config_text(config: JsonMapping) -> str:
    """``Ridge(ridge=0.01, mechanism=structured)`` from the configuration of a part."""
    named = {name: value for name, value in config.items() if name != "kind"}
    for name, value in named.items():
        if isinstance(value, Mapping) and "shape" in value:
            named[name] = f"array of shape {tuple(value['shape'])}"
    return f"{config['kind']}({', '.join(f'{name}={value}' for name, value in named.items())})"
