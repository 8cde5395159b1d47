"""``discreet plan``: forecast of batches, noise and cost, before any data."""

from __future__ import annotations

import math

from discreet.cli import command_line as cli
from discreet.design.outcome import UNIT_LOSS, Outcome, declared
from discreet.plan.config import config_text
from discreet.plan.noise_forecast import EPSILONS
from discreet.simulate.plan_forecast import forecast_for_person, plan_forecast
from discreet.text import epsilon_text, guarantee_text, listed
from discreet.types import JsonObject
from discreet.validate import whole


def _count_or_names(text: str) -> int | list[str]:
    return int(text) if text.isdecimal() else text.split(",")


@cli.command(
    "plan",
    *cli.EXPERIMENT_FLAGS,
    cli.flag("--horizon T", "number of rounds, if known in advance", int),
    cli.flag("--actions A|NAMES", "number of actions, or their names", type=_count_or_names),
    cli.flag("--dimension D", "number of columns of a context, without data", int),
    cli.flag(
        "--records-per-person K", "also report the guarantee for a person with K records", int
    ),
    *cli.REWARD_FLAGS,
    cli.flag("--per-day N", "expected decisions per day: also report the times of releases", float),
)
def forecast(args: cli.Args) -> cli.Answer:
    """Report the schedule, the noise and the guarantee of an experiment."""
    experiment = cli.experiment_from(args)
    plan, rewards, sizes = experiment.plan, cli.expected_rewards(args), None
    if rewards is not None:
        plan = rewards.declared(plan)
        sizes = rewards.sizes(plan, {*EPSILONS, plan.budget.epsilon})
    rows = experiment.data.rows if experiment.data else experiment.rows
    document = plan_forecast(plan, rows, sizes, args.per_day)
    if args.records_per_person is not None:
        count = whole("records-per-person", args.records_per_person, 1)
        document["person"] = forecast_for_person(plan, count)
    return cli.Answer(document, _lines(document, args.quiet))


def _lines(document: JsonObject, quiet: bool) -> list[str]:
    plan, noise = document["plan"], document["noise"]
    dimension = document["features"] - 1
    names = plan.get("actions") or []
    names = names["ids"] if isinstance(names, dict) else names  # of a catalogue
    named = f" ({listed(names)})" if names else ""
    lines = [
        f"Plan {document['plan_digest'][:12]}: {plan['n_actions']} actions{named}, "
        f"{document['features']} features ({dimension} from the context, and the bias)",
        f"{config_text(plan['policy'])} with {config_text(plan['oracle'])}",
        "",
        *_guarantee_lines(document["guarantee"]),
        f"Attacker   {document['attacker']['sentence']}",
    ]
    if person := document.get("person"):
        apart, together = person["epsilon_in_different_batches"], person["epsilon_in_one_batch"]
        lines.append(
            f"A person   with {person['records']} records: ε = {epsilon_text(apart)} if they lie "
            f"in different batches, {epsilon_text(together)} if all lie in one, "
            f"at δ = {person['delta']:g}"
        )
    if noise["expected_norm"]:
        scales = [f"{name} {value:.4g}" for name, value in noise["scales"].items() if value]
        lines.append(f"Noise      calibrated to {', '.join(scales)}")
        lines.append(f"           expected norm {noise['expected_norm']:.4g}")
    else:
        lines.append("Noise      none")
    lines += ["", *_batch_table(document), ""]
    if plan["horizon"] is None:
        lines.append("No horizon: batches go on growing, and every one is released.")
    else:
        lines.append("The last batch is played and never fitted.")
    warnings = (document["warning"], document["size"]["warning"])
    lines += [f"Warning: {words}" for words in warnings if words and not quiet]
    lines += ["", *cli.reward_lines(document["rewards"])]
    lines += [line for sentence in document["sentences"] for line in (sentence, "")]
    return [*lines, document["explanation"]]


def _guarantee_lines(guarantee: JsonObject) -> list[str]:
    text = guarantee_text(guarantee["epsilon"], guarantee["delta"])
    if math.isinf(guarantee["epsilon"]):
        return [f"Guarantee  none: {text}"]
    return [
        f"Guarantee  {text} for one {guarantee['unit']}, when neighbours {guarantee['relation']}",
        *(f"  assumes  {sentence}" for sentence in guarantee["assumptions"]),
    ]


def _batch_table(document: JsonObject) -> list[str]:
    helpful, outcome = document["helpful_from_batch"], declared(document["plan"])
    known = any(each["prediction_noise"] for each in document["batches"])
    rows = []
    for each in document["batches"]:
        release, noise = each["release"], each["prediction_noise"]
        rows.append(
            [
                each["number"],
                each["rounds_before"],
                each["records"],
                "yes" if each["fitted"] else "no, the last",
                epsilon_text(release["epsilon"]) if release else None,
                f"{release['delta']:g}" if release else None,
                *([_noise_text(outcome, noise) if noise else None] * known),
            ]
        )
    header = ["batch", "rounds before", "records", "released", "ε", "δ"]
    lines = cli.table([*header, *[f"noise of a predicted {outcome.word}"] * known], rows)
    if helpful and document["rewards"]:
        lines[helpful + 1] += "  ← personal predictions tell the difference below"
    elif helpful:
        lines[helpful + 1] += "  ← from here, half of 111 public sets gained"
    return lines


def _noise_text(outcome: Outcome, noise: float) -> str:
    """Return losses in [0, 1] to a hundredth, other units to two digits."""
    value = outcome.error_of(noise)
    return f"±{value:.2f}" if outcome == UNIT_LOSS else f"±{float(f'{value:.2g}'):,g}"
