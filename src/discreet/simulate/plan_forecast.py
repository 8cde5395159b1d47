"""Forecast of a plan before any data: batches, noise, cost of each release, best attacker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

from discreet.design.outcome import UNIT_LOSS, Reward
from discreet.errors import InvalidInput
from discreet.plan import noise_forecast
from discreet.plan.explanation import plan_size
from discreet.plan.noise_forecast import MOST_BATCHES, SampleSizes
from discreet.plan.plan import Plan
from discreet.privacy.accounting import (
    epsilon,
    epsilon_in_different_batches,
    epsilon_in_one_batch,
    person_event,
)
from discreet.privacy.attacker import attacker
from discreet.privacy.budget import ONCE
from discreet.privacy.events import assumptions, event_json
from discreet.privacy.ledger import disjoint, relation
from discreet.text import about, roughly
from discreet.validate import positive

OPEN_ENDED = 25
"""Number of batches listed without a horizon: nearly a million rounds by default."""
MONTH = 30
"""Days for which releases are counted."""


def plan_forecast(
    plan: Plan,
    rows: int | None = None,
    sizes: SampleSizes | None = None,
    per_day: float | None = None,
) -> dict[str, Any]:
    """Return batches, noise, the cost of each release, and the noise of predicted losses.

    ``rows`` is the horizon of a plan without one. With ``sizes`` predictions count as helpful from
    the batch at which they detect the difference that the sample sizes are for. ``per_day`` is the
    expected number of decisions per day.
    """
    if plan.horizon is None and rows is not None:
        plan = replace(plan, horizon=rows)
    schedule = plan.schedule
    numbers = range(1, (len(schedule.lengths()) if plan.horizon else OPEN_ENDED) + 1)
    noise = noise_forecast.prediction_noise(plan, len(numbers)) or []
    batches = [_batch(plan, number, size) for number, size in zip_longest(numbers, noise)]
    if sizes is None:
        limit = noise_forecast.HELPFUL * noise_forecast.LARGEST_SPREAD
        helpful = [number for number, size in enumerate(noise, start=1) if size <= limit]
        warning = noise_forecast.too_noisy(plan)
    else:
        needed = sizes.at(plan.budget.epsilon).personal or math.inf
        helpful = [n for n in numbers if schedule.fitted(n) and schedule.start(n + 1) >= needed]
        warning = noise_forecast.too_few(plan, sizes)
    event, often = plan.event, plan.participation
    early, size = plan.releases_on_last_answer, plan_size(plan)
    because = disjoint(control=plan.control is not None, on_last_answer=early)
    assumed = [because] if often is None else [because, often.assumption]
    of_person = person_event(event, often or ONCE)
    attack = attacker(of_person)
    sums = {"part_losses": plan.loss_sums, "guardrails": plan.guardrail_sums}
    scales = vars(plan.mechanism) | {name: each and each.sigma for name, each in sums.items()}
    scales = {name: value for name, value in scales.items() if isinstance(value, float)}
    return {
        "format": "discreet-outlook/1",
        "plan": plan.to_config(),
        "plan_digest": plan.digest,
        "explanation": plan.explain(),
        "features": plan.features.p,
        "guarantee": {
            **_cost(plan, of_person),
            "unit": plan.unit,
            "relation": relation(often, early),
            "assumptions": [*assumed, *assumptions(event)] if plan.budget.private else [],
        },
        "attacker": {
            "success": attack.success,
            "exact": attack.exact,
            "sentence": attack.sentence(plan.unit),
        },
        "noise": {
            "scales": scales,
            "expected_norm": plan.mechanism.noise_norm,
            "event": event_json(event),
        },
        "helpful_from_batch": helpful[0] if helpful else None,
        "rewards": None if sizes is None else reward_document(plan, sizes),
        "sentences": forecast_sentences(plan, sizes, per_day),
        "warning": warning,
        "size": {
            "document_bytes": size.document,
            "fit_seconds": size.seconds,
            "fit_memory_bytes": size.memory,
            "warning": size.warning,
        },
        "batches": batches,
    }


def forecast_sentences(
    plan: Plan, sizes: SampleSizes | None, per_day: float | None = None
) -> list[str]:
    """Return the forecast for people who plan an experiment: when a difference can be seen, when
    personal choices begin to help, and with ``per_day`` decisions per day, when releases come.

    >>> from discreet import Budget, Reward, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(4), budget=Budget.none(), outcome=Reward(0, 1))
    >>> found = noise_forecast.sample_sizes(plan, 0.1, difference=0.01, epsilons=[math.inf])
    >>> for sentence in forecast_sentences(plan, found, per_day=1_000)[:2]: print(sentence)
    About 28,000 decisions (4 weeks) until a difference of 1 percentage point between two actions \
can be seen.
    At this ε and traffic, personal choices begin to help after about 5 months (140,000 decisions).
    """
    made = []
    days = None if per_day is None else float(positive("decisions per day", per_day))
    if sizes is not None:
        _, means, personal = sizes.at(plan.budget.epsilon)
        difference = f"{sizes.difference:.4g}"
        if (plan.outcome.low, plan.outcome.high) == (0.0, 1.0):
            points = float(f"{100 * sizes.difference:.4g}")
            difference = f"{points:g} percentage point{'s' * (points != 1)}"
        seen = f"a difference of {difference} between two actions can be seen."
        late = f"More than {MOST_BATCHES:,} releases until {seen} Use a larger ε."
        if means is not None:
            time = f" ({roughly(means / days)})" if days else ""
            late = f"About {about(means)} decisions{time} until {seen}"
        if plan.catalogue is None:
            made.append(late)
        late = f"do not begin to help within {MOST_BATCHES:,} releases."
        if personal is not None:
            count = f"{about(personal)} decisions"
            when = f"about {roughly(personal / days)} ({count})" if days else f"about {count}"
            late = f"begin to help after {when}."
        made.append(f"At this ε{' and traffic' if days else ''}, personal choices {late}")
    if days is not None:
        ends = [plan.schedule.start(number + 1) for number in range(1, MOST_BATCHES + 1)]
        early = sum(end <= MONTH * days for end in ends)
        latest = f"; a batch closes after {plan.close_every} at the latest"
        made.append(
            f"The first release follows after {ends[0]:,} decisions (about "
            f"{roughly(ends[0] / days)}), the next ones after {ends[1]:,} and {ends[2]:,}; about "
            f"{early:,} in the first {MONTH} days{latest if plan.close_every else ''}."
        )
    return made


def _batch(plan: Plan, number: int, noise: float | None) -> dict[str, Any]:
    most, fitted = plan.participation or ONCE, plan.schedule.fitted(number)
    so_far = person_event(plan.event, replace(most, batches=min(number, most.batches)))
    return {
        "number": number,
        "rounds_before": plan.schedule.start(number),
        "records": plan.schedule.length(number),
        "fitted": fitted,
        "release": _cost(plan, so_far) if fitted else None,
        "prediction_noise": noise,
    }


def _cost(plan: Plan, event: Any) -> dict[str, float]:
    """Return ε and δ of one event; δ is zero for pure ε."""
    pure = epsilon(event, 0.0)
    if math.isfinite(pure) or not plan.budget.private:
        return {"epsilon": pure, "delta": 0.0}
    return {"epsilon": epsilon(event, plan.budget.delta), "delta": plan.budget.delta}


def forecast_for_person(plan: Plan, records: int) -> dict[str, Any]:
    """Return the guarantee for a person who contributes a number of records."""
    event = plan.event
    delta = _cost(plan, event)["delta"]
    return {
        "records": records,
        "epsilon_in_different_batches": epsilon_in_different_batches(event, delta, records),
        "epsilon_in_one_batch": epsilon_in_one_batch(event, delta, records),
        "delta": delta,
    }


def reward_document(plan: Plan, found: SampleSizes) -> dict[str, Any]:
    """Return sample sizes with the rewards that they are for, as plain values."""
    facts = {name: getattr(found, name) for name in ("mean", "spread", "difference")}
    table = [size._asdict() for size in found.table]
    return {**facts, "range": [plan.outcome.low, plan.outcome.high], "sample_sizes": table}


class ExpectedRewards(NamedTuple):
    """Mean reward that somebody expects, its spread, its range, and the difference to detect."""

    mean: float
    spread: float | None = None
    range: Sequence[float] | None = None
    difference: float | None = None

    def declared(self, plan: Plan) -> Plan:
        """Return the plan with this range, with its declared rewards, or with rewards in [0, 1]."""
        if self.range is not None:
            low, high = self.range
            return replace(plan, outcome=Reward(low, high))
        if plan.outcome == UNIT_LOSS:
            return replace(plan, outcome=Reward(0.0, 1.0))
        if not isinstance(plan.outcome, Reward):
            raise InvalidInput(
                f"outcome must be a Reward where reward_mean is given; got {plan.outcome!r}. "
                "Add --reward-range LOW HIGH, or leave --reward-mean out."
            )
        return plan

    def sizes(self, plan: Plan, epsilons: Iterable[float]) -> SampleSizes:
        """Return the number of decisions after which the difference is detected, for each ε."""
        given = self.mean, self.spread, self.difference
        return noise_forecast.sample_sizes(plan, *given, epsilons=epsilons)
