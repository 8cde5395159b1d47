"""Decisions of batches under way as a table, for the owner of the experiment.

PRIVATE: these are rows of people, without noise. They are readable only while the keys of their
batches exist, so that nothing of a batch can be exported after its release.
"""

from __future__ import annotations

from contextlib import closing
from operator import itemgetter
from typing import Any

import numpy as np

from discreet.design.action_names import action_name
from discreet.features.joint import feature_names
from discreet.service.secrets import sealing
from discreet.service.secrets.sealing import DecisionRow, Sealer, unpack_losses
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.batches import under_way
from discreet.service.storage.database import Connection, storage_errors
from discreet.service.storage.document_table import note_change
from discreet.service.storage.locations import open_database

NOTE = (
    "PRIVATE: rows of people, without noise. No guarantee of differential privacy covers this "
    "file, and no release erases it. Do not publish it or anything computed from it."
)


def decision_columns(settings: Settings) -> dict[str, np.ndarray[Any, Any]]:
    """Return the decisions of all batches under way as columns, and record the export.

    The place of a decision is in its id: epoch, batch and slot. Items of a catalogue have no
    column, since only their features are stored.
    """
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    plan, rails = settings.plan, settings.plan.guardrails or ()
    places, rows, losses = [], [], []
    with storage_errors(database), closing(database.connect()) as connection:
        for batch in under_way(connection):
            if (key := vault.batch(batch.epoch, batch.id)) is None:
                continue
            sealer = Sealer(key, batch.epoch, batch.id)
            found = _decisions(connection, sealer, batch.epoch, batch.id, len(rails))
            for slot, (row, loss) in sorted(found, key=itemgetter(0)):
                places.append((batch.epoch, batch.id, slot, batch.release))
                rows.append(row)
                losses.append(loss)
        with database.transaction(connection):
            note_change(database, connection, "decisions exported")
    numbers = np.asarray(places, dtype=np.int64).reshape(-1, 4)
    columns: dict[str, np.ndarray[Any, Any]] = dict(
        zip(("epoch", "batch", "slot", "release"), numbers.T, strict=True)
    )
    if plan.catalogue is None:
        names = [action_name(plan, row.action) for row in rows]
        columns["action"] = np.asarray(names, dtype=None if plan.actions is None else object)
    columns["deferred"] = np.asarray([row.deferred for row in rows], dtype=bool)
    values = np.asarray(losses, dtype=np.float64).reshape(len(rows), 1 + len(rails))
    columns[plan.outcome.word] = plan.outcome.value_of(values[:, 0])
    for place, each in enumerate(rails, start=1):
        columns[f"guardrail {each.name}"] = each.outcome.value_of(values[:, place])
    features = np.asarray([row.features for row in rows]).reshape(len(rows), plan.features.p)
    for name, values in zip(feature_names(plan.features), features.T, strict=True):
        columns[f"feature {name}"] = np.ascontiguousarray(values)
    return columns


def _decisions(
    connection: Connection, sealer: Sealer, epoch: int, batch: int, guardrails: int
) -> list[tuple[int, tuple[DecisionRow, list[float]]]]:
    """Return rows of a batch by slot, with losses and guardrails; NaN where none came."""
    made, losses, place = dict[int, DecisionRow](), dict[int, list[float]](), (epoch, batch)
    query = "SELECT slot, payload FROM records WHERE epoch = ? AND batch = ?"
    for slot, payload in connection.execute(query, place).fetchall():
        if (packed := sealer.open(sealing.ROW, slot, bytes(payload))) is not None:
            made[slot] = DecisionRow.unpack(packed)
    query = "SELECT slot, kind, payload FROM answers WHERE epoch = ? AND batch = ?"
    for slot, kind, payload in connection.execute(query, place).fetchall():
        packed = sealer.open(kind, slot, bytes(payload))
        if packed is None or kind not in (sealing.LOSS, sealing.WHOLE):
            continue
        row, losses[slot] = unpack_losses(packed, guardrails)
        if kind == sealing.WHOLE:
            made[slot] = DecisionRow.unpack(row)
    silent = [np.nan] * (1 + guardrails)
    return [(slot, (row, losses.get(slot, silent))) for slot, row in made.items()]
