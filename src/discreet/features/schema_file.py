"""A schema as a TOML file: one table per field, with the keys of its class.

::

    squares = true

    [[fields]]
    kind = "Number"
    name = "age"
    low = 0
    high = 100
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.hashed import Hashed
from discreet.features.number import Number
from discreet.features.schema import Schema
from discreet.text import read_toml
from discreet.validate import nearest

KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (Number, Flag, Category, Hashed, Date)
}
KEYS = ("fields", "squares", "products")
HEAD = """\
# A schema: what a context is, declared before the first person comes.
# Ranges and categories must be public knowledge; never read them from people's data.
"""


def read_schema(path: str | Path) -> Schema:
    """The schema of a file; unknown keys and kinds are refused by name."""
    document = read_toml(path, "schema")
    document.pop("kind", None)  # as in the table [features] of an experiment
    for key in document:
        if key not in KEYS:
            raise InvalidInput(
                f"schema must have only known keys; got {key!r}. {nearest(key, KEYS)}"
            )
    tables = document.get("fields")
    if not isinstance(tables, list) or not tables:
        raise InvalidInput(
            "schema must have at least one field; got none. Write [[fields]] above each."
        )
    return Schema(
        [_field(table, f"fields[{place}]") for place, table in enumerate(tables)],
        squares=document.get("squares"),
        products=document.get("products", ()),
    )


def schema_text(schema: Schema, notes: Mapping[str, str] | None = None, head: str = HEAD) -> str:
    """The file of a schema; ``notes`` are comments above fields, by their names."""
    lines = [head + f"squares = {_value(schema.squares)}"]
    if schema.products:
        lines.append(f"products = {_value(schema.products)}")
    for field in schema.fields:
        note = (notes or {}).get(field.name, "")
        lines += ["", *(f"# {line}" for line in note.splitlines()), "[[fields]]"]
        lines.append(f"kind = {_value(type(field).__name__)}")
        for each in fields(field):
            value = getattr(field, each.name)
            if each.default is MISSING or value != each.default:
                lines.append(f"{each.name} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _field(table: object, where: str) -> Any:
    given = dict(table) if isinstance(table, Mapping) else {}
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInput(
            f"{where}.kind must be one of {', '.join(KINDS)}; got {kind!r}. {nearest(kind, KINDS)}"
        )
    known = {each.name: each for each in fields(KINDS[kind])}
    for key in given:
        if key not in known:
            raise InvalidInput(
                f"{where} must have only known keys; got {key!r}. {nearest(key, known)}"
            )
    for name, each in known.items():
        if each.default is MISSING and each.default_factory is MISSING and name not in given:
            raise InvalidInput(f"{where}.{name} must be given; it is missing. Add it.")
    return KINDS[kind](**given)


def _value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
