"""Release of a batch: private rows in, one public release out, charged before it is fitted.

Learner, service, simulations and audits call ``release_batch``; stacks of simulated runs, which
have no ledger, call the ``fit_batch`` in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from discreet.batch import Batch
from discreet.oracles import Mechanism
from discreet.oracles.mechanisms.loss_sums import LossSums
from discreet.plan.plan import Plan
from discreet.privacy.events import Event
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import Noise
from discreet.releases.release import Release, publishable
from discreet.releases.released import Released


class Calibration(Protocol):
    """The calibrated numbers of a plan, or of a stack of plans."""

    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def event(self) -> Event: ...
    @property
    def loss_sums(self) -> LossSums | None: ...
    @property
    def guardrail_sums(self) -> LossSums | None: ...


def release_batch(
    plan: Plan, noise: Noise, batch: Batch, released: Released, ledger: Ledger, part: str = ""
) -> tuple[Release, Ledger]:
    """Return the next release, and the ledger after its charge on ``part`` of the records.

    Where ``released`` names its plan, the release is linked to the one before and rounded as its
    document is; a simulation publishes no document.
    """
    part = part or f"batch {len(released.items) + 1}"
    event = noise.claim(plan.event)
    charged = ledger.charge_batch(part, event, plan.control is not None)  # before data are read
    made = fit_batch(plan, noise, batch, released)
    if released.plan is not None:
        previous = released.latest.digest if released.latest else plan.digest
        made = publishable(replace(made, plan_digest=plan.digest, previous=previous))
    return made, charged


def fit_batch(plan: Calibration, noise: Noise, batch: Batch, released: Released) -> Release:
    """Return the release that a batch gives after ``released``; arrays may have leading axes."""
    # Privacy: the one place where private rows become a public release; the batch is fitted
    # once and then forgotten. [docs/privacy/transcript.md, "Proof"]
    number = len(released.items) + 1
    own = noise.for_batch(number)
    fit = plan.mechanism.fit(batch, own, released.statistics)
    losses = None if plan.loss_sums is None else plan.loss_sums.noisy_sums(batch, own)
    rails = None
    if plan.guardrail_sums is not None:
        rails = plan.guardrail_sums.noisy_guardrails(batch, own)
    event, sums = noise.claim(plan.event), {"part_losses": losses, "guardrails": rails}
    return Release.of(fit, number, batch.records, event=event, **sums)
