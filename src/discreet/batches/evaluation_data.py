"""Contexts, with label, loss, user and group columns split off; frames or arrays."""

from __future__ import annotations

from typing import NamedTuple

from discreet.batches.observations import values_of
from discreet.errors import InvalidInput
from discreet.features import frames
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.types import Contexts, Values

Features = UnitBall | Schema | Joint


class EvaluationData(NamedTuple):
    """Contexts alone, and the other columns as arrays."""

    contexts: Contexts
    columns: dict[str, Values]
    context_names: tuple[str, ...]
    """Names of the context columns; none for arrays."""


def evaluation_data(
    features: Features | None, contexts: Contexts, groups: Values = None, **columns: Values
) -> EvaluationData:
    """Split off ``columns``: series, arrays, or names of columns of the frame.

    ``features`` are those of the plan, None before there is one. ``groups`` come in the same ways,
    but a column of groups may also be a feature of the schema.
    """
    given = columns if groups is None else {**columns, "groups": groups}
    rows = contexts if frames.is_frame(contexts) else None
    values = {name: values_of(name, data, rows) for name, data in given.items()}
    if rows is None:
        return EvaluationData(contexts, values, ())
    named = [data for data in columns.values() if isinstance(data, str)]
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


def split_user_column(
    features: Features, contexts: Contexts, user: Values
) -> tuple[Contexts, Values]:
    """Return contexts without the column ``user``, and its ids; ids may also come as a series."""
    values = values_of("user", user, contexts if frames.is_frame(contexts) else None)
    if not isinstance(user, str) or not frames.is_frame(contexts):
        return contexts, values
    if user in _schema_columns(features):
        raise InvalidInput(
            f"column {user!r} must be the user, or a feature; got it as both. "
            "Leave it out of the schema: what is learned from an id holds for one person alone."
        )
    return frames.without_column(contexts, user), values


def _schema_columns(features: Features | None) -> set[str]:
    return {field.name for field in features.fields} if isinstance(features, Schema) else set()
