"""The release: one transaction from the claim to the commit, and what follows it.

Lock → sealed and due by the database's clock → read → fit → noise → verify what the fit returned →
insert the release (its batch is a unique key) → insert the charge → delete the rows → state
released → commit. What is published is read from the committed row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.billboard.chain import Chain
from discreet.billboard.documents import burn_document, release_document
from discreet.errors import InvalidInput
from discreet.release import Release
from discreet.service import chain
from discreet.service.batches import COLUMNS, UNDER_WAY, BatchState
from discreet.service.database import Connection, Database
from discreet.service.journal import forget
from discreet.service.settings import Settings
from discreet.service.steps import step
from discreet.service.vault import Vault
from discreet.service.verifying import paid, verify


class Publisher:
    """Makes the releases that are due; several processes may try, and one succeeds.

    ``known`` is a verified chain, which may be behind the database.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        vault: Vault,
        known: Chain,
        fit: Callable[[int, int, int], Release],
        commit: Callable[[Callable[[Connection], Any]], Any],
        pause: Callable[[float], None],
    ) -> None:
        self._settings, self._database, self._vault = settings, database, vault
        self._known, self._fit, self._commit, self._pause = known, fit, commit, pause

    def release_next(self) -> bool:
        """Release the oldest batch whose window is over; whether there was one for us."""
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
        paid(connection, self._settings, batch)  # or no row is read
        return batch

    def _compute(self, batch: BatchState) -> Release:
        release = self._fit(batch.epoch, batch.id, batch.size)
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
        if releasable is None:  # released or burned meanwhile: what was fitted is dropped
            return False
        ledger = paid(connection, self._settings, batch)
        verify(connection, self._settings, self._known, batch, release, ledger)
        step("release:before-insert")
        document = release_document(chain.newest(connection), release)
        chain.append(connection, document, self._vault.signing, batch.id)
        step("release:after-insert")
        chain.charge(connection, document["number"], ledger)
        step("release:after-charge")
        forget(connection, *place)
        step("release:after-delete")
        finish(connection, batch, "released")
        connection.execute(f"UPDATE experiment SET clock = {self._database.now}")
        step("release:before-commit")
        return True


def finish(connection: Connection, batch: BatchState, state: str) -> None:
    """The batch is over."""
    connection.execute(
        "UPDATE batches SET state = ? WHERE epoch = ? AND id = ?", (state, batch.epoch, batch.id)
    )


def seconds_until(database: Database, connection: Connection, moment: float) -> float:
    """How far away a moment is, by the database's clock."""
    now = connection.execute(f"SELECT {database.now}").fetchone()[0]
    return moment - float(now)


def burn(database: Database, connection: Connection, vault: Vault, batch: int) -> bytes:
    """Give up a batch without a release: its rows are deleted, and the chain says so."""
    row = connection.execute(
        f"""SELECT {COLUMNS} FROM batches WHERE id = ? AND {UNDER_WAY}
            AND epoch = (SELECT epoch FROM experiment) {database.lock}""",
        (batch,),
    ).fetchone()
    if row is None:
        raise InvalidInput(
            f"batch must be open or waiting to be burned; batch {batch} is not. "
            "GET /v1/status names those that are."
        )
    found = BatchState(*row)
    body = chain.append(connection, burn_document(chain.newest(connection), [batch]), vault.signing)
    forget(connection, found.epoch, found.id)
    finish(connection, found, "burned")
    step("burn:before-commit")
    return body


def destroy_keys(vault: Vault, connection: Connection) -> None:
    """What is left of batches that are over cannot be read from here on, wherever a copy is."""
    over = connection.execute(
        "SELECT epoch, id FROM batches WHERE state IN ('released', 'burned')"
    ).fetchall()
    for epoch, batch in {tuple(row) for row in over} & set(vault.batches()):
        vault.destroy(epoch, batch)
        step("release:key-destroyed")
