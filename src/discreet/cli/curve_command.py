"""``discreet curve``: loss against ε on a public set, before an experiment begins."""

from __future__ import annotations

import shlex

from discreet.cli.command_line import (
    GROUP,
    OFTEN_FLAGS,
    QUIET,
    REWARD_FLAGS,
    SCHEMA,
    TARGET,
    USER,
    Answer,
    Args,
    as_json,
    command,
    expected_rewards,
    flag,
    reward_lines,
    table,
    write_all,
)
from discreet.privacy.budget import user_participation
from discreet.simulate.plan_forecast import reward_document
from discreet.simulate.privacy_curve import EPSILONS
from discreet.text import epsilon_text
from discreet.validate import installed

NOT_REPEATED = ("command", "call", "json", "quiet", "out")


@command(
    "curve",
    flag("--data NAME|FILE", "public data set: fried, …, FILE.csv", required=True),
    *(TARGET, USER, *OFTEN_FLAGS, SCHEMA, GROUP),
    flag("--rows N", "rows to generate, or to draw at random from a file", int),
    flag("--horizon T", "number of rounds of a run (default: all rows)", int),
    flag("--features raw|ranges", "scaling of columns (default: raw)", "raw"),
    flag("--epsilon E", "privacy levels (default: 0.5 1 2 4 8 inf)", float, nargs="+"),
    flag("--seeds N", "number of runs per ε (default: 10)", 10),
    *(*REWARD_FLAGS, QUIET),
    flag("--out DIR", "folder for a page, figures and curve.json"),
)
def curve(args: Args) -> Answer:
    """Play the set at every ε, print the table, and write figure and page."""
    from discreet.lab.report.public_curve import (
        curve_document,
        curve_files,
        public_curve,
        public_set,
    )

    named = ("rows", "target", "user", "schema", "group", "features")
    data, groups = public_set(args.data, **{name: getattr(args, name) for name in named})
    often = user_participation(args.user, args.batches_per_user, args.records_per_batch)
    levels, rewards = args.epsilon or EPSILONS, expected_rewards(args)
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
        files["curve.json"] = as_json(document) + "\n"
        document["files"] = write_all(args.out, files)
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
        *table(["ε", "mean loss", interval, "below best fixed"], rows),
        "",
        *([*table(losses.header, losses.cells), ""] if losses else []),
        document["verdict"],
        *(["", *reward_lines(document["rewards"])] if "rewards" in document else []),
        *document["notes"],
        *(f"written to {file}" for file in document.get("files", ())),
    ]
    return Answer(document, lines)


def _again(args: Args) -> str:
    """Return the command that makes the same page."""
    words = ["discreet", "curve"]
    for name, value in vars(args).items():
        if value is not None and name not in NOT_REPEATED:
            many = value if isinstance(value, list) else [value]
            written = (f"{each:g}" if isinstance(each, float) else str(each) for each in many)
            words += [f"--{name.replace('_', '-')}", *written]
    return shlex.join([*words, "--out", "DIR"])
