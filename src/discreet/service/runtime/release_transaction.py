"""Release of a batch: one transaction from the claim to the commit, and the checks in it.

Lock → sealed and due by the database's clock → read → fit → noise → verify what the fit returned →
insert the release (its batch is a unique key) → insert the charge → state released → intent in the
anchor → commit. What is published is read from the committed row and confirmed in the anchor. Rows
are deleted afterwards: how long that takes depends on how many answered, and the moment of a
release must not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from discreet.client.chain import Chain
from discreet.client.documents import burn_document, digest, release_document
from discreet.client.recomputation import misfit, misfit_of_parts
from discreet.errors import BudgetExceeded, CorruptRelease, DiscreetError, InvalidInput
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import SecureNoise
from discreet.releases.canonical import decode_array
from discreet.releases.prior import prior_of
from discreet.releases.release import Release
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage import document_table
from discreet.service.storage.anchor import Anchor
from discreet.service.storage.batches import COLUMNS, UNDER_WAY, BatchState
from discreet.service.storage.database import Commit, Connection, Database, step
from discreet.service.storage.journal import forget
from discreet.types import Array

LATE = "deadline"
"""Reason if a fit did not end in time. [fit_process.py]"""


class ReleaseRefused(DiscreetError):  # noqa: N818
    """A fit was refused; ``reason`` is one of a few words that reveal nothing about rows."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"release must be made in time, and have what plan, chain and ledger demand; this fit "
            f"did not: {reason}. No budget was spent and no row deleted: the service fits again."
        )
        self.reason = reason


def paid(connection: Connection, settings: Settings, batch: BatchState) -> Ledger:
    """Return the ledger after the charge for a batch, or raise ReleaseRefused."""
    event = SecureNoise().claim(settings.plan.event)
    # Privacy: the charge is computed here, from our plan and the committed charges; nothing from
    # the child enters it. [docs/privacy/service.md, "One fit for each batch"]
    part, control = document_table.part(batch.epoch, batch.id), settings.plan.control is not None
    try:
        ledger = document_table.ledger_of(connection, settings)
        return ledger.charge_batch(part, event, control)
    except BudgetExceeded:
        raise ReleaseRefused("budget") from None


def verify(
    connection: Connection,
    settings: Settings,
    known: Chain,
    batch: BatchState,
    release: Release,
    ledger: Ledger,
) -> None:
    """Refuse a release that does not continue the chain, or does not match plan and charge.

    A child that returns a wrong release spends no budget and deletes no row.
    """
    plan, committed = settings.plan, _committed(connection, known)
    before = committed.deciding.latest
    weights, blocks = release.predictor.weights, committed.blocks_at(batch.release)
    number, previous = (before.number + 1, before.digest) if before else (1, plan.digest)
    checks = {
        "budget": plan.budget == committed.budget,  # as the genesis promised
        "plan": release.plan_digest == plan.digest,
        "number": release.number == number,
        "previous": release.previous == previous,
        "records": release.records == batch.taken,
        "event": release.event == ledger.entries[-1].event,  # each part pays for the same
        "weights": weights.shape == (blocks, plan.features.p) and bool(np.isfinite(weights).all()),
        "gram": plan.policy.uses_radii <= (release.gram is not None),
    }
    for reason, holds in checks.items():
        if not holds:
            raise ReleaseRefused(reason)
    if (part := misfit_of_parts(plan, release)) is not None:
        raise ReleaseRefused(part.replace("_", " "))
    # Not recomputed: that needs all statistics, in the process that answers requests. Readers of
    # the published documents can recompute it. [docs/service.md, "What a release must fit"]
    if misfit(plan.pooling, _matrix(connection, committed), release, blocks):
        raise ReleaseRefused("statistics")


def _matrix(connection: Connection, committed: Chain) -> Array | None:
    """Return the matrix that the newest release published for this one; a chain in memory has none.

    Before the first release it is the matrix of the prior, if the genesis names one.
    """
    numbered = [(link.number, link.digest) for link in committed.links if link.release]
    if not numbered:
        prior = prior_of(committed.config)
        return None if prior is None else prior.following
    body = document_table.body(connection, numbered[-1][0])
    if body is None or digest(body) != numbered[-1][1]:
        raise ReleaseRefused("chain")
    matrix = json.loads(body)["release"].get("statistics", {}).get("following")
    return None if matrix is None else decode_array(matrix)


def _committed(connection: Connection, known: Chain) -> Chain:
    """Return the chain of the database; ``known``, its earlier part, is verified."""
    try:
        committed = known.extended(document_table.after(connection, known.number))
    except CorruptRelease:
        raise ReleaseRefused("chain") from None
    if committed.links[-1].digest != digest(document_table.newest(connection)):
        raise ReleaseRefused("chain")
    return committed


class Publisher:
    """Publisher of due releases; if several processes try, one succeeds.

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
        commit: Commit,
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
        paid(connection, self._settings, batch)  # ReleaseRefused before any row is read
        return batch

    def _compute(self, batch: BatchState) -> Release:
        release = self._fit(batch.epoch, batch.id, batch.taken)
        step("release:fitted")
        # The time of a release is public and reveals nothing about its rows: never before it is
        # due, no matter when the fit ended.
        while (wait := self._until(batch)) > 0:
            self._pause(min(wait, 1.0))
        return release

    def _until(self, batch: BatchState) -> float:
        query = f"SELECT {self._database.now}"
        return (batch.due or 0.0) - float(self._commit(lambda c: c.execute(query).fetchone()[0]))

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
        entry = document_table.entry_of(ledger, document_table.part(*place))
        document_table.charge(connection, mark.number, entry)
        step("release:after-charge")
        finish(self._database, connection, batch, "released")
        document_table.note_change(
            self._database, connection, "released", document=mark.number, batch=batch.id
        )
        connection.execute(f"UPDATE experiment SET clock = {self._database.later}")
        # The insert locks the number until the commit: of two intents with one number, at most one
        # belongs to a transaction that may still commit.
        self._anchor.intend(replace(mark, charge=entry))
        step("release:intended")
        return True


def finish(database: Database, connection: Connection, batch: BatchState, state: str) -> None:
    """End a batch; from now on the names of its requests are remembered."""
    connection.execute(
        f"UPDATE batches SET state = ?, ended = {database.now} WHERE epoch = ? AND id = ?",
        (state, batch.epoch, batch.id),
    )


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
    document_table.note_change(
        database, connection, "batch burned", by, document=mark.number, batch=found.id
    )
    forget(connection, found.epoch, found.id)
    step("burn:before-commit")
    anchor.intend(mark)
    step("burn:intended")


def destroy_keys(vault: Vault, connection: Connection) -> None:
    """Destroy the keys of batches that are over: no copy of their rows can be read any more."""
    query = f"SELECT epoch, id FROM batches WHERE NOT {UNDER_WAY}"
    over = {tuple(row) for row in connection.execute(query).fetchall()}
    epoch = connection.execute("SELECT epoch FROM experiment").fetchone()[0]
    for place in vault.batches():
        # A restore ended all earlier epochs, even batches that its database does not know.
        if place in over or place[0] < epoch:
            vault.destroy(*place)
            step("release:key-destroyed")
