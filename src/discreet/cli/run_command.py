"""``discreet run``: one experiment on labelled data, played once per seed."""

from __future__ import annotations

import argparse
import math

from discreet.cli.command_line import Answer, Commands, as_json, command, table, write
from discreet.cli.flags import EXPERIMENT, experiment_flags, experiment_from, group_flag
from discreet.plan.config import config_text
from discreet.privacy.budget import Participation
from discreet.simulate.experiment import losses_by_group, play_seeds, result_document
from discreet.simulate.group_losses import GroupLosses
from discreet.text import guarantee_text
from discreet.types import JsonObject

EXAMPLES = """
examples:
  discreet run --data fried --policy SquareCB --set scale=4 --epsilon 1 --seeds 10
  discreet run --data public.csv --group region --epsilon 4
  discreet run --data public.csv --user customer --set batches_per_user=4 --epsilon 4
  discreet run experiment.toml --epsilon 4 --out result.json"""


def add(commands: Commands) -> None:
    """Add the flags of an experiment and of its result."""
    summary = "play labelled data as a bandit and print the mean loss"
    parser = command(commands, "run", summary, run, EXPERIMENT + EXAMPLES)
    experiment_flags(parser)
    group_flag(parser)
    parser.add_argument("--out", metavar="FILE", help="also write the result as JSON")


def run(args: argparse.Namespace) -> Answer:
    """Play every seed and report the losses."""
    experiment = experiment_from(args, needs_data=True)
    results = play_seeds(experiment, args.group)
    document = result_document(experiment, results)
    losses = None if args.group is None else losses_by_group(results)
    if losses is not None:
        document["groups"] = losses.to_json()
    if args.out:
        write(args.out, as_json(document) + "\n")
    return Answer(document, "\n".join(_lines(document, args.out, losses)))


def _lines(document: JsonObject, out: str | None, losses: GroupLosses | None = None) -> list[str]:
    data, plan, budget = document["data"], document["plan"], document["plan"]["budget"]
    epsilon, delta = float(budget["epsilon"]), float(budget["delta"])
    whose = _whose(plan)
    noise = f"noise scale of {guarantee_text(epsilon, delta)}{whose}; seeded noise, not private"
    rows = [
        [f"{end:,}", f"{loss:.4f}", _plus_minus(error)]
        for end, loss, error in zip(
            document["rounds"], document["curve"], document["curve_standard_error"], strict=True
        )
    ]
    best = data["best_loss"]
    return [
        f"{data['name']}: {document['rounds'][-1]:,} rounds, "
        f"{data['dimension']} numbers per context, {data['n_actions']} actions",
        f"{config_text(plan['policy'])} with {config_text(plan['oracle'])}",
        f"no noise: {guarantee_text(epsilon, delta)}" if math.isinf(epsilon) else noise,
        "",
        *table(["rounds", "loss so far", "± s.e."], rows),
        "",
        *([] if losses is None else [*table(losses.header, losses.cells), ""]),
        f"mean loss {document['mean_loss']:.4f} {_plus_minus(document['standard_error'])} "
        f"over {len(document['seeds'])} seed{'s' * (len(document['seeds']) > 1)}"
        + ("" if best is None else f"; the best possible is {best:.4f}"),
        f"for comparison: the best fixed action {document['best_fixed']:.4f}, "
        f"uniform actions {document['uniform']:.4f}",
        *([f"written to {out}"] if out else []),
    ]


def _whose(plan: JsonObject) -> str:
    """Return the unit of ε, where it is not one decision."""
    if plan["unit"] != "user":
        return ""
    often = Participation(plan["batches_per_user"], plan["records_per_batch"])
    return f" for one user, with {often.text}"


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f"± {error:.4f}"
