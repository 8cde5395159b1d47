"""What was handed over for evaluation: contexts and their labels or losses, frames or arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from discreet.batches.observations import values_of
from discreet.errors import InvalidInput
from discreet.features import frames
from discreet.features.schema import Schema


class EvaluationData(NamedTuple):
    """Contexts without the columns that are something else; everything beside them as arrays."""

    contexts: Any
    beside: dict[str, Any]
    columns: tuple[str, ...]
    """Names of the context columns; none for arrays."""


def evaluation_data(
    features: Any, contexts: Any, groups: Any = None, **beside: Any
) -> EvaluationData:
    """``beside`` are series, arrays, or names of columns of the frame, which then are no contexts.

    ``features`` is how a plan reads contexts; None before there is a plan. ``groups`` are handed
    over in the same ways, but a column of groups may also be a feature of the schema.
    """
    given = beside if groups is None else {**beside, "groups": groups}
    if not frames.is_frame(contexts):
        return EvaluationData(contexts, {name: values_of(name, given[name]) for name in given}, ())
    values = {name: values_of(name, data, contexts) for name, data in given.items()}
    named = [data for data in beside.values() if isinstance(data, str)]
    known = _schema_columns(features)
    if isinstance(groups, str) and groups not in {*known, *named}:
        contexts = frames.without_column(contexts, groups)
    for name in named:
        if name in known:
            raise InvalidInput(
                f"column {name!r} must be what is learned, or a feature; got it as both. "
                "Leave it out of the schema."
            )
        contexts = frames.without_column(contexts, name)
    names = frames.column_names(contexts)
    if not isinstance(features, Schema):  # numbers, read once
        contexts = frames.numeric_rows(contexts, getattr(features, "dimension", len(names)))
    return EvaluationData(contexts, values, names)


def _schema_columns(features: Any) -> set[str]:
    return {field.name for field in features.fields} if isinstance(features, Schema) else set()
