"""Begin an experiment, check it before it is served, begin a new epoch after a restore."""

from __future__ import annotations

import json
from contextlib import closing

from discreet.billboard.documents import digest, genesis, restore_document
from discreet.billboard.keys import public_key
from discreet.encoding import canonical
from discreet.errors import StateClaimed
from discreet.service import access, chain
from discreet.service.anchor import Anchor, Mark
from discreet.service.batches import COLUMNS, UNDER_WAY, BatchState
from discreet.service.database import Connection, Database
from discreet.service.journal import forget
from discreet.service.migrations import migrate
from discreet.service.places import anchor_of, open_database
from discreet.service.publishing import finish
from discreet.service.settings import Settings, differing
from discreet.service.steps import step
from discreet.service.vault import Vault


def begin(settings: Settings) -> str:
    """Tables, secrets, document 0 and an admin key, whose text is returned."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    vault.create()
    document = genesis(
        settings.plan,
        settings.experiment,
        public_key(vault.signing),
        max_batches=settings.max_batches,
    )
    with closing(database.connect()) as connection:
        migrate(database, connection)
        with database.transaction(connection):
            if connection.execute("SELECT 1 FROM experiment").fetchone():
                raise StateClaimed(
                    "database must be empty for a new experiment; it holds one. "
                    "Serve it with discreet serve, or name another database."
                )
            connection.execute(
                f"INSERT INTO experiment VALUES (1, ?, ?, 1, ?, ?, NULL, {database.now})",
                (settings.experiment, _plan(settings), settings.mode, settings.holdback),
            )
            body = chain.append(connection, document, vault.signing)
            text, _ = access.create(database, connection, ["admin"], "first key")
    anchor_of(settings).ensure(Mark(1, 0, digest(body)))
    return text


def check(settings: Settings, database: Database, connection: Connection, anchor: Anchor) -> None:
    """Refuse to serve a database that is empty, of another plan, or behind its anchor."""
    migrate(database, connection)
    row = connection.execute("SELECT plan, clock FROM experiment").fetchone()
    if row is None:
        raise StateClaimed(
            "database must hold an experiment; it holds none. "
            "Begin it with discreet serve --init --config FILE."
        )
    if row[0] != _plan(settings):
        keys = differing(json.loads(row[0]), settings.fixed)
        raise StateClaimed(
            f"{', '.join(keys)} must stay as the experiment began; not so here. Put it back, or "
            "begin a new experiment with another database: what people were promised cannot change."
        )
    database.seen(float(row[1]))
    mark = anchor.newest()
    if mark is None or not _holds(connection, mark):
        raise StateClaimed(
            "database must hold everything that its anchor names; it does not. It was restored "
            "from a backup, or the vault is not its own: run discreet restore, or name the right "
            "vault. Going on would draw a second noise on rows that were released."
        )


def _holds(connection: Connection, mark: Mark) -> bool:
    found = connection.execute(
        "SELECT epoch, digest FROM documents WHERE number = ?", (mark.number,)
    ).fetchone()
    return found is not None and tuple(found) == (mark.epoch, mark.digest)


def restore(settings: Settings) -> list[int]:
    """Begin a new epoch: every batch under way is burned. Returns their numbers."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    anchor = anchor_of(settings)
    with database.guard(), closing(database.connect()) as connection:
        migrate(database, connection)
        with database.transaction(connection):
            row = connection.execute(
                f"SELECT plan, epoch FROM experiment {database.lock}"
            ).fetchone()
            if row is None or row[0] != _plan(settings):
                raise StateClaimed(
                    "database must hold the experiment of this file; it does not. "
                    "Name the database that was restored."
                )
            kept = chain.newest(connection)
            last = json.loads(kept)
            mark = anchor.newest() or Mark(last["epoch"], last["number"], digest(kept))
            if (mark.epoch, mark.number) < (last["epoch"], last["number"]):
                mark = Mark(last["epoch"], last["number"], digest(kept))
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM batches WHERE {UNDER_WAY} ORDER BY id"
            ).fetchall()
            burned = [BatchState(*each) for each in rows]
            document = restore_document(
                kept,
                epoch=mark.epoch + 1,
                number=mark.number + 1,
                previous=mark.digest,
                burned=[batch.id for batch in burned],
            )
            body = chain.append(connection, document, vault.signing)
            for batch in burned:
                forget(connection, batch.epoch, batch.id)
                finish(connection, batch, "burned")
            connection.execute("DELETE FROM replies")
            connection.execute("UPDATE experiment SET epoch = ?, serving = NULL", (mark.epoch + 1,))
            step("restore:before-commit")
        step("restore:committed")
        # Keys of batches that the backup does not know belong to rows that are gone.
        for epoch, id in vault.batches():
            vault.destroy(epoch, id)
        database.erase(connection)
    anchor.ensure(Mark(mark.epoch + 1, mark.number + 1, digest(body)))
    step("restore:anchored")
    return [batch.id for batch in burned]


def _plan(settings: Settings) -> str:
    """The plan with its unit and its number of batches, as the experiment's row keeps them."""
    return canonical(settings.fixed).decode()
