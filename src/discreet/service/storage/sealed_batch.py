"""The rows of a sealed batch, opened once for its fit: the core's private type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from discreet.plan import Plan
from discreet.rows.batch import Batch
from discreet.rows.batch_slots import batch_of
from discreet.service.secrets.sealing import (
    ACTIVATION,
    LOSS,
    NOBODY,
    ROW,
    WHOLE,
    Row,
    Sealer,
    unpack_loss,
)
from discreet.service.storage.database import Connection


def read_batch(
    connection: Connection, plan: Plan, sealer: Sealer, epoch: int, batch: int, size: int
) -> Batch:
    """The rows of a sealed batch as the core's private type; what cannot be read is void."""
    features = np.zeros((size, plan.features.p))
    losses = np.full((size, plan.n_actions), np.nan)
    actions = np.full(size, -1, dtype=np.int64)
    users: dict[int, bytes] = {}
    deferred: set[int] = set()

    def put(slot: int, row: Row) -> None:
        features[slot], actions[slot], users[slot] = row.features, row.action, row.user
        if row.deferred:
            deferred.add(slot)

    for slot, payload in _rows(connection, "records", "slot", epoch, batch):
        packed = sealer.open(ROW, slot, bytes(payload))
        if packed is not None:
            put(slot, Row.unpack(packed))
    for slot, kind, payload in _rows(connection, "answers", "slot, kind", epoch, batch):
        packed = sealer.open(kind, slot, bytes(payload))
        if packed is None:
            continue
        if kind == ACTIVATION:
            deferred.discard(slot)
        elif kind == WHOLE:
            row = Row.unpack(packed[:-8])
            put(slot, row)
        if kind in (LOSS, WHOLE) and actions[slot] >= 0:
            losses[slot, actions[slot]] = unpack_loss(packed[-8:])
            deferred.discard(slot)
    # Not activated: nobody saw it. A user's second row: the unit of privacy allows one.
    void = [*deferred, *_repeats(users)]
    actions[void], losses[void] = -1, np.nan
    return batch_of(features, losses, actions, plan.missing_loss)


def _repeats(users: dict[int, bytes]) -> list[int]:
    """Slots of users who have an earlier one."""
    # Privacy: at most one row of a batch is a user's, so changing all that is theirs replaces
    # one record. [docs/privacy/service.md, "Users"]
    seen: set[bytes] = set()
    repeated = []
    for slot in sorted(users):
        if users[slot] != NOBODY and users[slot] in seen:
            repeated.append(slot)
        seen.add(users[slot])
    return repeated


def _rows(
    connection: Connection, table: str, columns: str, epoch: int, batch: int
) -> Iterable[Any]:
    return connection.execute(
        f"SELECT {columns}, payload FROM {table} WHERE epoch = ? AND batch = ? ORDER BY {columns}",
        (epoch, batch),
    ).fetchall()
