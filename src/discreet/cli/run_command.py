"""``discreet run``: one experiment on labelled data, played once per seed."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.cli.answer import Answer, as_json, described, table, write
from discreet.cli.experiment_file import (
    TEXT,
    Experiment,
    experiment_flags,
    from_arguments,
    group_flag,
)
from discreet.cli.group_table import group_document, group_table
from discreet.cli.parser import Commands, command
from discreet.formatting import guarantee_text
from discreet.privacy.participation import Participation
from discreet.simulate import Evaluation, evaluate
from discreet.simulate.group_losses import GroupLosses, lines_over_seeds
from discreet.simulate.public_groups import file_groups

FORMAT = "discreet-result/1"
CONFIDENCE = 0.95
NOISE = "seeded: the noise has the scale of ε but protects no one"
EXAMPLES = """
examples:
  discreet run --data fried --policy SquareCB --set scale=4 --epsilon 1 --seeds 10
  discreet run --data public.csv --group region --epsilon 4
  discreet run --data public.csv --user customer --set batches_per_user=4 --epsilon 4
  discreet run experiment.toml --epsilon 4 --out result.json"""


def add(commands: Commands) -> None:
    """An experiment, and where its result goes."""
    summary = "play labelled data as a bandit and print the mean loss"
    parser = command(commands, "run", summary, run, TEXT + EXAMPLES)
    experiment_flags(parser)
    group_flag(parser)
    parser.add_argument("--out", metavar="FILE", help="also write the JSON result here")


def run(args: argparse.Namespace) -> Answer:
    """Play every seed and report the losses."""
    experiment = from_arguments(args, needs_data=True)
    results = play(experiment, args.group)
    document = _document(experiment, results)
    losses = None if args.group is None else group_losses(results)
    if losses is not None:
        document["groups"] = group_document(losses)
    if args.out:
        write(args.out, as_json(document) + "\n")
    return Answer(document, "\n".join(_lines(document, args.out, losses)))


def play(experiment: Experiment, group: str | None = None) -> list[Evaluation]:
    """Every seed once."""
    data, contexts = experiment.data, experiment.contexts
    assert data is not None
    groups = None if group is None else file_groups(data, group)
    return [
        evaluate(experiment.plan, contexts, data.labels, groups=groups, seed=seed, users=data.users)
        for seed in range(experiment.seeds)
    ]


def group_losses(results: list[Evaluation]) -> GroupLosses:
    """Of several seeds with intervals over them; of one seed with those over its rounds."""
    if len(results) == 1:
        return results[0].by_group()
    played = [result.groups for result in results if result.groups is not None]
    lost = [each.lost(result.losses) for each, result in zip(played, results, strict=True)]
    levels = [results[0].noise_scale_of.epsilon]
    lines = lines_over_seeds(played, np.asarray([lost]), levels, CONFIDENCE)
    return GroupLosses(lines, CONFIDENCE, results[0].outcome)


def _document(experiment: Experiment, results: list[Evaluation]) -> dict[str, Any]:
    """Final losses, and the curve at batch ends."""
    plan, data = experiment.plan, experiment.data
    assert data is not None
    seeds = list(range(experiment.seeds))
    rounds = len(results[0].losses)
    ends = np.cumsum(replace(plan.schedule, horizon=rounds).lengths())
    at_ends = np.stack([result.curve for result in results])[:, ends - 1]
    return {
        "format": FORMAT,
        "data": {
            "name": data.name,
            "rows": data.rows,
            "dimension": plan.features.p - 1,
            "n_actions": data.n_actions,
            "best_loss": data.best_loss,
        },
        "plan": plan.to_config(),
        "plan_digest": plan.digest,
        "noise": NOISE,
        "seeds": seeds,
        "losses": at_ends[:, -1].tolist(),
        "mean_loss": float(at_ends[:, -1].mean()),
        "standard_error": standard_error(at_ends[:, -1]),
        "best_fixed": float(np.mean([result.best_fixed for result in results])),
        "uniform": float(np.mean([result.uniform for result in results])),
        "rounds": ends.tolist(),
        "curve": at_ends.mean(axis=0).tolist(),
        "curve_standard_error": [standard_error(column) for column in at_ends.T],
    }


def standard_error(values: Any) -> float | None:
    """Standard error of the mean over seeds; None for one seed, which has no spread."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def _lines(
    document: dict[str, Any], out: str | None, losses: GroupLosses | None = None
) -> list[str]:
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
        f"{described(plan['policy'])} with {described(plan['oracle'])}",
        f"no noise: {guarantee_text(epsilon, delta)}" if math.isinf(epsilon) else noise,
        "",
        *table(["rounds", "loss so far", "± s.e."], rows),
        "",
        *([] if losses is None else group_table(losses)),
        f"mean loss {document['mean_loss']:.4f} {_plus_minus(document['standard_error'])} "
        f"over {len(document['seeds'])} seed{'s' * (len(document['seeds']) > 1)}"
        + ("" if best is None else f"; the best possible is {best:.4f}"),
        f"for comparison: the best fixed action {document['best_fixed']:.4f}, "
        f"uniform actions {document['uniform']:.4f}",
        *([f"written to {out}"] if out else []),
    ]


def _whose(plan: dict[str, Any]) -> str:
    """For whom ε is, where it is not for one decision."""
    if plan["unit"] != "user":
        return ""
    often = Participation(plan["batches_per_user"], plan["records_per_batch"])
    return f" for one user, with {often.text}"


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f"± {error:.4f}"
