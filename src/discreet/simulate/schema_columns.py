"""The columns of a file as contexts of a schema, matched by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.data.dataset import Dataset
from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.flag import Flag
from discreet.features.schema import Schema
from discreet.features.unit_ball import SQRT_HALF
from discreet.validate import nearest

TRUTH = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def schema_contexts(schema: Schema, data: Dataset) -> list[dict[str, Any]]:
    """One dict per row; columns that the schema does not name are left out."""
    if data.source is None:
        raise InvalidInput(
            f"data must be a file with named columns for a schema; got {data.name!r}. "
            "Write it as .csv or .parquet, or leave the schema out."
        )
    return column_contexts(schema, data.source.by_name())


def column_contexts(
    schema: Schema, columns: Mapping[str, np.ndarray[Any, Any]]
) -> list[dict[str, Any]]:
    """One dict per row of columns by name."""
    for field in schema.fields:
        if field.name not in columns:
            raise InvalidInput(
                f"column {field.name!r} of the schema must be in the file, and be no class; it is "
                f"not. {nearest(field.name, columns)}"
            )
    chosen = [list(_values(field, columns[field.name])) for field in schema.fields]
    names = [field.name for field in schema.fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*chosen, strict=True)]


def with_schema(schema: Schema, data: Dataset) -> Dataset:
    """The set with contexts that ``UnitBall`` maps to the features of the schema.

    Its contexts lie in the unit ball already, so that the ball changes them by rounding at most.
    """
    features = schema.map(schema_contexts(schema, data))
    return replace(data, contexts=features[:, 1:] / SQRT_HALF, source=None)


def _values(field: Any, column: np.ndarray[Any, Any]) -> Iterable[Any]:
    """Values as the field wants them: a text file cannot tell 1 from "1", nor true from a word."""
    values = column.tolist()
    numbers = column.dtype.kind != "O"
    if isinstance(field, Flag) and not numbers:
        return (TRUTH.get(each.lower(), each) if each is not None else None for each in values)
    if isinstance(field, Category) and field.of_words and numbers:
        return (None if each != each else f"{each:.15g}" for each in values)
    return list(values)
