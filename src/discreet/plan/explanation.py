"""Explanation of a plan in words, and estimates of the size of its releases.

All numbers are public. The constants of the estimates were measured on one core of an ordinary
machine. [docs/performance.md, "Large plans"]
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, NamedTuple

from discreet.design.action_names import action_name
from discreet.design.outcome import UNIT_LOSS
from discreet.plan.config import fields_to_config
from discreet.policies import AdaptivePO, ReplayBonusPO
from discreet.text import duration, listed

if TYPE_CHECKING:
    from discreet.plan.plan import Plan


TEXT = 18
"""Bytes of a number in a document: sixteen digits, a sign and a comma."""
DRAW = 2e-5
"""Seconds for one number of a fit with exact noise."""
FLOPS = 1e10
"""Floating-point operations in a second, in products of matrices."""
HELD = 200
"""Bytes of memory for each number while a release is fitted and written."""
LONGEST = 160
"""Characters of a part of a plan that its repr shows."""
LARGE, SLOW = 5e6, 10.0
"""Bytes of a document, and seconds of a fit, from which a plan is called large."""


class PlanSize(NamedTuple):
    """Estimates for one release; seconds and memory are None where they are not known."""

    document: float
    seconds: float | None = None
    memory: float | None = None

    @property
    def text(self) -> str:
        """The estimates in words."""
        text = f"A release is a document of about {_bytes(self.document)}."
        if self.seconds is None or self.memory is None:
            return text
        time = duration(_rounded(max(0.1, self.seconds)))
        memory = _bytes(self.memory)
        return f"{text} Its fit takes about {time} on one core, and {memory} of memory."

    @property
    def warning(self) -> str | None:
        """A sentence where a plan is so large that documents and fits will be a burden."""
        if self.document < LARGE and (self.seconds or 0.0) < SLOW:
            return None
        fits = f" and fits of about {duration(_rounded(self.seconds))}" if self.seconds else ""
        return (
            f"this plan is large: documents of about {_bytes(self.document)}{fits}. They grow "
            "with actions × features². Hash wide categories into fewer slots, leave out columns, "
            "or give actions features of their own with a Catalogue."
        )


def plan_size(plan: Plan) -> PlanSize:
    """The estimates for a plan."""
    problem, pooling, p = plan.problem, plan.pooling, plan.features.p
    blocks = 1 if problem.feedback == "full" else plan.blocks
    triangles, weights = blocks * p * (p + 1) // 2, plan.blocks * p
    radii = blocks * p * p if problem.radii else 0
    if pooling is None:
        return PlanSize(float(TEXT * (weights + radii)))
    matrices = 2 * p * p if pooling.stretched else 0
    numbers = triangles + 2 * weights + matrices + radii
    drawn = triangles + weights if plan.budget.private else 0
    seconds = DRAW * drawn + 20.0 * blocks * p**3 / FLOPS
    return PlanSize(float(TEXT * numbers), seconds, float(HELD * numbers))


def _rounded(value: float) -> float:
    """To two digits: an estimate is no better."""
    return float(f"{value:.2g}")


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{_rounded(count / size):g} {unit}"
    return f"{max(1.0, _rounded(count)):g} bytes"


def explained(plan: Plan) -> str:
    """All paragraphs; those without words are left out."""
    size = plan_size(plan)
    imported = plan.imported is not None and (
        f"It begins with a private log of {plan.imported:,} rows, in "
        f"{plan.schedule.imported_batches} batches. Each row is in one of them, costs ε once "
        "as every record, and is forgotten with its release."
    )
    prior = plan.prior is not None and (
        f"{plan.prior.text}. They are public, part of this plan, decide the first batch, "
        "and enter the pool as a batch without cost."
    )
    paragraphs = {
        "Problem": _problem(plan),
        "Privacy": _privacy(plan),
        "Policy": _policy(plan.policy, plan.n_actions),
        "Oracle": _oracle(plan),
        "Batches": _batches(plan),
        "Size": size.text + (f" Careful: {size.warning}" if size.warning else ""),
        "Control": _control(plan),
        "Guardrails": _guardrails(plan),
        "Import": imported,
        "Prior": prior,
    }
    return "\n".join(
        textwrap.fill(f"{subject + ' ':<10}{words}", 88, subsequent_indent=" " * 10)
        for subject, words in paragraphs.items()
        if words
    )


def _problem(plan: Plan) -> str:
    observed = "the chosen action" if plan.feedback == "bandit" else "every action"
    named = "" if plan.actions is None else f" ({listed(plan.actions)})"
    text = (
        f"{plan.n_actions} actions{named}, {plan.features.p - 1} numbers per context; "
        f"feedback is the {plan.outcome.word} of {observed}"
    )
    if plan.outcome != UNIT_LOSS:
        refused = "clipped" if plan.outcome.clip else "refused"
        text += f" in {plan.outcome.range}; what lies outside is {refused}"
    if plan.missing_loss is None:
        return f"{text}."
    value = plan.outcome.value_of(plan.missing_loss)
    return f"{text}. An answer that never comes counts as a {plan.outcome.word} of {value:g}."


def _privacy(plan: Plan) -> str:
    if not plan.budget.private:
        return "None: no budget was set, so no noise is added."
    cost, often = f"{plan.budget.text} for one {plan.unit}", plan.participation
    if often is not None:
        return f"{cost}, who contributes {often.text}."
    return f"{cost}. Each record is in one batch, so any number of releases costs this once."


def _policy(policy: object, n_actions: int) -> str:
    if not isinstance(policy, (AdaptivePO, ReplayBonusPO)):
        return _given(policy)
    rate = f"1/(2A) = {0.5 / n_actions:.3g}: more actions need more trials."
    if policy.learning_rate is not None:
        rate = f"{policy.learning_rate:g}, as given."
    replay = (
        "ReplayBonusPO replays the released predictors, the oldest first, with a bonus "
        f"({policy.bonus:g}) for rarely tried actions. Its learning rate is {rate}"
    )
    if isinstance(policy, ReplayBonusPO):
        return replay
    return (
        "AdaptivePO. Where releases show that actions differ clearly with the context, "
        f"{replay} Where they differ little, the newest predictor decides alone, mostly by the "
        "mean outcome of each action: by Maillard sampling, in units of its own standard errors."
    )


def _oracle(plan: Plan) -> str:
    pooling = plan.pooling
    if pooling is None:
        return _given(plan.oracle)
    if not plan.budget.private:
        return "PooledRidge: ridge regression on the whole past; predicted losses are in [0, 1]."
    oracle, sigma = pooling.oracle, pooling.gram
    half = math.ceil(oracle.clear * plan.features.p * sigma**2)
    text = (
        "PooledRidge adds up all released statistics, which are public. The budget asks for noise "
        f"of {sigma:.3g} on second moments and {pooling.response:.3g} on responses. A batch of n "
        f"records has weight n/(n + {half:,}), since small batches are mostly noise, and "
        f"directions weaker than {oracle.floor:g} times the noise are not trusted."
    )
    if pooling.stretched:
        text += (
            " Each batch's rows are stretched by a matrix that the earlier releases give, and "
            "brought to a length of at most one, so that weak directions rise above the noise; "
            "this spends no privacy."
        )
    return text


def _batches(plan: Plan) -> str:
    begin = plan.schedule.imported_batches + 1
    text = ", ".join(f"{plan.schedule.nominal(begin + more):,}" for more in range(3))
    text += ", … records"
    if plan.longest_batch is not None:
        text += f", at most {plan.longest_batch:,}"
    if plan.horizon is not None:
        text += f", until round {plan.horizon:,}"
    if plan.close_every is not None:
        text += f"; a batch closes {plan.close_every} after it opened, though slots are free"
    text += ". The first batch chooses actions at random."
    if plan.half_life is not None:
        text += (
            f" A release counts half as much after {plan.half_life:,} more, and is not read "
            f"after {5 * plan.half_life:,}."
        )
    return text


def _control(plan: Plan) -> str:
    control, action, sums = plan.control, plan.control_action, plan.loss_sums
    if control is None or sums is None:
        return ""
    who = "people" if plan.participation else "slots"
    played = "actions at random" if action is None else f"the action {action_name(plan, action)}"
    noise = f", with noise of {sums.sigma:.3g} on each sum of losses" if sums.sigma else ""
    return (
        f"A share of {control.share:g} of all {who}, by a public rule, plays {played}. Each "
        f"release tells the mean {plan.outcome.word} of policy and control{noise}; lift compares "
        "them, and the control's records are learned from too. "
        f"This takes {control.budget_share:g} of the budget."
    )


def _guardrails(plan: Plan) -> str:
    sums = plan.guardrail_sums
    if sums is None or plan.guardrails is None:
        return ""
    noise = f", with noise of {sums.sigma:.3g} on each sum" if sums.sigma else ""
    return (
        f"{'; '.join(each.text for each in plan.guardrails)}. Each release tells their means in "
        f"policy and control{noise} on a scale of 0 to 1. This takes {plan.guardrails_share:g} of "
        "the budget."
    )


def _given(part: object) -> str:
    words = ", ".join(f"{name}={value}" for name, value in fields_to_config(part).items())
    return f"{type(part).__name__}({words}), as given."


def chosen_fields(plan: Plan) -> list[tuple[str, str]]:
    """Return the fields that differ from their defaults, in short."""
    chosen = []
    for each in fields(plan):
        text = " ".join(repr(getattr(plan, each.name)).split())
        made = each.default if each.default_factory is MISSING else each.default_factory()
        counted = each.name == "n_actions" and plan.actions is not None
        if text != repr(made) and not counted:
            chosen.append((each.name, text if len(text) <= LONGEST else f"{text[:LONGEST]}…"))
    return chosen
