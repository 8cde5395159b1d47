"""Import of a private log before the first start of a service, as sealed batches.

Rows of a log are released in the same way as rows of decisions: encrypted under the key of their
batch, counted in the table of people, fitted once by the child, verified and charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing

from discreet.batches.log_import import LoggedRows
from discreet.batches.users import keyed_hash
from discreet.errors import InvalidInput, StateClaimed
from discreet.service.runtime.lifecycle import awaits_log, check_stored
from discreet.service.secrets.sealing import WHOLE, DecisionRow, Sealer, pack_losses
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.batches import LOG_EPOCH
from discreet.service.storage.database import Connection, Database, step
from discreet.service.storage.journal import OwnedSlot, People
from discreet.service.storage.locations import anchor_of, open_database

SLICE = 1024
"""Rows per statement: databases limit the values that one may have."""


def import_log(settings: Settings, rows: LoggedRows) -> int:
    """Store a log in one transaction; return its number of batches.

    The next start of the service releases them, before the first decision takes a slot.
    """
    wanted, given = settings.plan.imported, len(rows.actions)
    if wanted is None or given != wanted:
        announced = "none" if wanted is None else f"{wanted:,} rows"
        first = "Since a" if wanted is None else f"Import {wanted:,} rows; or, since a"
        raise InvalidInput(
            f"log must have the rows that plan.imported announces, {announced}; got {given:,}. "
            f"{first} plan never changes, write imported = {given} and begin a new experiment with "
            "another database."
        )
    schedule = settings.plan.schedule
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    with database.guard(), closing(database.connect()) as connection:
        check_stored(settings, database, connection, anchor_of(settings))
        with database.transaction(connection):
            # Other imports and leases wait for this row, and then see these batches.
            connection.execute(f"SELECT 1 FROM experiment {database.lock}").fetchone()
            if not awaits_log(settings, connection):
                raise StateClaimed(
                    "log must be imported once, before the first decision; this experiment holds "
                    "batches, or was restored. A second import would add noise a second time to "
                    "the same rows: continue with discreet serve, or begin a new experiment."
                )
            for number, one in enumerate(rows.batches(schedule), start=1):
                _store(database, connection, vault, settings, number, one)
                step("import:batch")
            connection.execute(f"UPDATE experiment SET clock = {database.later}")
            step("import:before-commit")
        step("import:committed")
    return schedule.imported_batches


def _store(
    database: Database,
    connection: Connection,
    vault: Vault,
    settings: Settings,
    batch: int,
    rows: LoggedRows,
) -> None:
    """Store one batch with all its slots taken, whose window is over."""
    size = len(rows.actions)
    vault.make(LOG_EPOCH, batch)
    key = vault.batch(LOG_EPOCH, batch)
    assert key is not None
    sealer, count = Sealer(key, LOG_EPOCH, batch), len(settings.plan.guardrails or ())
    connection.execute(
        f"""INSERT INTO batches
                (epoch, id, size, taken, state, release, opened, sealed, closes, due)
            SELECT ?, ?, ?, ?, 'sealed', 0, clock.at, clock.at, clock.at, clock.at
            FROM (SELECT {database.now} AS at) AS clock""",
        (LOG_EPOCH, batch, size, size),
    )
    for slots in _slices(size):
        marks = ", ".join("(?, ?, ?, ?, ?)" for _ in slots)
        values = [
            value
            for slot in slots
            for value in (LOG_EPOCH, batch, slot, WHOLE, _sealed(sealer, slot, rows, count))
        ]
        connection.execute(f"INSERT INTO answers VALUES {marks}", values)
    often = settings.plan.participation
    if often is None:
        return
    # Privacy: a log uses one of a person's M batches, and k of their rows in it count; a row
    # without an owner is void.
    # [docs/privacy/users.md, "Counts must not be forgotten"]
    people, hashed = People(database, often), keyed_hash(vault.people)
    for slots in _slices(size):
        owned = [(slot, rows.users[slot]) for slot in slots]
        slots_of_people = [
            OwnedSlot(LOG_EPOCH, batch, slot, hashed(user))
            for slot, user in owned
            if user is not None
        ]
        people.record_slots(connection, slots_of_people)


def _sealed(sealer: Sealer, slot: int, rows: LoggedRows, guardrails: int) -> bytes:
    row = DecisionRow(rows.features[slot], int(rows.actions[slot]))
    losses = [float(rows.losses[slot]), *[math.nan] * guardrails]  # a log has no guardrails
    return sealer.seal(WHOLE, slot, row.pack() + pack_losses(losses))


def _slices(size: int) -> Iterator[range]:
    return (range(start, min(start + SLICE, size)) for start in range(0, size, SLICE))
