"""Every event against what it covers: blocks that a record touches, noise that is really added.

Ten actions, so that a charge for one block in place of A shows. How many blocks a record moves, Λ,
and the scale of each noise are read off the shipped fit; what one record costs follows from these
numbers alone, through dp_accounting, and must be within the claim. So must the loss sums of policy
and control together with the fit.
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
from discreet.audit.gaussian import GaussianRelease, distance_verdict, shift_of
from discreet.audit.noise_sources import Chosen
from discreet.audit.objective import Objective
from discreet.audit.second_accountant import AGREE, epsilon_of
from discreet.audit.subjects import Subject
from discreet.batch import Batch
from discreet.batches.release_batch import release_batch
from discreet.design.control import Control
from discreet.oracles.contract import Mechanism
from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.oracles.mechanisms.newton import TOLERANCE
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
    largest, kept = 0.0, True
    for policy in subject.policies:
        plan = subject.plan(policy)
        delta = plan.budget.delta
        declared = epsilon_of([event_json(plan.mechanism.event)], delta)
        found = _cost(subject, plan.mechanism, delta)
        kept &= found <= min(declared, subject.epsilon) * (1.0 + AGREE)
        kept &= _sampler_is_paid(subject, plan.mechanism)
        largest = max(largest, found)
    return computed(
        subject,
        f"cost of all that a record touches, of {MANY} actions",
        kept,
        f"a record costs, by the blocks that it moves and their noise, {largest:.4f}",
        exact=largest,
    )


def _cost(subject: Subject, mechanism: Mechanism, delta: float) -> float:
    if subject.mechanism == "finite":
        return _choice_cost(subject, mechanism)
    if subject.ridge:
        # The worst pair of records, in deviations of the noise; its sampler's share of δ is small.
        return gaussian_epsilon(GaussianRelease(subject).distance(*subject.worst_pair()), delta)
    return _objective_cost(subject, mechanism, delta)


def _sampler_is_paid(subject: Subject, mechanism: Any) -> bool:
    """Each coordinate that a record moves costs the distance of a discrete Gaussian, if it is one.

    [docs/privacy/arithmetic.md, "What δ pays for it"]
    """
    if not subject.ridge or subject.mechanism == "ridge-paper":
        return True
    seen = GaussianRelease(subject)
    one, two = (
        seen.mean(subject.record(context, loss, action))
        for context, loss, action in (([0.3, 0.4], 0.9, 0), ([-0.5, 0.2], 0.2, 1))
    )
    moved = np.flatnonzero(one != two)
    noise = seen.read.sigma[moved] * GRID**2  # in steps that are no coarser than those of the sums
    if subject.stretched:  # there a step off the diagonal is √2 in svec
        noise = noise / math.sqrt(2.0)
    distance = float((_LEADING / noise**2).sum())
    return distance <= float(mechanism.event.sampler_distance)


def _choice_cost(subject: Subject, mechanism: Mechanism) -> float:
    """Twice the largest move of a score over the scale of the choice."""
    fits = []
    for batch in (*subject.worst_pair(), subject.record([0.0], 0.0, None)):
        noise = Chosen()
        mechanism.fit(batch, noise)
        fits.append(noise)
    moved = max(float(np.abs(one.scores - two.scores).max()) for one in fits for two in fits)
    return 2.0 * moved / min(each.scale for each in fits)


def _objective_cost(subject: Subject, mechanism: Any, delta: float) -> float:
    """Each touched block of the objective, the solver's error, and the Gram where it is released.

    [docs/privacy/logistic.md]
    """
    objective = Objective(subject, 1, mechanism)
    touched = _touched(subject, objective)
    bend = math.log1p(_BEND / objective.ridge)
    error = 2.0 * TOLERANCE / objective.ridge
    parts: list[JsonObject] = []
    pure = 0.0
    if objective.gaussian:
        shift = 2.0 / objective.scale
        parts.append(_objective_event(shift, bend, touched))
        parts.append(_gaussian_event(error, objective.output))
    elif objective.joint:  # Chaudhuri et al. count the determinant twice
        pure = touched * (2.0 / objective.scale + 2.0 * bend)
    else:
        slope = 2.0 / objective.scale
        paid = objective.ridge >= (1.0 - ROUNDING) * 2.0 / slope  # the slope pays for the bend
        pure = touched * (slope if paid else slope + bend)
        pure += error / objective.output if objective.output else math.inf
    if mechanism.problem.radii:
        parts.append(_gram_event(subject))
    return pure + (epsilon_of(parts, delta) if parts else 0.0)


def _touched(subject: Subject, objective: Objective) -> int:
    """The number of blocks that another loss moves: 1, or all A with full information."""
    one, two = (objective.fit(subject.record([1.0], loss)) for loss in (0.0, 1.0))
    return int((np.abs(one - two).max(axis=-1) > 0.0).sum())


def _objective_event(shift: float, kappa: float, blocks: int) -> JsonObject:
    return {
        "kind": "ObjectivePerturbation",
        "noise": "gaussian",
        "kappa": kappa,
        "shift": shift,
        "blocks": blocks,
    }


def _gaussian_event(moved: float, deviation: float) -> JsonObject:
    multiplier = deviation / moved
    return {"kind": "Gaussian", "multiplier": multiplier or 1e-9, "sampler_distance": 0.0}


def _gram_event(subject: Subject) -> JsonObject:
    """Features at right angles lie furthest apart."""
    apart = GaussianRelease(subject, gram_only=True).distance(
        subject.record([1.0], 1.0), subject.record([-1.0], 1.0)
    )
    return _gaussian_event(apart, 1.0)


ANSWERS = (0.0, 0.5, 1.0, None)
"""Losses, and silence; a squared distance is convex in losses, so its largest is at their ends."""
_DRAW = "part losses"


def exact_parts(subject: Subject) -> Finding:
    """The largest move of both parts' sums compared with the declared one, and the total ε."""
    plan = subject.plan(control=Control(0.5))
    assert plan.loss_sums is not None
    still = _part_sums(plan, None, None)
    columns = []
    for draw in np.eye(4).reshape(4, 2, 2):
        columns.append(_part_sums(plan, None, None, Chosen({_DRAW: draw})) - still)
    covariance = np.array(columns).T @ np.array(columns)
    worlds = {each: _part_sums(plan, *each) for each in itertools.product(ANSWERS, ANSWERS)}
    found = max(
        _distance(covariance, worlds[one] - worlds[two])
        for one, two in itertools.product(worlds, repeat=2)
        if (one[0] == two[0]) != (one[1] == two[1])  # one record is replaced, in its part
    )
    declared = shift_of(plan.loss_sums.event)
    fit = shift_of(plan.mechanism.event)
    exact = gaussian_epsilon(math.hypot(fit, found), plan.budget.delta)
    return computed(
        subject,
        "losses of policy and control",
        worst([distance_verdict(found, declared), exact_verdict(exact, subject.epsilon)]),
        f"one record moves them by {found:.5f} standard deviations at most, {declared:.5f} are "
        "declared; ε is that of fit and sums together",
        exact=exact,
    )


def _part_sums(
    plan: Plan, policy: float | None, control: float | None, noise: Chosen | None = None
) -> NumpyArray:
    """The four numbers of a release of two records, who answer this."""
    answers = [policy, control]
    losses = np.array([[answer or 0.0] * plan.n_actions for answer in answers])
    observed = np.zeros(losses.shape, dtype=bool)
    observed[:, 0] = [answer is not None for answer in answers]
    features = plan.features.map(np.zeros((2, plan.features.p - 1)))
    batch = Batch(features, losses, observed, np.array([False, True]))
    unpaid = Ledger(Budget.none())
    made, _ = release_batch(plan, noise or Chosen(), batch, plan.nothing_released(), unpaid)
    assert made.part_losses is not None
    return np.asarray(made.part_losses.sums).reshape(4)


def _distance(covariance: NumpyArray, moved: NumpyArray) -> float:
    """Standard deviations; ∞ if something moves that has no noise."""
    if np.linalg.matrix_rank(covariance) < len(moved):
        return math.inf if np.any(moved) else 0.0
    return float(math.sqrt(moved @ np.linalg.solve(covariance, moved)))
