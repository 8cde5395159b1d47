"""Check what a fit returned against plan, chain and ledger, before anything is written.

A child that returns a wrong release spends no budget and deletes no row.
"""

from __future__ import annotations

import json

import numpy as np

from discreet.client.chain import Chain
from discreet.client.documents import digest
from discreet.client.recomputation import misfit, misfit_of_parts
from discreet.errors import BudgetExceeded, CorruptRelease, DiscreetError
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import SecureNoise
from discreet.releases.canonical import decode_array
from discreet.releases.prior import prior_of
from discreet.releases.release import Release
from discreet.service.settings import Settings
from discreet.service.storage import document_table
from discreet.service.storage.batches import BatchState
from discreet.service.storage.database import Connection
from discreet.types import Array

LATE = "deadline"
"""The reason if a fit did not end in time. [fit_process.py]"""


class Refused(DiscreetError):  # noqa: N818
    """A release was refused; ``reason`` is one of a few words that reveal nothing about rows."""

    def __init__(self, reason: str) -> None:
        wrong = (
            f"release must have the {reason} that plan, chain and ledger demand; the fit returned "
            "another."
        )
        if reason == LATE:
            wrong = "fit must end within its deadline; it did not, and was ended."
        super().__init__(f"{wrong} No budget was spent and no row deleted: the service fits again.")
        self.reason = reason


def paid(connection: Connection, settings: Settings, batch: BatchState) -> Ledger:
    """The ledger after the charge for a batch, computed from our own plan; or Refused."""
    event = SecureNoise().claim(settings.plan.event)
    # Privacy: the charge is computed here, from our plan and the committed charges; nothing from
    # the child enters it. [docs/privacy/service.md, "One fit for each batch"]
    try:
        ledger = document_table.ledger_of(connection, settings)
        for part in document_table.parts(settings.plan, batch.epoch, batch.id):
            ledger = ledger.charge(part, event)
        return ledger
    except BudgetExceeded:
        raise Refused("budget") from None


def verify(
    connection: Connection,
    settings: Settings,
    known: Chain,
    batch: BatchState,
    release: Release,
    ledger: Ledger,
) -> None:
    """Refuse a release that does not continue our chain, or is not what the plan paid for."""
    plan, committed = settings.plan, _committed(connection, known)
    before = committed.deciding.latest
    weights, blocks = release.predictor.weights, committed.blocks_at(batch.release)
    checks = {
        "budget": plan.budget == committed.budget,  # as the genesis promised
        "plan": release.plan_digest == plan.digest,
        "number": release.number == (before.number if before else 0) + 1,
        "previous": release.previous == (before.digest if before else plan.digest),
        "records": release.records == batch.taken,
        "event": release.event == ledger.entries[-1].event,  # each part pays for the same
        "weights": weights.shape == (blocks, plan.features.p) and bool(np.isfinite(weights).all()),
        "gram": plan.policy.uses_radii <= (release.gram is not None),
    }
    for reason, holds in checks.items():
        if not holds:
            raise Refused(reason)
    if misfit_of_parts(plan.loss_sums, release):
        raise Refused("part losses")
    # Not recomputed: that needs all statistics, in the process that answers requests. Everyone
    # else can, from what is published. [docs/service.md, "What a release must fit"]
    if misfit(plan.mechanism, _matrix(connection, committed), release, blocks):
        raise Refused("statistics")


def _matrix(connection: Connection, committed: Chain) -> Array | None:
    """The matrix that the newest release published for this one; a chain in memory has none.

    Before the first release it is that of the prior, if the genesis names one.
    """
    numbered = [(link.number, link.digest) for link in committed.links if link.release]
    if not numbered:
        prior = prior_of(committed.config)
        return None if prior is None else prior.following
    body = document_table.body(connection, numbered[-1][0])
    if body is None or digest(body) != numbered[-1][1]:
        raise Refused("chain")
    matrix = json.loads(body)["release"].get("statistics", {}).get("following")
    return None if matrix is None else decode_array(matrix)


def _committed(connection: Connection, known: Chain) -> Chain:
    """The chain as the database holds it now; ``known``, its earlier part, is verified."""
    try:
        committed = known.extended(document_table.after(connection, known.number))
    except CorruptRelease:
        raise Refused("chain") from None
    if committed.links[-1].digest != digest(document_table.newest(connection)):
        raise Refused("chain")
    return committed
