"""Every event against what it covers: blocks that a record touches, noise that is really added.

Ten actions, so that a charge for one block in place of A shows. How many blocks a record moves, Λ,
and the scale of each noise are read off the shipped fit; what one record costs follows from these
numbers alone, through dp_accounting, and must be within the claim. So must the sums of losses and
of guardrails of policy and control together with the fit.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.audit.finding import (
    ROUNDING,
    Finding,
    computed,
    exact_verdict,
    gaussian_epsilon,
    worst,
)
from discreet.audit.gaussian import (
    GaussianRelease,
    diameter,
    distance_verdict,
    releases_of,
    shift_of,
)
from discreet.audit.noise_sources import Chosen, choice_of
from discreet.audit.objective import Objective
from discreet.audit.second_accountant import AGREE, epsilon_of
from discreet.audit.subjects import Subject
from discreet.batch import Batch
from discreet.batches.release_batch import release_batch
from discreet.design.control import Control
from discreet.design.outcome import Guardrail
from discreet.oracles.contract import Mechanism
from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.privacy.events import event_json
from discreet.privacy.ledger import Ledger
from discreet.types import JsonObject, NumpyArray

MANY = 10
_LEADING = 4.0 * math.exp(-0.5) / math.sqrt(2.0 * math.pi) / 48.0
"""Total variation between discrete and rounded Gaussians, times σ²: the leading term."""
_BEND = 0.25
"""The largest second derivative of the logistic loss."""


def covered(subject: Subject) -> Finding:
    """Compare the cost of a record, from the noise it meets, with the event and the claim."""
    subject = replace(subject, actions=MANY)
    largest, holds = 0.0, True
    for policy in subject.policies:
        plan = subject.plan(policy)
        delta = plan.budget.delta
        declared = epsilon_of([event_json(plan.mechanism.event)], delta)
        found = _cost(subject, plan.mechanism, delta)
        holds &= found <= min(declared, subject.epsilon) * (1.0 + AGREE)
        holds &= _sampler_is_paid(subject, plan.mechanism)
        largest = max(largest, found)
    return computed(
        subject,
        f"cost of all that a record touches, of {MANY} actions",
        holds,
        f"a record costs, by the blocks that it moves and their noise, {largest:.4f}",
        exact=largest,
    )


def _cost(subject: Subject, mechanism: Mechanism, delta: float) -> float:
    if subject.mechanism == "finite":
        return _choice_cost(subject, mechanism)
    if subject.ridge:
        # The worst pair of records, in deviations of the noise; its sampler's share of δ is small.
        return gaussian_epsilon(releases_of(subject).distance(*subject.worst_pair()), delta)
    return _objective_cost(subject, mechanism, delta)


def _sampler_is_paid(subject: Subject, mechanism: Any) -> bool:
    """Each coordinate that a record moves costs the distance of a discrete Gaussian, if it is one.

    [docs/privacy/arithmetic.md, "What δ pays for it"]
    """
    if not subject.ridge or subject.mechanism == "ridge-paper":
        return True
    seen = releases_of(subject)
    one, two = (
        seen.mean(subject.record(context, loss, action))
        for context, loss, action in (([0.3, 0.4], 0.9, 0), ([-0.5, 0.2], 0.2, 1))
    )
    moved = np.flatnonzero(one != two)
    noise = seen.sigma[moved] * GRID**2  # in steps that are no coarser than those of the sums
    if subject.stretched:  # there a step off the diagonal is √2 in svec
        noise = noise / math.sqrt(2.0)
    distance = float((_LEADING / noise**2).sum())
    return distance <= float(mechanism.event.sampler_distance)


def _choice_cost(subject: Subject, mechanism: Mechanism) -> float:
    """Twice the largest move of a score over the scale of the choice."""
    batches = *subject.worst_pair(), subject.record([0.0], 0.0, None)
    made = [choice_of(mechanism, batch) for batch in batches]
    moved = np.ptp([each.scores for each in made], axis=0).max()
    return float(2.0 * moved / min(each.scale for each in made))


def _objective_cost(subject: Subject, mechanism: Any, delta: float) -> float:
    """Each touched block of the objective, the solver's error, and the Gram where it is released.

    [docs/privacy/logistic.md]
    """
    objective = Objective(subject, 1, mechanism)
    # Another loss moves so many blocks: 1, or all A with full information.
    one, two = (objective.fit(subject.record([1.0], loss)) for loss in (0.0, 1.0))
    touched = int((np.abs(one - two).max(axis=-1) > 0.0).sum())
    slope, bend = 2.0 / objective.scale, math.log1p(_BEND / objective.ridge)
    parts: list[JsonObject] = []
    pure = 0.0
    if objective.gaussian:
        curve = {"kappa": bend, "shift": slope, "blocks": touched}
        parts.append({"kind": "ObjectivePerturbation", "noise": "gaussian", **curve})
        parts.append(_gaussian_event(objective.solver_share))
    elif objective.joint:  # Chaudhuri et al. count the determinant twice
        pure = touched * (slope + 2.0 * bend)
    else:
        paid = objective.ridge >= (1.0 - ROUNDING) * 2.0 / slope  # the slope pays for the bend
        pure = touched * (slope if paid else slope + bend)
        pure += objective.solver_share or math.inf
    if mechanism.problem.radii:  # features at right angles lie furthest apart
        records = subject.record([1.0], 1.0), subject.record([-1.0], 1.0)
        distance = GaussianRelease(subject.calibrated_with_gram).distance(*records)
        parts.append(_gaussian_event(distance))
    return pure + (epsilon_of(parts, delta) if parts else 0.0)


def _gaussian_event(shift: float) -> JsonObject:
    multiplier = 1.0 / shift if shift else 1e-9  # without any noise no ε holds
    return {"kind": "Gaussian", "multiplier": multiplier or 1e-9, "sampler_distance": 0.0}


ANSWERS = (0.0, 0.5, 1.0, None)
"""Losses, and silence; a squared distance is convex in losses, so its largest is at their ends."""
Record = tuple[float | None, ...]
"""Answers of one person: the loss, and guardrails."""


def exact_guardrails(subject: Subject) -> Finding:
    """The same with the sums of three guardrails, all of which one record may move."""
    return exact_parts(subject, (0.0, 1.0, None), tuple(map(Guardrail, "abc")))


def exact_parts(
    subject: Subject, answers: Record = ANSWERS, rails: tuple[Guardrail, ...] = ()
) -> Finding:
    """The largest move of both parts' sums compared with the declared one, and the total ε."""
    plan = subject.plan(control=Control(0.5), guardrails=rails or None)
    records: list[Record] = list(itertools.product(answers, repeat=1 + len(rails)))
    silent: Record = (None,) * (1 + len(rails))
    still = _part_sums(plan, silent, silent)
    columns = []
    for draw in np.eye(still.size):
        shaped = {"part losses": draw[:4].reshape(2, 2), "guardrails": draw[4:].reshape(-1, 2, 2)}
        columns.append(_part_sums(plan, silent, silent, Chosen(shaped)) - still)
    covariance = np.array(columns).T @ np.array(columns)
    # One record is replaced, in its part.
    policy = [_part_sums(plan, each, records[0]) for each in records]
    control = [_part_sums(plan, records[0], each) for each in records]
    found = max(diameter(policy, covariance), diameter(control, covariance))
    sums = [each.event for each in (plan.guardrail_sums, plan.loss_sums) if each is not None]
    declared = math.hypot(*map(shift_of, sums))
    exact = gaussian_epsilon(math.hypot(shift_of(plan.mechanism.event), found), plan.budget.delta)
    # The ledger charges what is declared; it must not be less than what a record costs.
    charged = exact_verdict(exact, epsilon_of([event_json(plan.event)], plan.budget.delta))
    within = exact_verdict(exact, subject.epsilon)
    return computed(
        subject,
        "guardrails of policy and control" if rails else "losses of policy and control",
        worst([distance_verdict(found, declared), charged, within]),
        f"one record moves them by {found:.5f} standard deviations at most, {declared:.5f} are "
        "declared; ε is that of fit and sums together",
        exact=exact,
    )


def _part_sums(
    plan: Plan, policy: Record, control: Record, noise: Chosen | None = None
) -> NumpyArray:
    """The sums in a release of two records, who answer this: of losses, and of guardrails."""
    answers = np.array([policy, control], dtype=float)  # None becomes NaN
    losses = np.repeat(np.nan_to_num(answers[:, :1]), plan.n_actions, axis=1)
    observed = np.zeros(losses.shape, dtype=bool)
    # Guardrails count where their record does, and the loss of a record may be missing.
    observed[:, 0] = ~np.isnan(answers[:, 0])
    features = plan.features.map(np.zeros((2, plan.features.p - 1)))
    batch = Batch(features, losses, observed, np.array([False, True]), answers[:, 1:])
    unpaid = Ledger(Budget.none())
    made, _ = release_batch(plan, noise or Chosen(), batch, plan.nothing_released(), unpaid)
    found = [each.sums for each in (made.part_losses, made.guardrails) if each is not None]
    return np.concatenate([np.asarray(sums).reshape(-1) for sums in found])
