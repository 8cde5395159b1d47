"""``discreet plan``: forecast of batches, noise and cost, before any data."""

from __future__ import annotations

import argparse
import math

from discreet.cli.command_line import Answer, Commands, command, table
from discreet.cli.flags import (
    EXPERIMENT,
    expected_rewards,
    experiment_flags,
    experiment_from,
    reward_flags,
    reward_lines,
)
from discreet.design.outcome import UNIT_LOSS, Outcome, declared
from discreet.plan.config import config_text
from discreet.plan.noise_forecast import (
    EPSILONS,
)
from discreet.simulate.plan_forecast import forecast_for_person, plan_forecast
from discreet.text import epsilon_text, guarantee_text, listed
from discreet.types import JsonObject
from discreet.validate import whole

EXAMPLES = """
examples:
  discreet plan --data digits --epsilon 4
  discreet plan --actions 3 --dimension 10 --horizon 100000 --epsilon 1
  discreet plan --actions none,mail,call --dimension 10 --epsilon 1
  discreet plan --actions 3 --dimension 10 --reward-mean 0.01 --per-day 2000
  discreet plan --actions 3 --dimension 10 --reward-range 0 200 --reward-mean 3 --reward-spread 15
"""


def add(commands: Commands) -> None:
    """Add flags for an experiment or a problem without data, and for records of a person."""
    summary = "forecast batches, noise and cost before any data"
    parser = command(commands, "plan", summary, forecast, EXPERIMENT + EXAMPLES)
    experiment_flags(parser)
    flag = parser.add_argument
    flag("--horizon", type=int, metavar="T", help="number of rounds, if known in advance")
    flag(
        "--actions",
        type=_count_or_names,
        metavar="A|NAMES",
        help="number of actions, or their names (none,mail,call), without data",
    )
    flag("--dimension", type=int, metavar="D", help="number of columns of a context, without data")
    flag(
        "--records-per-person",
        type=int,
        metavar="K",
        help="also report the guarantee for a person with K records",
    )
    reward_flags(parser)
    flag(
        "--per-day",
        type=float,
        metavar="N",
        help="expected decisions per day: also report when releases come, and how long it takes",
    )


def _count_or_names(text: str) -> int | list[str]:
    return int(text) if text.isdecimal() else text.split(",")


def forecast(args: argparse.Namespace) -> Answer:
    """Report the schedule, the noise and the guarantee of an experiment."""
    experiment = experiment_from(args)
    plan, rewards, sizes = experiment.plan, expected_rewards(args), None
    if rewards is not None:
        plan = rewards.declared(plan)
        sizes = rewards.sizes(plan, {*EPSILONS, plan.budget.epsilon})
    rows = experiment.data.rows if experiment.data else experiment.rows
    document = plan_forecast(plan, rows, sizes, args.per_day)
    if args.records_per_person is not None:
        count = whole("records-per-person", args.records_per_person, 1)
        document["person"] = forecast_for_person(plan, count)
    return Answer(document, "\n".join(_lines(document, args.quiet)))


def _lines(document: JsonObject, quiet: bool) -> list[str]:
    plan, noise = document["plan"], document["noise"]
    dimension = document["features"] - 1
    names = plan.get("actions") or []
    names = names["ids"] if isinstance(names, dict) else names  # of a catalogue
    named = f" ({listed(names)})" if names else ""
    return [
        f"Plan {document['plan_digest'][:12]}: {plan['n_actions']} actions{named}, "
        f"{document['features']} features ({dimension} from the context, and the bias)",
        f"{config_text(plan['policy'])} with {config_text(plan['oracle'])}",
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
        *(line for sentence in document["sentences"] for line in (sentence, "")),
        document["explanation"],
    ]


def _guarantee_lines(guarantee: JsonObject) -> list[str]:
    if math.isinf(guarantee["epsilon"]):
        return [f"Guarantee  none: {guarantee_text(math.inf, 0.0)}"]
    return [
        f"Guarantee  {guarantee_text(guarantee['epsilon'], guarantee['delta'])} for one "
        f"{guarantee['unit']}, when neighbours {guarantee['relation']}",
        *(f"  assumes  {sentence}" for sentence in guarantee["assumptions"]),
    ]


def _person_lines(person: JsonObject | None) -> list[str]:
    if person is None:
        return []
    different, together = (
        epsilon_text(person[f"epsilon_in_{where}"]) for where in ("different_batches", "one_batch")
    )
    return [
        f"A person   with {person['records']} records: ε = {different} if they lie in different "
        f"batches, {together} if all lie in one, at δ = {person['delta']:g}"
    ]


def _noise_lines(noise: JsonObject) -> list[str]:
    if not noise["expected_norm"]:
        return ["Noise      none"]
    listed = ", ".join(f"{name} {value:.4g}" for name, value in noise["scales"].items() if value)
    return [
        f"Noise      calibrated to {listed}",
        f"           expected norm {noise['expected_norm']:.4g}",
    ]


def _batch_table(document: JsonObject) -> list[str]:
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
    """Return losses in [0, 1] to a hundredth, other units to two digits."""
    value = outcome.error_of(noise)
    return f"±{value:.2f}" if outcome == UNIT_LOSS else f"±{float(f'{value:.2g}'):,g}"


def _horizon_lines(document: JsonObject, quiet: bool) -> list[str]:
    lines = ["The last batch is played and never fitted."]
    if document["plan"]["horizon"] is None:
        lines = ["No horizon: batches go on growing, and every one is released."]
    warnings = (document["warning"], document["size"]["warning"])
    return lines + [f"Warning: {words}" for words in warnings if words and not quiet]
