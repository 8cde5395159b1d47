"""The release: one transaction from the claim to the commit, and what follows it.

Lock → sealed and due by the database's clock → read → fit → noise → verify what the fit returned →
insert the release (its batch is a unique key) → insert the charge → state released → intent in the
anchor → commit. What is published is read from the committed row and confirmed in the anchor. Rows
are deleted afterwards: how long that takes depends on how many answered, and the moment of a
release must not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from discreet.client.chain import Chain
from discreet.client.documents import burn_document, release_document
from discreet.errors import InvalidInput
from discreet.releases.release import Release
from discreet.service.kill_points import step
from discreet.service.runtime.release_checks import paid, verify
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage import change_table, document_table
from discreet.service.storage.anchor import Anchor
from discreet.service.storage.batches import COLUMNS, UNDER_WAY, BatchState
from discreet.service.storage.database import Connection, Database
from discreet.service.storage.journal import forget


class Publisher:
    """Makes the releases that are due; if several processes try, one succeeds.

    ``known`` is a verified chain, which may be behind the database.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        vault: Vault,
        anchor: Anchor,
        known: Chain,
        fit: Callable[[int, int, int], Release],
        commit: Callable[[Callable[[Connection], Any]], Any],
        pause: Callable[[float], None],
    ) -> None:
        self._settings, self._database, self._vault = settings, database, vault
        self._anchor, self._known = anchor, known
        self._fit, self._commit, self._pause = fit, commit, pause

    def release_next(self) -> bool:
        """Release the oldest batch whose window is over; True if this process made a release."""
        with self._anchor.held():  # without an anchor the release could not be committed
            pass
        made = self._database.release(self._claim, self._compute, self._write, self._commit)
        if made:
            step("release:committed")
        return made

    def _claim(self, connection: Connection) -> BatchState | None:
        database = self._database
        # Batches are released in order: each release names the one before.
        row = connection.execute(
            f"""SELECT {COLUMNS} FROM batches WHERE state = 'sealed' AND closes <= {database.now}
                AND NOT EXISTS (SELECT 1 FROM batches AS earlier WHERE earlier.{UNDER_WAY}
                    AND (earlier.epoch, earlier.id) < (batches.epoch, batches.id))
                {database.claim}"""
        ).fetchone()
        if row is None:
            return None
        step("release:claimed")
        batch = BatchState(*row)
        paid(connection, self._settings, batch)  # Refused before any row is read
        return batch

    def _compute(self, batch: BatchState) -> Release:
        release = self._fit(batch.epoch, batch.id, batch.taken)
        step("release:fitted")
        # The moment of a release is public and tells nothing about its rows: never before it
        # is due, whenever the fit was done.
        while (wait := self._until(batch)) > 0:
            self._pause(min(wait, 1.0))
        return release

    def _until(self, batch: BatchState) -> float:
        return float(self._commit(lambda c: seconds_until(self._database, c, batch.due or 0.0)))

    def _write(self, connection: Connection, batch: BatchState, release: Release) -> bool:
        place = (batch.epoch, batch.id)
        releasable = connection.execute(
            f"""SELECT 1 FROM batches WHERE epoch = ? AND id = ? AND state = 'sealed'
                AND due <= {self._database.now} {self._database.lock}""",
            place,
        ).fetchone()
        if releasable is None:  # released or burned meanwhile: drop the fit
            return False
        ledger = paid(connection, self._settings, batch)
        verify(connection, self._settings, self._known, batch, release, ledger)
        step("release:before-insert")
        document = release_document(document_table.newest(connection), release)
        mark = document_table.append(connection, document, self._vault.signing, batch.id)
        step("release:after-insert")
        payers = document_table.parts(self._settings.plan, batch.epoch, batch.id)
        entry = document_table.entry_of(ledger, len(payers))
        document_table.charge(connection, mark.number, entry)
        step("release:after-charge")
        finish(self._database, connection, batch, "released")
        change_table.note(
            self._database, connection, "released", document=mark.number, batch=batch.id
        )
        connection.execute(f"UPDATE experiment SET clock = {self._database.later}")
        # The insert holds the number until the commit: two intents of one number never both
        # belong to transactions that may yet commit.
        self._anchor.intend(replace(mark, charge=entry))
        step("release:intended")
        return True


def finish(database: Database, connection: Connection, batch: BatchState, state: str) -> None:
    """End a batch; from now on the names of its requests are remembered."""
    connection.execute(
        f"UPDATE batches SET state = ?, ended = {database.now} WHERE epoch = ? AND id = ?",
        (state, batch.epoch, batch.id),
    )


def seconds_until(database: Database, connection: Connection, moment: float) -> float:
    """Seconds until a moment, by the clock of the database."""
    now = connection.execute(f"SELECT {database.now}").fetchone()[0]
    return moment - float(now)


def burn(
    database: Database,
    connection: Connection,
    vault: Vault,
    anchor: Anchor,
    batch: int,
    by: str = "",
) -> None:
    """Give up a batch without a release: delete its rows, and record that in the chain."""
    row = connection.execute(
        f"""SELECT {COLUMNS} FROM batches WHERE id = ? AND {UNDER_WAY}
            AND epoch = (SELECT epoch FROM experiment) {database.lock}""",
        (batch,),
    ).fetchone()
    if row is None:
        raise InvalidInput(
            f"batch must be open or waiting to be burned; batch {batch} is not. "
            "GET /v1/status lists the open and waiting batches."
        )
    found = BatchState(*row)
    mark = document_table.append(
        connection, burn_document(document_table.newest(connection), [batch]), vault.signing
    )
    finish(database, connection, found, "burned")
    change_table.note(
        database, connection, "batch burned", by, document=mark.number, batch=found.id
    )
    forget(connection, found.epoch, found.id)
    step("burn:before-commit")
    anchor.intend(mark)
    step("burn:intended")


def destroy_keys(vault: Vault, connection: Connection) -> None:
    """Destroy the keys of batches that are over: no copy of their rows can be read any more."""
    over = {
        tuple(row)
        for row in connection.execute(
            f"SELECT epoch, id FROM batches WHERE NOT {UNDER_WAY}"
        ).fetchall()
    }
    epoch = connection.execute("SELECT epoch FROM experiment").fetchone()[0]
    for place in vault.batches():
        # A restore ended all earlier epochs, even batches that its database does not know.
        if place in over or place[0] < epoch:
            vault.destroy(*place)
            step("release:key-destroyed")
