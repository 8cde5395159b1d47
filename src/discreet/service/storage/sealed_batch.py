"""Rows of a sealed batch, decrypted once for its fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from discreet.batch import Batch
from discreet.batches.batch_slots import batch_of
from discreet.plan.plan import Plan
from discreet.service.secrets import sealing
from discreet.service.secrets.sealing import LOSS, ROW, WHOLE, DecisionRow, Sealer
from discreet.service.storage.batches import control_positions, of_log
from discreet.service.storage.database import Connection
from discreet.service.storage.journal import slots_of_people
from discreet.types import NumpyArray


def read_batch(
    connection: Connection,
    plan: Plan,
    sealer: Sealer,
    epoch: int,
    batch: int,
    size: int,
    blocks: int | None = None,
) -> Batch:
    """Return the rows of a sealed batch; rows that cannot be decrypted are void.

    ``blocks`` is the number of actions of the batch, if some joined since the plan.
    """
    features = np.zeros((size, plan.features.p))
    losses = np.full((size, blocks or plan.blocks), np.nan)
    actions = np.full(size, -1, dtype=np.int64)
    count = len(plan.guardrails or ())
    guardrails = np.full((size, count), np.nan)
    deferred: set[int] = set()

    def put(slot: int, row: DecisionRow) -> None:
        features[slot], actions[slot] = row.features, row.action
        if row.deferred:
            deferred.add(slot)

    for slot, payload in _rows(connection, "records", "slot", epoch, batch):
        if (packed := sealer.open(ROW, slot, payload)) is not None:
            put(slot, DecisionRow.unpack(packed))
    for slot, kind, payload in _rows(connection, "answers", "slot, kind", epoch, batch):
        if (packed := sealer.open(kind, slot, payload)) is None:
            continue
        if kind == sealing.ACTIVATION:
            deferred.discard(slot)
            continue
        row, values = sealing.unpack_losses(packed, count)
        if kind == WHOLE:
            put(slot, DecisionRow.unpack(row))
        if kind in (LOSS, WHOLE) and actions[slot] >= 0:
            losses[slot, actions[slot]], guardrails[slot] = values[0], values[1:]
            deferred.discard(slot)
    void = deferred  # not activated: not shown to anyone
    if plan.participation is not None:
        # Privacy: at most k rows of a batch, in at most M batches, are not void and one user's.
        # [docs/privacy/service.md, "Users"]
        void |= {*range(size)} - slots_of_people(connection, "counts", epoch, batch)
    gone = sorted(void)
    actions[gone], losses[gone] = -1, np.nan
    control = _control(connection, plan, epoch, batch, size)
    rails = guardrails if count else None
    return batch_of(features, losses, actions, plan.missing_loss, control, rails)


def _control(
    connection: Connection, plan: Plan, epoch: int, batch: int, size: int
) -> NumpyArray | None:
    """Return which slots are in the control, independent of their content.

    Privacy: a record is in one part, and a person in the same part of every batch.
    [docs/privacy/lift.md, "Parts of a batch"]
    """
    if plan.control is None:
        return None
    if of_log(plan.schedule, epoch, batch):
        return np.full(size, False)  # a log has no control
    if plan.participation is None:
        return control_positions(plan.control, epoch, batch, size)
    slots = slots_of_people(connection, "control", epoch, batch)
    return np.isin(np.arange(size), sorted(slots))


def _rows(
    connection: Connection, table: str, columns: str, epoch: int, batch: int
) -> Iterable[Any]:
    place = f"{table} WHERE epoch = ? AND batch = ? ORDER BY {columns}"
    return connection.execute(f"SELECT {columns}, payload FROM {place}", (epoch, batch)).fetchall()
