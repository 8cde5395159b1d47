"""Files of experiments: examples, changes that keep comments, and values from outside a file."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
import tomlkit.items

from discreet.data.dataset import column_contexts
from discreet.data.decision_logs import log_columns
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan.config import from_config, to_config
from discreet.plan.plan import FEATURES
from discreet.releases.catalogue import ID, Catalogue
from discreet.text import parse_toml, read_toml
from discreet.types import JsonMapping

EXPERIMENT_EXAMPLE, SERVER_EXAMPLE, FORM_EXAMPLE = (
    (Path(__file__).parent / "examples" / f"{name}.toml").read_text(encoding="utf-8")
    for name in ("experiment", "server", "new_experiment_form")
)
FOLDER_EXAMPLE = EXPERIMENT_EXAMPLE.replace('host = "127.0.0.1"\nport = 8000\n\n', "").replace(
    "# Start it with   discreet serve --config experiment.toml\n", ""
)
"""The example for one of many experiments: the server starts it and listens for it."""
VARIABLES = {
    "DISCREET_DATABASE_URL": "database",
    "DISCREET_VAULT": "vault",
    "DISCREET_ANCHOR": "anchor",
    "DISCREET_HOST": "host",
    "DISCREET_PORT": "port",
    "DISCREET_PREFIX": "prefix",
}
"""Environment variables and the settings that they replace, so that a password need not be in a
file. Each may also be given as NAME_FILE, the path of a file that contains the value."""


def rewritten(text: str, wanted: JsonMapping) -> str:
    """Return the TOML text with these values; comments and the order of lines are kept.

    >>> rewritten("a = 1  # one\\n", {"a": 2, "b": ["x"]})
    'a = 2  # one\\nb = ["x"]\\n'
    """
    document = tomlkit.parse(text)
    _change(document, wanted)
    changed = tomlkit.dumps(document)
    with suppress(InvalidInput):
        if parse_toml(changed, "this text", "experiment") == wanted:
            return changed
    return tomlkit.dumps(wanted)  # without comments; no value is lost


def _change(table: MutableMapping[str, Any], wanted: JsonMapping) -> None:
    for key in table.keys() - wanted.keys():
        del table[key]
    for key, value in wanted.items():
        old = table.get(key)
        plain: Any = old.unwrap() if isinstance(old, tomlkit.items.Item) else old
        if old is not None and repr(plain) == repr(value):
            continue
        if isinstance(plain, dict) and isinstance(value, dict):
            _change(table[key], value)
        elif _tables(plain) and _tables(value) and len(plain) == len(value):
            for each, new in zip(table[key], value, strict=True):
                _change(each, new)
        elif isinstance(value, dict) and not any(isinstance(v, dict) for v in value.values()):
            table[key] = tomlkit.inline_table()
            table[key].update(value)
        else:
            table[key] = value


def _tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def changed_keys(one: object, other: object, key: str = "") -> list[str]:
    """Return the keys under which two settings differ, as in "plan.budget.epsilon"."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.get("kind") != other.get("kind"):  # then the other keys cannot be compared
            return [f"{key}.kind"]
        if "rows" in one:  # a catalogue, whose rows the file calls items
            one, other = _with_items(one), _with_items(other)
        names = sorted(one.keys() | other.keys())
        parts = [(name, one.get(name), other.get(name)) for name in names]
    elif (
        isinstance(one, list)
        and isinstance(other, list)
        and len(one) == len(other)
        and _tables([*one, *other])
    ):
        parts = [(str(i), *pair) for i, pair in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [key]
    return [
        found
        for name, left, right in parts
        for found in changed_keys(left, right, f"{key}.{name}" if key else name)
    ]


def _with_items(table: Mapping[str, object]) -> dict[str, object]:
    """Return a catalogue's table with its ids and rows as one value."""
    rest = {name: table[name] for name in table if name not in ("ids", "rows")}
    return {**rest, "items": repr((table.get("ids"), table.get("rows")))}


def from_environment(environment: Mapping[str, str]) -> dict[str, str | int]:
    """Return the settings that the environment names; an error never repeats a value."""
    found: dict[str, str | int] = {
        setting: value
        for name, setting in VARIABLES.items()
        if (value := _variable(environment, name)) is not None
    }
    port = str(found.get("port", "0"))
    if not (port.isascii() and port.isdecimal()):
        raise InvalidInput(
            "DISCREET_PORT must be a whole number; it is not. Write DISCREET_PORT=8000."
        )
    return found | ({"port": int(port)} if "port" in found else {})


def _variable(environment: Mapping[str, str], name: str) -> str | None:
    value, path = environment.get(name), environment.get(f"{name}_FILE")
    if value is not None and path is not None:
        raise InvalidInput(
            f"{name} must be given once; {name}_FILE is also set. Unset one of them."
        )
    if path is None:
        return value or None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InvalidInput(
            f"{name}_FILE must name a readable file; {path} is not ({why}). Check the path, its "
            "owner and its mode."
        ) from None


def named_files(path: Path) -> list[Path]:
    """Return the files that an experiment file names as parts of its plan: items and a prior."""
    try:
        plan = read_toml(path, "experiment")["plan"]
        actions = plan.get("actions")
        items = actions.get("items") if isinstance(actions, dict) else None
        return [path.parent / each for each in (items, plan.get("prior")) if isinstance(each, str)]
    except (InvalidInput, LookupError, AttributeError):
        return []


def catalogue_config(table: Mapping[str, object], folder: Path) -> Mapping[str, object]:
    """Return the table ``[plan.actions]`` in the form that a plan's configuration has.

    ``items`` is a list of tables with "id", a table of tables by id, or the name of a .csv or
    .parquet file with a column "id".
    """
    if "items" not in table:
        return {"kind": "Catalogue", **table}
    others = table.keys() - {"kind", "schema", "items"}
    if others or "schema" not in table:
        raise InvalidInput(
            "plan.actions must have a schema and items; got "
            f"{', '.join(sorted(table)) or 'nothing'}. Write [plan.actions.schema] and items."
        )
    schema = from_config(FEATURES, table["schema"], "plan.actions.schema")
    items = table["items"]
    if isinstance(items, str):
        items = _items_of_file(schema, folder / items)
    return dict(to_config(Catalogue(schema, items)))


def _items_of_file(schema: UnitBall | Schema, path: Path) -> dict[str, object]:
    columns = log_columns(str(path))
    if ID not in columns:
        raise InvalidInput(
            f"items must have a column 'id'; {path.name} has {', '.join(columns)}. "
            "Rename the column that identifies items."
        )
    # A file whose ids are numbers may store whole numbers as floats.
    given = columns[ID].tolist()
    ids = [f"{each:.15g}" if isinstance(each, float) else str(each) for each in given]
    if len({*ids}) < len(ids):
        twice = min(each for each in {*ids} if ids.count(each) > 1)
        raise InvalidInput(
            f"items must have distinct ids; {path.name} has {twice!r} twice. Keep one of them."
        )
    if isinstance(schema, UnitBall):
        rows = np.stack([columns[name] for name in columns if name != ID], axis=-1).tolist()
    else:
        rows = column_contexts(schema, {**columns, ID: np.asarray(ids, dtype=object)})
    return dict(zip(ids, rows, strict=True))
