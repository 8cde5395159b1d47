"""``discreet curve``: loss against ε on a public set, before an experiment begins."""

from __future__ import annotations

import shlex

from discreet.cli import command_line as cli
from discreet.privacy.budget import user_participation
from discreet.simulate.plan_forecast import reward_document
from discreet.simulate.privacy_curve import EPSILONS
from discreet.text import epsilon_text
from discreet.validate import installed

NOT_REPEATED = ("command", "call", "json", "quiet", "out")


@cli.command(
    "curve",
    cli.flag("--data NAME|FILE", "public data set: fried, …, FILE.csv", required=True),
    *(cli.TARGET, cli.USER, *cli.OFTEN_FLAGS, cli.SCHEMA, cli.GROUP),
    cli.flag("--rows N", "rows to generate, or to draw at random from a file", int),
    cli.flag("--horizon T", "number of rounds of a run (default: all rows)", int),
    cli.flag("--features raw|ranges", "scaling of columns (default: raw)", "raw"),
    cli.flag("--epsilon E", "privacy levels (default: 0.5 1 2 4 8 inf)", float, nargs="+"),
    cli.flag("--seeds N", "number of runs per ε (default: 10)", 10),
    *(*cli.REWARD_FLAGS, cli.QUIET),
    cli.flag("--out DIR", "folder for a page, figures and curve.json"),
)
def curve(args: cli.Args) -> cli.Answer:
    """Play the set at every ε, print the table, and write figure and page."""
    from discreet.lab.report.figures import write_files
    from discreet.lab.report.public_curve import (
        curve_document,
        curve_files,
        public_curve,
        public_set,
    )

    named = ("rows", "target", "user", "schema", "group", "features")
    data, groups = public_set(args.data, **{name: getattr(args, name) for name in named})
    often = user_participation(args.user, args.batches_per_user, args.records_per_batch)
    levels, rewards = args.epsilon or EPSILONS, cli.expected_rewards(args)
    found = public_curve(
        data, groups, often, epsilons=levels, seeds=args.seeds, horizon=args.horizon
    )
    document = curve_document(found, data, args.features)
    if rewards is not None:
        plan = rewards.declared(found.plan)
        document["rewards"] = reward_document(plan, rewards.sizes(plan, found.epsilons))
    if args.out:
        installed("campaign", "for figures", "matplotlib", "jinja2")
        files = curve_files(found, document, _again(args))
        files["curve.json"] = cli.as_json(document) + "\n"
        document["files"] = write_files(args.out, files)
    best, losses = document["best_fixed"], found.by_group() if found.group_lines else None
    rows = [
        [
            epsilon_text(point["epsilon"]),
            f"{point['loss']:.4f}",
            f"{point['low']:.4f} … {point['high']:.4f}",
            "yes" if point["high"] < best else "no",
        ]
        for point in document["table"]
    ]
    plain = {"best fixed": best, "uniform": document["uniform"]}
    rows += [[name, f"{level:.4f}", "", ""] for name, level in plain.items()]
    interval = f"{document['confidence']:.0%} interval"
    lines = [
        f"{document['data']['name']}: {document['rounds']:,} rounds, "
        f"{document['data']['n_actions']} actions, {document['seeds']} seeds",
        "",
        *cli.table(["ε", "mean loss", interval, "below best fixed"], rows),
        "",
        *([*cli.table(losses.header, losses.cells), ""] if losses else []),
        document["verdict"],
        *(["", *cli.reward_lines(document["rewards"])] if "rewards" in document else []),
        *document["notes"],
        *(f"written to {file}" for file in document.get("files", ())),
    ]
    return cli.Answer(document, lines)


def _again(args: cli.Args) -> str:
    """Return the command that makes the same page."""
    words = ["discreet", "curve"]
    for name, value in vars(args).items():
        if value is not None and name not in NOT_REPEATED:
            many = value if isinstance(value, list) else [value]
            written = (f"{each:g}" if isinstance(each, float) else str(each) for each in many)
            words += [f"--{name.replace('_', '-')}", *written]
    return shlex.join([*words, "--out", "DIR"])
