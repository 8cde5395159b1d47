"""``discreet curve``: loss against ε on a public set, before an experiment begins."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from discreet.cli.command_line import Answer, Commands, as_json, command, folder, table, write
from discreet.cli.flags import (
    expected_rewards,
    group_flag,
    often_flags,
    quiet_flag,
    reward_flags,
    reward_lines,
    schema_flag,
    target_flag,
    user_flag,
)
from discreet.privacy.budget import user_participation
from discreet.simulate.plan_forecast import reward_document
from discreet.text import epsilon_text
from discreet.types import JsonObject
from discreet.validate import installed

if TYPE_CHECKING:
    from discreet.simulate import PrivacyCurve

TEXT = """\
The default plan is played on a public or simulated set at several ε. Never use private data: the
result depends on every row. --horizon is the number of people that you expect. --group reports the
losses of each group of a public column; groups with fewer than 20 rounds are pooled. --reward-mean
reports the number of decisions that are needed for rewards that are rarer or smaller than labels.

examples:
  discreet curve --data fried --horizon 5000
  discreet curve --data public.csv --target bought --features ranges --out curve
  discreet curve --data public.csv --target bought --group region
  discreet curve --data public.csv --target bought --user customer --batches-per-user 4
"""


def add(commands: Commands) -> None:
    """Add flags for the data, ε and the page."""
    summary = "plot loss against ε on a public set, to choose ε in advance"
    parser = command(commands, "curve", summary, curve, TEXT)
    flag = parser.add_argument
    flag("--data", required=True, metavar="NAME|FILE", help="public data set: fried, …, FILE.csv")
    target_flag(parser)
    user_flag(parser)
    often_flags(parser)
    schema_flag(parser)
    group_flag(parser)
    flag("--rows", type=int, metavar="N", help="rows to generate, or to draw at random from a file")
    flag("--horizon", type=int, metavar="T", help="number of rounds of a run (default: all rows)")
    flag(
        "--features", default="raw", metavar="raw|ranges", help="scaling of columns (default: raw)"
    )
    flag(
        "--epsilon",
        type=float,
        nargs="+",
        metavar="E",
        help="privacy levels (default: 0.5 1 2 4 8 inf)",
    )
    flag("--seeds", type=int, default=10, metavar="N", help="number of runs per ε (default: 10)")
    reward_flags(parser)
    quiet_flag(parser)
    flag("--out", metavar="DIR", help="folder for a page, figures and curve.json")


def curve(args: argparse.Namespace) -> Answer:
    """Play the set at every ε, print the table, and write figure and page."""
    from discreet.lab.report.public_curve import (
        curve_document,
        curve_files,
        public_curve,
        public_set,
    )
    from discreet.simulate.privacy_curve import EPSILONS

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
        out = folder(args.out)
        files = curve_files(found, document, _again(args))
        for name, content in {**files, "curve.json": as_json(document) + "\n"}.items():
            write(out / name, content)
        document["files"] = [str(out / name) for name in (*files, "curve.json")]
    return Answer(document, "\n".join(_lines(document, found)))


def _again(args: argparse.Namespace) -> str:
    """Return the command that makes the same page."""
    words = ["discreet", "curve", "--data", args.data]
    columns = ("target", "user", "batches_per_user", "records_per_batch", "schema", "group")
    rewards = ("reward_mean", "reward_spread", "reward_range", "difference")
    for name in (*columns, "rows", "horizon", "features", "epsilon", "seeds", *rewards):
        value = getattr(args, name)
        if value is not None:
            many = value if isinstance(value, list) else [value]
            written = (f"{each:g}" if isinstance(each, float) else str(each) for each in many)
            words += [f"--{name.replace('_', '-')}", *written]
    return shlex.join([*words, "--out", "DIR"])


def _lines(document: JsonObject, found: PrivacyCurve) -> list[str]:
    best = document["best_fixed"]
    losses = found.by_group() if found.group_lines else None
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
    return [
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
