"""``release_batch()``: private rows in, one release out, charged before it is fitted.

Learner, service, simulation and audits all call this function.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.batch import Batch
from discreet.plan.plan import Plan
from discreet.privacy.ledger import Ledger, partitions
from discreet.privacy.noise import Noise
from discreet.releases.release import Release, publishable
from discreet.releases.released import Released


def release_batch(
    plan: Plan, noise: Noise, batch: Batch, released: Released, ledger: Ledger, part: str = ""
) -> tuple[Release, Ledger]:
    """Return the next release, and the ledger after its charge on ``part`` of the records.

    A control share splits this part in two, which are charged equally.
    """
    number = len(released.items) + 1
    event = noise.claim(plan.event)
    charged = ledger
    for each in partitions(part or f"batch {number}", plan.control is not None):
        charged = charged.charge(each, event)  # before any data are read
    # Privacy: the one place where private rows become a public release; the batch is fitted
    # once and then forgotten. [docs/privacy/transcript.md, "Proof"]
    own = noise.for_batch(number)
    fit = plan.mechanism.fit(batch, own, released.statistics)
    previous = released.latest.digest if released.latest else plan.digest
    made = Release.of(
        fit, number, batch.records, event=event, plan_digest=plan.digest, previous=previous
    )
    if plan.loss_sums is not None:
        made = replace(made, part_losses=plan.loss_sums.told(batch, own))
    return publishable(made), charged
