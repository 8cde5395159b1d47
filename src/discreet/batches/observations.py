"""Contexts, ids, losses and labels of rows, as series, as frames, or by the name of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from discreet.design.outcome import Guardrail, refuse_unknown_guardrails
from discreet.errors import InvalidInput, kind_of
from discreet.features import frames
from discreet.features.column_values import whole_number
from discreet.features.frames import Column, column, column_of, is_frame, is_series, opened
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.types import Contexts, Frame, NumpyArray, Values


def aligned(values: Frame, like: Frame) -> Frame:
    """Return a series or frame in the order of the rows of ``like``.

    Rows are matched by the index if both have one, else by position.
    """
    if not hasattr(values, "reindex") or not hasattr(like, "reindex"):
        return values
    if values.index.equals(like.index):
        return values
    same = len(values) == len(like) and values.index.is_unique and like.index.is_unique
    if not same or not like.index.isin(values.index).all():
        raise InvalidInput(
            "index of a series must have the labels of the rows that it belongs to, each once; "
            "got other labels. Call reset_index(drop=True) on both to match them by position."
        )
    return values.reindex(like.index)


def values_of(name: str, data: Values, rows: Frame = None) -> Values:
    """Return a series, or a column of the frame ``rows`` by its name, as an array.

    Gaps are refused. Anything else is returned as it is.
    """
    if isinstance(data, str) and is_frame(rows):
        found, name = column(opened(rows), data, name), data
    elif is_series(data):
        found = column_of(aligned(data, rows))
    else:
        return data
    _refuse_gaps(name, found)
    return found.values


def action_columns(losses: Values, names: Sequence[str] | None, rows: Frame = None) -> Values:
    """Return a frame with a column per action as an array (n, A), by name if actions have names.

    Anything else is returned as it is.
    """
    if not is_frame(losses):
        return losses
    frame = opened(aligned(losses, rows))
    table = []
    for name in frame.columns if names is None else names:
        found = column(frame, name, "action")
        if found.values.dtype.kind not in "biuf":
            raise InvalidInput(
                f"column {name!r} must be numeric; got {frame.schema[name]}. "
                "Give each action a column of numbers, and leave out the others."
            )
        _refuse_gaps(name, found)
        table.append(found.values.astype(np.float64))
    return np.stack(table, axis=-1) if table else np.empty((len(frame), 0))


def reports(
    plan: Plan,
    id: Values,
    loss: Values,
    reward: Values,
    guardrails: Mapping[str, Values] | None,
) -> tuple[NumpyArray, NumpyArray, NumpyArray | None]:
    """Return ids (n,), losses (n,) or (n, A), and guardrails (n, k) if the plan has some.

    ``id`` is one id, several, or a frame with the columns "id" and "loss" or "reward".
    """
    full, outcome = plan.feedback == "full", plan.outcome
    one = not is_frame(id) and np.ndim(id) == 0
    rails = _guardrail_losses(id, guardrails, plan.guardrails)
    if is_frame(id):
        if loss is not None or reward is not None or full:
            raise InvalidInput(
                f"a frame of reports must come alone, with the columns 'id' and {outcome.word!r}; "
                "got more, or the plan has full feedback. "
                f"Call observe(frame['id'], {outcome.word}=…)."
            )
        read = opened(id)
        id = column(read, "id", "column")
        values: Values = column(read, outcome.word, "column")
    else:
        values = outcome.reported(loss, reward)
        values = action_columns(values, plan.actions, id) if full else values
        if is_frame(values):
            raise InvalidInput(
                f"{outcome.word} must be one column; got a frame. "
                f"Call observe(frame['id'], {outcome.word}=frame[{outcome.word!r}])."
            )
        values = column_of(aligned(values, id)) if is_series(values) else values
        id = column_of(id) if is_series(id) else id
    if isinstance(values, Column):
        _refuse_gaps(outcome.word, values)
        values = values.values
    ids = _ids(id)
    if one and not full:
        return ids, np.asarray([outcome.loss_of(values)]), rails
    shape = (*([] if one else [len(ids)]), *([plan.n_actions] if full else []))
    losses = outcome.losses_of(values, shape)
    return ids, losses[None] if one else losses, rails


def _ids(id: Values) -> NumpyArray:
    if isinstance(id, Column):
        values = id.values.tolist()
        whole = np.array([whole_number(each) is not None for each in values], dtype=bool)
        wrong = np.flatnonzero(id.missing | ~whole)
        if len(wrong):
            value = None if id.missing[wrong[0]] else values[wrong[0]]
            got = "a number that is not whole" if type(value) is float else kind_of(value)
            raise InvalidInput(
                f"row {wrong[0]}: id must be the id of a decision, a whole number; got {got}. "
                "Pass decisions.id unchanged, and leave out rows without one."
            )
        return id.values.astype(np.int64)  # a join with gaps makes floats of ids
    ids = np.atleast_1d(np.asarray(id))
    if ids.shape == (0,):  # an empty list: no answers yet
        ids = ids.astype(np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InvalidInput(
            f"id must be a decision's id or an array of them; got {type(id).__name__}. "
            "Pass decision.id."
        )
    return ids


def _refuse_gaps(name: str, found: Column) -> None:
    if found.missing.any():
        raise InvalidInput(
            f"row {int(found.missing.argmax())}: {name} must be known; got none. Leave out such "
            "rows until it is known: dropna in pandas, drop_nulls in polars."
        )


def _guardrail_losses(
    id: Values, given: Mapping[str, Values] | None, declared: Sequence[Guardrail] | None
) -> NumpyArray | None:
    """Return reported guardrails as losses (n, k), NaN where not observed."""
    refuse_unknown_guardrails(declared or (), given)
    if declared is None:
        return None
    if given is None and is_frame(id):
        read = opened(id)
        names = [each.name for each in declared if each.name in read.columns]
        given = {name: column(read, name) for name in names}
    single = not is_frame(id) and np.ndim(id) == 0
    table = np.full((1 if single else len(id), len(declared)), np.nan)
    for place, guardrail in enumerate(declared):
        values = (given or {}).get(guardrail.name)
        if is_series(values):
            values = column_of(aligned(values, id))
        if isinstance(values, Column):
            values = values.filled("").tolist()
        if values is None:
            continue
        values = [values] if single else values
        if not isinstance(values, (list, tuple, np.ndarray)) or len(values) != len(table):
            raise InvalidInput(
                f"{guardrail.name} must be one value per id, {len(table)} of them; got another "
                "shape. Give None where it is not known."
            )
        for row, value in enumerate(values):
            try:
                table[row, place] = guardrail.loss_of(value)
            except InvalidInput as error:
                raise error if single else InvalidInput(f"row {row}: {error}") from None
    return table


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
    values = {name: values_of(name, data, contexts) for name, data in given.items()}
    if not is_frame(contexts):
        return EvaluationData(contexts, values, ())
    named = [data for data in columns.values() if isinstance(data, str)]
    if isinstance(groups, str) and groups not in {*_schema_columns(features), *named}:
        contexts = frames.without_column(contexts, groups)
    for name in named:
        contexts = _without(features, contexts, name, "what is learned")
    names = frames.column_names(contexts)
    if not isinstance(features, Schema):  # numbers, read once
        contexts = frames.numeric_rows(contexts, getattr(features, "dimension", len(names)))
    return EvaluationData(contexts, values, names)


def split_user_column(
    features: Features, contexts: Contexts, user: Values
) -> tuple[Contexts, Values]:
    """Return contexts without the column ``user``, and its ids; ids may also come as a series."""
    values = values_of("user", user, contexts)
    if not isinstance(user, str) or not is_frame(contexts):
        return contexts, values
    return _without(features, contexts, user, "the user"), values


def _without(features: Features | None, contexts: Contexts, name: str, use: str) -> Contexts:
    if name in _schema_columns(features):
        raise InvalidInput(
            f"column {name!r} must be {use}, or a feature; got it as both. Leave it out of the "
            "schema."
        )
    return frames.without_column(contexts, name)


def _schema_columns(features: Features | None) -> set[str]:
    return {field.name for field in features.fields} if isinstance(features, Schema) else set()
