"""``discreet run``: one experiment on labelled data, played once per seed."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from discreet.cli.answer import Answer, as_json, described, table, write
from discreet.cli.experiment_file import TEXT, Experiment, experiment_flags, from_arguments
from discreet.cli.parser import Commands, command
from discreet.formatting import guarantee_text
from discreet.schedule import Schedule
from discreet.simulate import evaluate

FORMAT = "discreet-result/1"
NOISE = "seeded: the noise has the scale of ε but protects no one"
EXAMPLES = """
examples:
  discreet run --data fried --policy SquareCB --set scale=4 --epsilon 1 --seeds 10
  discreet run experiment.toml --epsilon 4 --out result.json"""


def add(commands: Commands) -> None:
    """An experiment, and where its result goes."""
    summary = "play labelled data as a bandit and print the mean loss"
    parser = command(commands, "run", summary, run, TEXT + EXAMPLES)
    experiment_flags(parser)
    parser.add_argument("--out", metavar="FILE", help="also write the JSON result here")


def run(args: argparse.Namespace) -> Answer:
    """Play every seed and report the losses."""
    experiment = from_arguments(args, needs_data=True)
    document = play(experiment)
    if args.out:
        write(args.out, as_json(document) + "\n")
    return Answer(document, "\n".join(_lines(document, args.out)))


def play(experiment: Experiment) -> dict[str, Any]:
    """Every seed once: final losses, and the curve at batch ends."""
    plan, data = experiment.plan, experiment.data
    assert data is not None
    seeds = list(range(experiment.seeds))
    contexts = experiment.contexts
    results = [evaluate(plan, contexts, data.labels, seed=seed) for seed in seeds]
    rounds = len(results[0].losses)
    ends = np.cumsum(Schedule(plan.first_batch, rounds, plan.growth).lengths())
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


def _lines(document: dict[str, Any], out: str | None) -> list[str]:
    data, plan, budget = document["data"], document["plan"], document["plan"]["budget"]
    epsilon, delta = float(budget["epsilon"]), float(budget["delta"])
    noise = f"noise scale of {guarantee_text(epsilon, delta)}; seeded noise, not private"
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
        f"mean loss {document['mean_loss']:.4f} {_plus_minus(document['standard_error'])} "
        f"over {len(document['seeds'])} seed{'s' * (len(document['seeds']) > 1)}"
        + ("" if best is None else f"; the best possible is {best:.4f}"),
        f"for comparison: the best fixed action {document['best_fixed']:.4f}, "
        f"uniform actions {document['uniform']:.4f}",
        *([f"written to {out}"] if out else []),
    ]


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f"± {error:.4f}"
