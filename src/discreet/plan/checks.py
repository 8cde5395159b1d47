"""Checks of a plan, made when it is created, before the first person arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.design.control import Control
from discreet.design.outcome import Loss, Reward
from discreet.design.schedule import LONGEST
from discreet.errors import InvalidInput
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.privacy.accounting import epsilon, person_event
from discreet.privacy.budget import Budget, Participation
from discreet.privacy.events import Event
from discreet.releases.prior import Prior, shared_digest
from discreet.text import advise
from discreet.validate import in_range, instance, one_of, positive

if TYPE_CHECKING:
    from discreet.plan.plan import Plan

USABLE = 30.0
"""Up to this ε every Gaussian release uses all of it."""
UNITS = ("decision", "user")
"""Units that learner and service enforce, so that a plan may promise them."""


def refuse_wrong_kinds(plan: Plan) -> None:
    """Parts of another type, and words that are not known."""
    instance("outcome", plan.outcome, (Loss, Reward), "Write Reward(low, high), a range.")
    kinds = (UnitBall, Schema, Joint)
    step = "Pass UnitBall(dimension), or Schema([...]) with its fields."
    instance("features", plan.features, kinds, step)
    instance("budget", plan.budget, (Budget,), "Pass Budget(1.0, delta=1e-5), or Budget.none().")
    plan.refuse_unregistered()
    one_of("feedback", plan.feedback, ("bandit", "full"))
    one_of("losses", plan.losses, ("general", "one_label"))
    one_of("releases", plan.releases, ("automatic", "on_request"))
    if plan.unit not in UNITS:
        # Privacy: a unit is a promise, so only units that are enforced may be named.
        # [docs/privacy/threat-model.md, "Several records of one person"]
        raise InvalidInput(
            f"unit must be {' or '.join(map(repr, UNITS))}; got {plan.unit!r}. "
            "A plan may promise only what is enforced: leave unit out, or write unit='user'."
        )


def refuse_what_does_not_fit(plan: Plan) -> None:
    """Parts that contradict each other, and what cannot be calibrated."""
    counts = (plan.batches_per_user, plan.records_per_batch)
    if counts != (None, None) and plan.unit != "user":
        raise InvalidInput(
            "batches_per_user and records_per_batch must be given only with unit='user'; got "
            f"{counts[0]!r} and {counts[1]!r} with unit={plan.unit!r}. Leave both out, or "
            "write unit='user'."
        )
    _ = plan.participation  # checks both
    _ = plan.schedule  # checks its numbers
    if plan.missing_loss is not None and plan.feedback == "full":
        raise InvalidInput(
            f"missing_loss must be None with full feedback; got {plan.missing_loss!r}. "
            "One number cannot replace a row of losses: a record without losses stays void."
        )
    if plan.losses == "one_label" and plan.feedback != "full":
        raise InvalidInput(
            "losses must be 'general' with bandit feedback; got 'one_label'. "
            "One loss per record has no label structure: leave losses out."
        )
    if plan.policy.needs_bounded_losses and not plan.oracle.bounded:
        raise InvalidInput(
            f"oracle must predict losses in [0, 1] for {type(plan.policy).__name__}; "
            f"got {type(plan.oracle).__name__}. Use PooledRidge, Logistic or FiniteClass."
        )
    if plan.prior is not None:
        _check_prior(plan, plan.prior)
    _check_joint_features(plan)
    if plan.floor is not None and not in_range("floor", plan.floor, 0.0, 1.0) > 0.0:
        raise InvalidInput("floor must be above 0; got 0. Leave it out.")
    if plan.control is not None:
        _check_control(plan, plan.control)
    if plan.guardrails is not None or plan.guardrails_share is not None:
        _check_guardrails(plan)
    if plan.participation is not None and plan.budget.private:
        _refuse_what_costs_a_person_too_much(plan, plan.participation)
    _ = plan.event  # calibrates
    schedule = plan.schedule
    log = [schedule.length(number + 1) for number in range(schedule.imported_batches)]
    if max(log, default=0) > LONGEST and not plan.summable:
        raise InvalidInput(
            f"longest_batch must be at most {LONGEST:,} where {type(plan.oracle).__name__} fits a "
            f"log, since it reads all rows of a batch at once; the log has a batch of "
            f"{max(log):,}. Write longest_batch={LONGEST}, or use PooledRidge."
        )


def _check_joint_features(plan: Plan) -> None:
    """Joint features and a catalogue belong together, and need bandit feedback."""
    joint, catalogue = plan.features, plan.catalogue
    if isinstance(joint, Joint) != (catalogue is not None):
        raise InvalidInput(
            "features must be Joint exactly where actions are a Catalogue; got "
            f"{type(joint).__name__} and {type(plan.actions).__name__}. "
            "Write Plan(actions=Catalogue(schema, items), features=Joint(context, schema))."
        )
    if catalogue is None or not isinstance(joint, Joint):
        return
    if joint.action != catalogue.schema:
        raise InvalidInput(
            "features.action must be the schema of the catalogue; got another one. "
            "Pass the same schema to both, or features= without Joint."
        )
    if plan.feedback == "full":
        raise InvalidInput(
            "feedback must be 'bandit' with a catalogue; got 'full'. "
            "A record is one pair of a context and an action: leave feedback out."
        )


def _check_control(plan: Plan, control: Control) -> None:
    instance("control", control, (Control,), "Write Control(share=0.1).")
    if plan.feedback == "full":
        raise InvalidInput(
            "control must be left out with full feedback; got one. "
            "The losses of every action are observed: compare them, without a control."
        )
    control.refuse_empty_part(plan.schedule.length(plan.schedule.imported_batches + 1))
    _ = plan.control_action  # fail now, if at all


def _check_guardrails(plan: Plan) -> None:
    if plan.guardrails is None or plan.control is None:
        given = "guardrails_share" if plan.guardrails is None else "guardrails"
        raise InvalidInput(
            f"{given} must come with both guardrails and a control share; one is "
            "missing. Write Plan(control=Control(0.1), guardrails=[Guardrail('complaints')])."
        )
    share = positive("guardrails_share", plan.guardrails_share, "Write 0.1, for a tenth.")
    if np.any(np.asarray(share + plan.control.budget_share) >= 1.0):
        raise InvalidInput(
            "guardrails_share and control.budget_share must be below 1 together; got "
            f"{share!r} and {plan.control.budget_share!r}. Leave the larger part to the fits."
        )


def _check_prior(plan: Plan, prior: Prior) -> None:
    instance("prior", prior, (Prior,), "Make one: prior_from_logs(plan, …).")
    pooling = pooling_for_prior(plan)
    other = prior.made_for != shared_digest(plan.to_config())
    if other or pooling.misfit(prior.statistics) is not None:
        raise InvalidInput(
            "prior must have the features, actions, outcome and feedback of this plan, and "
            "its geometry; this one was made for another. Make it for this plan without a "
            "prior: prior_from_logs(plan, …), then replace(plan, prior=…)."
        )


def pooling_for_prior(plan: Plan) -> PooledStatistics:
    """Return the mechanism of a plan with a prior, which must pool statistics."""
    if plan.pooling is None:
        raise InvalidInput(
            "oracle must pool statistics where there is a prior; got "
            f"{type(plan.oracle).__name__}. Use PooledRidge, or leave prior out."
        )
    return plan.pooling


def _refuse_what_costs_a_person_too_much(plan: Plan, participation: Participation) -> None:
    """An oracle of one's own may not know that the budget is for many records."""
    cost = epsilon(person_event(plan.event, participation), plan.budget.delta)
    if cost > plan.budget.epsilon:
        raise InvalidInput(
            f"oracle must keep a user within {plan.budget.text}; {type(plan.oracle).__name__} "
            f"costs ε = {cost:.4g} for {participation.text}. Calibrate it for "
            "problem.participation, or choose a built-in oracle."
        )


def advise_unused_budget(plan: Plan, event: Event) -> None:
    """Advise where releases cannot use all of ε, since the sampler's proof ends before it."""
    budget, alone = plan.budget, plan.participation is None and plan.control is None
    if not budget.private or budget.epsilon < USABLE or not alone:
        return
    spent = epsilon(event, budget.delta)
    if spent < 0.98 * budget.epsilon:
        advise(
            "large-epsilon",
            f"ε = {budget.epsilon:g} has the noise of ε = {spent:.3g}, which is the most that the "
            "discrete sampler is proven for. Give at most this, or Budget.none() for no noise.",
            stacklevel=4,
        )
