"""``discreet run``: one experiment on labelled data, played once per seed."""

from __future__ import annotations

import math

from discreet.cli import command_line as cli
from discreet.plan.config import config_text
from discreet.privacy.budget import Participation
from discreet.simulate.experiment import losses_by_group, play_seeds, result_document
from discreet.text import guarantee_text


@cli.command(
    "run",
    *cli.EXPERIMENT_FLAGS,
    cli.GROUP,
    cli.flag("--out FILE", "also write the result as JSON"),
)
def run(args: cli.Args) -> cli.Answer:
    """Play every seed and report the losses."""
    experiment = cli.experiment_from(args, needs_data=True)
    results = play_seeds(experiment, args.group)
    document = result_document(experiment, results)
    losses = None if args.group is None else losses_by_group(results)
    if losses is not None:
        document["groups"] = losses.to_json()
    if args.out:
        cli.write(args.out, cli.as_json(document) + "\n")
    data, plan, budget = document["data"], document["plan"], document["plan"]["budget"]
    epsilon, best, runs = float(budget["epsilon"]), data["best_loss"], len(document["seeds"])
    guarantee = guarantee_text(epsilon, float(budget["delta"]))
    whose = ""
    if plan["unit"] == "user":
        often = Participation(plan["batches_per_user"], plan["records_per_batch"])
        whose = f" for one user, with {often.text}"
    noise = f"noise scale of {guarantee}{whose}; seeded noise, not private"
    columns = (document[name] for name in ("rounds", "curve", "curve_standard_error"))
    rows = [
        [end, f"{loss:.4f}", _plus_minus(error)] for end, loss, error in zip(*columns, strict=True)
    ]
    lines = [
        f"{data['name']}: {document['rounds'][-1]:,} rounds, "
        f"{data['dimension']} numbers per context, {data['n_actions']} actions",
        f"{config_text(plan['policy'])} with {config_text(plan['oracle'])}",
        f"no noise: {guarantee}" if math.isinf(epsilon) else noise,
        "",
        *cli.table(["rounds", "loss so far", "± s.e."], rows),
        "",
        *([] if losses is None else [*cli.table(losses.header, losses.cells), ""]),
        f"mean loss {document['mean_loss']:.4f} {_plus_minus(document['standard_error'])} "
        f"over {runs} seed{'s' * (runs > 1)}"
        + ("" if best is None else f"; the best possible is {best:.4f}"),
        f"for comparison: the best fixed action {document['best_fixed']:.4f}, "
        f"uniform actions {document['uniform']:.4f}",
        *([f"written to {args.out}"] if args.out else []),
    ]
    return cli.Answer(document, lines)


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f"± {error:.4f}"
