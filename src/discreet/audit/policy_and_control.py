"""What releases tell of policy and control, exactly: how far one record can move it.

A release of two records, one of each part, is asked of the door with one draw of noise at a time,
which tells the covariance, and without noise for every pair of answers, which tells the move.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from discreet.audit.confidence_bounds import gaussian_epsilon
from discreet.audit.finding import FAILS, HOLDS, WEAK, Finding, exact_verdict, worst
from discreet.audit.gaussian import TIGHT, shift_of
from discreet.audit.noise_sources import Chosen
from discreet.audit.subjects import Subject
from discreet.control import Control
from discreet.plan import Plan
from discreet.privacy.budget import Budget
from discreet.privacy.ledger import Ledger
from discreet.private_release import private_release
from discreet.rows.batch import Batch

ANSWERS = (0.0, 0.5, 1.0, None)
"""Losses, and silence; a squared distance is convex in losses, so its largest is at their ends."""
_DRAW = "part losses"


def exact_parts(subject: Subject) -> Finding:
    """The largest move of the sums of both parts beside the declared one, and what all costs."""
    plan = subject.plan(control=Control(0.5))
    assert plan.loss_sums is not None
    still = _told(plan, None, None)
    columns = []
    for draw in np.eye(4).reshape(4, 2, 2):
        columns.append(_told(plan, None, None, Chosen({_DRAW: draw})) - still)
    covariance = np.array(columns).T @ np.array(columns)
    worlds = {each: _told(plan, *each) for each in itertools.product(ANSWERS, ANSWERS)}
    found = max(
        _distance(covariance, worlds[one] - worlds[two])
        for one, two in itertools.product(worlds, repeat=2)
        if (one[0] == two[0]) != (one[1] == two[1])  # one record is replaced, in its part
    )
    declared = shift_of(plan.loss_sums.event)
    fit = shift_of(plan.mechanism.event)
    exact = gaussian_epsilon(math.hypot(fit, found), plan.budget.delta)
    tight = WEAK if found < TIGHT * declared else HOLDS
    beyond = FAILS if exact_verdict(found, declared) == FAILS else tight
    return Finding(
        "exact",
        subject.name,
        "losses of policy and control",
        worst([beyond, exact_verdict(exact, subject.epsilon)]),
        f"one record moves them by {found:.5f} standard deviations at most, {declared:.5f} are "
        "declared; ε is that of fit and sums together",
        claimed=subject.epsilon,
        exact=exact,
        level=subject.epsilon,
    )


def _told(plan: Plan, policy: Any, control: Any, noise: Chosen | None = None) -> Any:
    """The four numbers of a release of two records, who answer this."""
    answers = [policy, control]
    losses = np.array([[answer or 0.0] * plan.n_actions for answer in answers])
    observed = np.zeros(losses.shape, dtype=bool)
    observed[:, 0] = [answer is not None for answer in answers]
    features = plan.features.map(np.zeros((2, plan.features.p - 1)))
    batch = Batch(features, losses, observed, np.array([False, True]))
    unpaid = Ledger(Budget.none())
    made, _ = private_release(plan, noise or Chosen(), batch, plan.nothing_released(), unpaid)
    assert made.part_losses is not None
    return made.part_losses.sums.reshape(4)


def _distance(covariance: Any, moved: Any) -> float:
    """Standard deviations; ∞ if something moves that has no noise."""
    if np.linalg.matrix_rank(covariance) < len(moved):
        return math.inf if np.any(moved) else 0.0
    return float(math.sqrt(moved @ np.linalg.solve(covariance, moved)))
