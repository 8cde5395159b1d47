"""``discreet plan``: what will happen, before any data."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from discreet.cli.answer import Answer, described, table
from discreet.cli.experiment_file import TEXT, Experiment, experiment_flags, from_arguments
from discreet.cli.parser import Commands, command
from discreet.cli.reward_flags import (
    expected_sizes,
    reward_document,
    reward_flags,
    reward_lines,
    with_rewards,
)
from discreet.formatting import epsilon_text, guarantee_text, listed
from discreet.outcome import UNIT_LOSS, Outcome, declared
from discreet.outlook import (
    EPSILONS,
    HELPFUL,
    LARGEST_SPREAD,
    SampleSizes,
    prediction_noise,
    too_few,
    too_noisy,
)
from discreet.plan import Plan
from discreet.plan_size import plan_size
from discreet.privacy.accounting import epsilon
from discreet.privacy.attacker import attacker
from discreet.privacy.events import assumptions, to_json
from discreet.privacy.groups import epsilon_apart, epsilon_together, person_event
from discreet.privacy.ledger import disjoint, relation
from discreet.privacy.participation import ONCE
from discreet.schedule import Schedule
from discreet.validate import whole

OPEN_ENDED = 25
"""Batches listed when no horizon is known: nearly a million rounds by default."""
EXAMPLES = """
examples:
  discreet plan --data digits --epsilon 4
  discreet plan --actions 3 --dimension 10 --horizon 100000 --epsilon 1
  discreet plan --actions none,mail,call --dimension 10 --epsilon 1
  discreet plan --actions 3 --dimension 10 --reward-mean 0.01
  discreet plan --actions 3 --dimension 10 --reward-range 0 200 --reward-mean 3 --reward-spread 15
"""


def add(commands: Commands) -> None:
    """An experiment, or a problem without data, and what a person supplies."""
    summary = "what will happen, before any data: batches, noise, cost"
    parser = command(commands, "plan", summary, plan, TEXT + EXAMPLES)
    experiment_flags(parser)
    flag = parser.add_argument
    flag("--horizon", type=int, metavar="T", help="number of rounds, if known in advance")
    flag(
        "--actions",
        type=_count_or_names,
        metavar="A|NAMES",
        help="how many actions, or their names (none,mail,call), without data",
    )
    flag("--dimension", type=int, metavar="D", help="numbers per context, without data")
    flag("--records-per-person", type=int, metavar="K", help="also for a person with K records")
    reward_flags(parser)


def _count_or_names(text: str) -> int | list[str]:
    return int(text) if text.isdecimal() else text.split(",")


def plan(args: argparse.Namespace) -> Answer:
    """The schedule, the noise and the guarantee of an experiment."""
    experiment = from_arguments(args)
    experiment = replace(experiment, plan=with_rewards(experiment.plan, args))
    epsilons = {*EPSILONS, experiment.plan.budget.epsilon}
    document = outlook(experiment, expected_sizes(experiment.plan, args, epsilons))
    if args.records_per_person is not None:
        count = whole("records-per-person", args.records_per_person, 1)
        document["person"] = _person(experiment.plan, count)
    return Answer(document, "\n".join(_lines(document, args.quiet)))


def outlook(experiment: Experiment, sizes: SampleSizes | None = None) -> dict[str, Any]:
    """Batches, noise, the cost of each release, and the noise of a predicted loss after it.

    With ``sizes`` predictions help from where they tell the difference that these are for.
    """
    plan = experiment.plan
    rows = experiment.data.rows if experiment.data else experiment.rows
    if plan.horizon is None and rows is not None:
        plan = replace(plan, horizon=rows)
    schedule = plan.schedule
    count = len(schedule.lengths()) if plan.horizon else OPEN_ENDED
    norm = plan.mechanism.noise_norm
    noise = prediction_noise(plan, count) or []
    batches = [
        _batch(plan, schedule, number, size)
        for number, size in zip_longest(range(1, count + 1), noise)
    ]
    if sizes is None:
        helpful = [n for n, z in enumerate(noise, start=1) if z <= HELPFUL * LARGEST_SPREAD]
    else:
        own = sizes.at(plan.budget.epsilon).personal
        needed = math.inf if own is None else own
        ends = ((n, schedule.start(n + 1)) for n in range(1, count + 1) if schedule.fitted(n))
        helpful = [number for number, end in ends if end >= needed]
    event, often = plan.event, plan.participation
    early = plan.releases_on_last_answer
    because = disjoint(control=plan.control is not None, on_last_answer=early)
    told = [because] if often is None else [because, often.assumption]
    return {
        "format": "discreet-outlook/1",
        "plan": plan.to_config(),
        "plan_digest": plan.digest,
        "explanation": plan.explain(),
        "features": plan.features.p,
        "guarantee": {
            **_cost(plan, person_event(event, often or ONCE)),
            "unit": plan.unit,
            "relation": relation(often, early),
            "assumptions": [*told, *assumptions(event)] if plan.budget.private else [],
        },
        "attacker": _attacker(plan),
        "noise": {"scales": _scales(plan), "expected_norm": norm, "event": to_json(event)},
        "helpful_from_batch": helpful[0] if helpful else None,
        "rewards": None if sizes is None else reward_document(plan, sizes),
        "warning": too_noisy(plan) if sizes is None else too_few(plan, sizes),
        "size": _size(plan),
        "batches": batches,
    }


def _size(plan: Plan) -> dict[str, Any]:
    """Bytes of a document, seconds and bytes of a fit, as far as they are known."""
    size = plan_size(plan)
    return {
        "document_bytes": size.document,
        "fit_seconds": size.seconds,
        "fit_memory_bytes": size.memory,
        "warning": size.warning,
    }


def _batch(plan: Plan, schedule: Schedule, number: int, noise: float | None) -> dict[str, Any]:
    records, fitted = schedule.length(number), schedule.fitted(number)
    most = plan.participation or ONCE
    so_far = person_event(plan.event, replace(most, batches=min(number, most.batches)))
    return {
        "number": number,
        "rounds_before": schedule.start(number),
        "records": records,
        "fitted": fitted,
        "release": _cost(plan, so_far) if fitted else None,
        "prediction_noise": noise,
    }


def _cost(plan: Plan, event: Any) -> dict[str, float]:
    """ε and δ of one event; δ is zero where ε is pure."""
    pure = epsilon(event, 0.0)
    if math.isfinite(pure) or not plan.budget.private:
        return {"epsilon": pure, "delta": 0.0}
    return {"epsilon": epsilon(event, plan.budget.delta), "delta": plan.budget.delta}


def _attacker(plan: Plan) -> dict[str, Any]:
    """How often whoever reads the releases is right about one unit."""
    found = attacker(person_event(plan.event, plan.participation or ONCE))
    return {
        "success": found.success,
        "exact": found.exact,
        "sentence": found.sentence(plan.unit),
    }


def _person(plan: Plan, records: int) -> dict[str, Any]:
    """The guarantee for a person who supplies so many records."""
    event = plan.event
    delta = _cost(plan, event)["delta"]
    return {
        "records": records,
        "epsilon_in_different_batches": epsilon_apart(event, delta, records),
        "epsilon_in_one_batch": epsilon_together(event, delta, records),
        "delta": delta,
    }


def _scales(plan: Plan) -> dict[str, float]:
    """The numbers that calibration fixed."""
    numbers = {**vars(plan.mechanism)}
    if plan.loss_sums is not None:
        numbers["part_losses"] = plan.loss_sums.sigma
    return {name: value for name, value in numbers.items() if isinstance(value, float)}


def _lines(document: dict[str, Any], quiet: bool) -> list[str]:
    plan, noise = document["plan"], document["noise"]
    dimension = document["features"] - 1
    names = plan.get("actions") or []
    names = names["ids"] if isinstance(names, dict) else names  # of a catalogue
    named = f" ({listed(names)})" if names else ""
    return [
        f"Plan {document['plan_digest'][:12]}: {plan['n_actions']} actions{named}, "
        f"{document['features']} features ({dimension} from the context, and the bias)",
        f"{described(plan['policy'])} with {described(plan['oracle'])}",
        "",
        *_guarantee_lines(document["guarantee"]),
        f"Attacker   {document['attacker']['sentence']}",
        *_person_lines(document.get("person")),
        *_noise_lines(noise),
        "",
        *_batch_table(document),
        "",
        *_horizon_lines(document, quiet),
        "",
        *reward_lines(document["rewards"]),
        document["explanation"],
    ]


def _guarantee_lines(guarantee: dict[str, Any]) -> list[str]:
    if math.isinf(guarantee["epsilon"]):
        return [f"Guarantee  none: {guarantee_text(math.inf, 0.0)}"]
    return [
        f"Guarantee  {guarantee_text(guarantee['epsilon'], guarantee['delta'])} for one "
        f"{guarantee['unit']}, when neighbours {guarantee['relation']}",
        *(f"  assumes  {sentence}" for sentence in guarantee["assumptions"]),
    ]


def _person_lines(person: dict[str, Any] | None) -> list[str]:
    if person is None:
        return []
    apart, together = (
        epsilon_text(person[f"epsilon_in_{where}"]) for where in ("different_batches", "one_batch")
    )
    return [
        f"A person   with {person['records']} records: ε = {apart} if they lie in different "
        f"batches, {together} if all lie in one, at δ = {person['delta']:g}"
    ]


def _noise_lines(noise: dict[str, Any]) -> list[str]:
    if not noise["expected_norm"]:
        return ["Noise      none"]
    listed = ", ".join(f"{name} {value:.4g}" for name, value in noise["scales"].items() if value)
    return [
        f"Noise      calibrated to {listed}",
        f"           expected norm {noise['expected_norm']:.4g}",
    ]


def _batch_table(document: dict[str, Any]) -> list[str]:
    helpful, outcome = document["helpful_from_batch"], declared(document["plan"])
    known = any(each["prediction_noise"] for each in document["batches"])
    rows = []
    for each in document["batches"]:
        release, noise = each["release"], each["prediction_noise"]
        rows.append(
            [
                str(each["number"]),
                f"{each['rounds_before']:,}",
                f"{each['records']:,}",
                "yes" if each["fitted"] else "no, the last",
                epsilon_text(release["epsilon"]) if release else "–",
                f"{release['delta']:g}" if release else "–",
                *([_noise_text(outcome, noise) if noise else "–"] * known),
            ]
        )
    header = ["batch", "rounds before", "records", "released", "ε", "δ"]
    lines = table([*header, *[f"noise of a predicted {outcome.word}"] * known], rows)
    if helpful and document["rewards"]:
        lines[helpful + 1] += "  ← personal predictions tell the difference below"
    elif helpful:
        lines[helpful + 1] += "  ← from here, half of 111 public sets gained"
    return lines


def _noise_text(outcome: Outcome, noise: float) -> str:
    """Losses in [0, 1] to a hundredth; what has other units to two digits."""
    value = outcome.error_of(noise)
    return f"±{value:.2f}" if outcome == UNIT_LOSS else f"±{float(f'{value:.2g}'):,g}"


def _horizon_lines(document: dict[str, Any], quiet: bool) -> list[str]:
    lines = ["The last batch is played and never fitted."]
    if document["plan"]["horizon"] is None:
        lines = ["No horizon: batches go on growing, and every one is released."]
    warnings = (document["warning"], document["size"]["warning"])
    return lines + [f"Warning: {words}" for words in warnings if words and not quiet]
