"""A plan in words: what was chosen, and why. It reads public numbers, as the choice itself does."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from discreet.config import fields_to_config
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.policies import ReplayBonusPO


def explain(plan: Any) -> str:
    """One paragraph a subject. (``Plan`` itself calls this, so its type cannot be named here.)"""
    told = {
        "Problem": _problem(plan),
        "Privacy": _privacy(plan),
        "Policy": _policy(plan.policy, plan.n_actions),
        "Oracle": _oracle(plan),
        "Batches": _batches(plan),
    }
    return "\n".join(
        textwrap.fill(f"{subject:<10}{words}", 88, subsequent_indent=" " * 10)
        for subject, words in told.items()
    )


def _problem(plan: Any) -> str:
    heard = "the chosen action" if plan.feedback == "bandit" else "every action"
    numbers = plan.features.p - 1
    return f"{plan.n_actions} actions, {numbers} numbers a context; the loss of {heard} is heard."


def _privacy(plan: Any) -> str:
    budget = plan.budget
    if not budget.private:
        return "None: no budget was set, so nothing is noised."
    delta = f", δ = {budget.delta:g}" if budget.delta else ""
    return (
        f"ε = {budget.epsilon:g}{delta} for one {plan.unit}. Each record is in one batch, so any "
        "number of releases costs this once."
    )


def _policy(policy: Any, n_actions: int) -> str:
    if not isinstance(policy, ReplayBonusPO):
        return _given(policy)
    rate = f"1/(2A) = {0.5 / n_actions:.3g}: more actions need more trials."
    if policy.learning_rate is not None:
        rate = f"{policy.learning_rate:g}, as given."
    return (
        "ReplayBonusPO replays the released predictors, the oldest first, with a bonus "
        f"({policy.bonus:g}) for what was tried little. Its learning rate is {rate}"
    )


def _oracle(plan: Any) -> str:
    oracle, mechanism = plan.oracle, plan.mechanism
    if not isinstance(mechanism, PooledStatistics):
        return _given(oracle)
    if not plan.budget.private:
        return "PooledRidge: ridge regression on the whole past; predicted losses are in [0, 1]."
    sigma, response = mechanism.gram, mechanism.response
    half = math.ceil(oracle.clear * plan.features.p * sigma**2)
    return (
        "PooledRidge adds up all released statistics, which are public. The budget asks for noise "
        f"of {sigma:.3g} on second moments and {response:.3g} on responses. A batch of n records "
        f"counts n/(n + {half:,}), since small ones are mostly noise, and directions weaker than "
        f"{oracle.floor:g} of the noise are not believed."
    )


def _batches(plan: Any) -> str:
    lengths = ", ".join(f"{plan.schedule.nominal(batch):,}" for batch in (1, 2, 3))
    end = "" if plan.horizon is None else f", until {plan.horizon:,} rounds are over"
    return f"{lengths}, … records{end}. In the first one chance decides."


def _given(part: Any) -> str:
    words = ", ".join(f"{name}={value}" for name, value in fields_to_config(part).items())
    return f"{type(part).__name__}({words}), as given."
