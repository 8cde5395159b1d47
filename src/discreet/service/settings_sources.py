"""Values that settings take from outside their file: environment variables and files of items."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.dataset import column_contexts
from discreet.data.decision_logs import log_columns
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan.config import from_config, to_config
from discreet.plan.plan import FEATURES
from discreet.releases.catalogue import ID, Catalogue
from discreet.text import read_toml

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


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that the environment names; an error never repeats a value."""
    found = {
        setting: value
        for name, setting in VARIABLES.items()
        if (value := _variable(environment, name)) is not None
    }
    if "port" not in found:
        return found
    if not (found["port"].isascii() and found["port"].isdecimal()):
        raise InvalidInput(
            "DISCREET_PORT must be a whole number; it is not. Write DISCREET_PORT=8000."
        )
    return found | {"port": int(found["port"])}


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


def catalogue_config(table: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
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


def _items_of_file(schema: UnitBall | Schema, path: Path) -> dict[str, Any]:
    columns = log_columns(str(path))
    if ID not in columns:
        raise InvalidInput(
            f"items must have a column 'id'; {path.name} has {', '.join(columns)}. "
            "Rename the column that identifies items."
        )
    ids = [_id_text(each) for each in columns[ID].tolist()]
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


def _id_text(value: Any) -> str:
    # A file whose ids are numbers may store whole numbers as floats.
    return f"{value:.15g}" if isinstance(value, float) else str(value)
