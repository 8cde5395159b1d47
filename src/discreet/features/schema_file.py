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
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput
from discreet.features.schema import KINDS, Schema
from discreet.text import read_toml
from discreet.validate import nearest, one_of

HEAD = """\
# A schema: what a context is, declared before the first person comes.
# Ranges and categories must be public knowledge; never read them from people's data.
"""


def read_schema(path: str | Path) -> Schema:
    """The schema of a file; unknown keys and kinds are refused by name."""
    document = read_toml(path, "schema")
    document.pop("kind", None)  # as in the table [features] of an experiment
    _refuse_unknown("schema", document, ("fields", "squares", "products"))
    tables = document.get("fields")
    if not isinstance(tables, list) or not tables:
        raise InvalidInput(
            "schema must have at least one field; got none. Write [[fields]] above each."
        )
    document["fields"] = [_field(table, f"fields[{place}]") for place, table in enumerate(tables)]
    return Schema(**document)


def schema_text(schema: Schema, notes: Mapping[str, str] | None = None, head: str = HEAD) -> str:
    """The file of a schema; ``notes`` are comments above fields, by their names."""
    lines = [head + f"squares = {_value(schema.squares)}"]
    if schema.products:
        lines.append(f"products = {_value(schema.products)}")
    for field in schema.fields:
        note = (notes or {}).get(field.name, "")
        lines += ["", *(f"# {line}" for line in note.splitlines()), "[[fields]]"]
        lines.append(f"kind = {_value(type(field).__name__)}")
        for each in fields(field):  # type: ignore[arg-type]
            value = getattr(field, each.name)
            if each.default is MISSING or value != each.default:
                lines.append(f"{each.name} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _field(table: object, where: str) -> Any:
    given = dict(table) if isinstance(table, Mapping) else {}
    kind = KINDS[one_of(f"{where}.kind", given.pop("kind", None), KINDS)]
    known = {each.name: each for each in fields(kind)}
    _refuse_unknown(where, given, known)
    for name, each in known.items():
        if each.default is MISSING and name not in given:
            raise InvalidInput(f"{where}.{name} must be given; it is missing. Add it.")
    return kind(**given)


def _refuse_unknown(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    unknown = next((key for key in given if key not in known), None)
    if unknown is not None:
        raise InvalidInput(
            f"{where} must have only known keys; got {unknown!r}. {nearest(unknown, known)}"
        )


def _value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
