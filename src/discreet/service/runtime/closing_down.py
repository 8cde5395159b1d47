"""The last steps of an experiment that is put away: nothing that waits, no row, no key of a row."""

from __future__ import annotations

from contextlib import closing

from discreet.errors import InvalidInput
from discreet.service.runtime.release_transaction import burn as burn_batch
from discreet.service.runtime.release_transaction import destroy_keys
from discreet.service.secrets.vault import NAMES, Vault
from discreet.service.settings import Settings
from discreet.service.storage import document_table, journal
from discreet.service.storage.batches import under_way
from discreet.service.storage.database import Connection
from discreet.service.storage.locations import anchor_of, open_database


def refuse_under_way(connection: Connection) -> None:
    """An archive must not lose what callers were told is stored."""
    waiting = [batch.id for batch in under_way(connection)]
    if waiting:
        raise InvalidInput(
            f"experiment must have no batch under way to be archived; it has {len(waiting)}, the "
            f"first is batch {waiting[0]}. End it and wait for its releases, or give up what was "
            "stored and not released with the word burn."
        )


def close_down(settings: Settings, *, burn: bool) -> None:
    """Burn what waits if told so, then erase what upkeep had not erased yet; nobody serves it."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    anchor = anchor_of(settings)
    with closing(database.connect()) as connection:
        # A document that a dead process committed is confirmed before another one follows.
        anchor.confirm(document_table.committed(connection))
        if not burn:
            refuse_under_way(connection)
        for batch in under_way(connection):
            with database.transaction(connection):
                burn_batch(database, connection, vault, anchor, batch.id)
            anchor.confirm(document_table.committed(connection))
        destroy_keys(vault, connection)
        while (left := journal.left_over(connection)) is not None:
            with database.transaction(connection):
                journal.forget(connection, *left[:2])
        for place in vault.batches(NAMES):  # no request can come again
            vault.destroy(*place, NAMES)
        with database.transaction(connection):
            connection.execute("DELETE FROM names")
            connection.execute("UPDATE batches SET ended = NULL")
        database.erase(connection)
