"""A labelled set in the words of a service's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.data.dataset import Dataset
from discreet.errors import InvalidInput


def contexts(data: Dataset, schema: Mapping[str, Any]) -> list[Any]:
    """Every row as a context that the service accepts.

    An array service takes the numbers as they are. Else the first field takes the first column,
    and so on: a number is stretched to the declared range, all else is cut at quantiles: a
    category into its values, a flag into two, a hashed word into ten, a date into hours.
    """
    if data.n_actions > schema["n_actions"]:
        raise InvalidInput(
            f"data must have at most as many classes as the service has actions, "
            f"{schema['n_actions']}; {data.name} has {data.n_actions}. Choose another set."
        )
    features = schema["features"]
    wide = features["dimension"] if features["kind"] == "UnitBall" else len(features["fields"])
    exact = features["kind"] == "UnitBall"
    if data.dimension < wide or (exact and data.dimension != wide):
        raise InvalidInput(
            f"data must have {'' if exact else 'at least '}{wide} columns for the schema of the "
            f"service; {data.name} has {data.dimension}. Choose another set."
        )
    if exact:
        rows: list[Any] = data.contexts.tolist()
        return rows
    fields = features["fields"]
    columns = [_column(field, data.contexts[:, place]) for place, field in enumerate(fields)]
    names = [field["name"] for field in fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def labels(data: Dataset, schema: Mapping[str, Any]) -> list[int | str]:
    """The right action of every row, as the service calls it: class 0 is its first action."""
    names = schema["actions"]
    numbers: list[int] = data.labels.tolist()
    return [number if names is None else names[number] for number in numbers]


def _column(field: Mapping[str, Any], values: np.ndarray[Any, Any]) -> list[Any]:
    if field["kind"] == "Number":
        low, high = float(field["low"]), float(field["high"])
        spread = float(np.ptp(values)) or 1.0
        numbers: list[Any] = np.clip(
            low + (high - low) * (values - values.min()) / spread, low, high
        ).tolist()
        return numbers
    words: list[Any] = {
        "Flag": [False, True],
        "Category": field.get("values", []),
        "Hashed": [f"word {place}" for place in range(10)],
        "Date": [f"2026-01-{1 + hour:02}T{hour:02}:00" for hour in range(24)],
    }[field["kind"]]
    cuts = np.quantile(values, np.arange(1, len(words)) / len(words))
    return [words[place] for place in np.searchsorted(cuts, values, side="right")]
