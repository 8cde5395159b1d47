"""The items of ``[plan.actions]`` in an experiment file: inline, or in a file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.config import from_config, to_config
from discreet.data.decision_logs import log_columns
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan import FEATURES
from discreet.releases.catalogue import ID, Catalogue
from discreet.simulate.schema_columns import column_contexts


def with_items(table: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The table of a catalogue as a plan's document holds it.

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
        items = _of_file(schema, folder / items)
    return dict(to_config(Catalogue(schema, items)))


def _of_file(schema: UnitBall | Schema, path: Path) -> Any:
    columns = log_columns(str(path))
    if ID not in columns:
        raise InvalidInput(
            f"items must have a column 'id'; {path.name} has {', '.join(columns)}. "
            "Rename the column that tells items apart."
        )
    ids = [_word(each) for each in columns[ID].tolist()]
    if isinstance(schema, UnitBall):
        rows = np.stack([columns[name] for name in columns if name != ID], axis=-1)
        return _once(path, ids, rows.tolist())
    columns = {**columns, ID: np.asarray(ids, dtype=object)}
    return _once(path, ids, column_contexts(schema, columns))


def _word(value: Any) -> str:
    """A file of numbers does not say which are whole."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _once(path: Path, ids: list[str], rows: list[Any]) -> dict[str, Any]:
    if twice := [each for each in {*ids} if ids.count(each) > 1] if len({*ids}) < len(ids) else []:
        raise InvalidInput(
            f"items must have distinct ids; {path.name} has {min(twice)!r} twice. Keep one of them."
        )
    return dict(zip(ids, rows, strict=True))
