"""``discreet curve``: loss against ε on a public set, before an experiment begins."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.cli.answer import Answer, as_json, table, write
from discreet.cli.flags import (
    group_flag,
    often_flags,
    quiet_flag,
    schema_flag,
    target_flag,
    user_flag,
)
from discreet.cli.parser import Commands, command
from discreet.cli.reward_flags import (
    expected_sizes,
    reward_flags,
    reward_lines,
    with_rewards,
)
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget, Participation, user_participation
from discreet.simulate.plan_forecast import reward_document
from discreet.text import epsilon_text
from discreet.types import JsonObject
from discreet.validate import installed, one_of, whole

if TYPE_CHECKING:
    from discreet.data import Dataset
    from discreet.simulate import PrivacyCurve

FORMAT = "discreet-curve/1"
NOISE = "Runs have seeded noise of the scale of each ε, and the set is looked at: not private."
COLUMNS = ("raw", "ranges")
TEXT = """\
The default plan plays a public or simulated set at several ε. Never give it people's private data:
the result depends on every row. --horizon is the number of people you expect. --group shows
the losses of each group, for a public column only; groups with fewer than 20 rounds are pooled.
--reward-mean adds the number of decisions that rarer or smaller outcomes than labels would need.

examples:
  discreet curve --data fried --horizon 5000
  discreet curve --data public.csv --target bought --features ranges --out curve
  discreet curve --data public.csv --target bought --group region
  discreet curve --data public.csv --target bought --user customer --batches-per-user 4
"""


def add(commands: Commands) -> None:
    """Add flags for the data, ε and the page."""
    summary = "loss against ε on a public set, to choose ε beforehand"
    parser = command(commands, "curve", summary, curve, TEXT)
    flag = parser.add_argument
    flag("--data", required=True, metavar="NAME|FILE", help="a public set: fried, …, FILE.csv")
    target_flag(parser)
    user_flag(parser)
    often_flags(parser)
    schema_flag(parser)
    group_flag(parser)
    flag("--rows", type=int, metavar="N", help="size of a generated set, or rows drawn from a file")
    flag("--horizon", type=int, metavar="T", help="rounds of a run (default: all rows)")
    flag("--features", default="raw", metavar="raw|ranges", help="columns as in campaigns")
    flag("--epsilon", type=float, nargs="+", metavar="E", help="default: 0.5 1 2 4 8 inf")
    flag("--seeds", type=int, default=10, metavar="N", help="runs per ε (default: 10)")
    reward_flags(parser)
    quiet_flag(parser)
    flag("--out", metavar="DIR", help="also write a page, figures and curve.json here")


def curve(args: argparse.Namespace) -> Answer:
    """Play the set at every ε, print the table, and write figure and page."""
    from discreet.simulate import privacy_curve
    from discreet.simulate.privacy_curve import EPSILONS

    data, groups = _data(args)
    contexts = _contexts(data, args.features, args.schema)
    often = user_participation(args.user, args.batches_per_user, args.records_per_batch)
    found = privacy_curve(
        contexts,
        data.labels,
        groups=groups,
        users=data.users,
        plan=None if often is None else _plan(contexts.shape[1], data.n_actions, often),
        epsilons=args.epsilon or EPSILONS,
        seeds=args.seeds,
        horizon=args.horizon,
    )
    notes = [*_notes(args), *_whose(found.plan, data)]
    document = _document(found, data, args.features, notes)
    rewarded = with_rewards(found.plan, args)
    sizes = expected_sizes(rewarded, args, found.epsilons)
    if sizes is not None:
        document["rewards"] = reward_document(rewarded, sizes)
    if args.out:
        document["files"] = _write(Path(args.out), found, data.name, notes, document, args)
    return Answer(document, "\n".join(_lines(document, found)))


def _data(args: argparse.Namespace) -> tuple[Dataset, Any]:
    """Return the data set and its groups, if any.

    A file is cut to rows drawn at random, since files are often sorted by class.
    """
    from dataclasses import replace

    from discreet.data import load
    from discreet.data.dataset import with_schema
    from discreet.data.lookup import GENERATORS
    from discreet.simulate.group_losses import file_groups

    generated = args.rows if args.data in GENERATORS else None
    encoded = args.schema is None
    data = load(args.data, rows=generated, target=args.target, encoded=encoded, user=args.user)
    groups = None if args.group is None else file_groups(data, args.group)
    if args.schema is not None:
        data = with_schema(Schema.from_toml(args.schema), data)
    if args.rows is None or generated is not None:
        return data, groups
    rows = min(whole("rows", args.rows, 1), data.rows)
    some = np.random.default_rng(0).permutation(data.rows)[:rows]
    users = None if data.users is None else data.users[some]
    contexts, labels = data.contexts[some], data.labels[some]
    cut = replace(data, contexts=contexts, labels=labels, source=None, users=users)
    return cut, None if groups is None else groups[some]


def _contexts(data: Dataset, features: str, schema: str | None) -> Any:
    from discreet.lab.campaign.tasks import scaled

    if schema is not None and features != "raw":
        raise InvalidInput(
            f"features must be raw with a schema, which has ranges; got {features!r}. Leave it out."
        )
    return scaled(data.contexts, one_of("features", features, COLUMNS))


def _plan(dimension: int, n_actions: int, often: Participation) -> Plan:
    """Return the default plan for users."""
    return Plan(
        n_actions=n_actions,
        features=UnitBall(dimension),
        budget=Budget.none(),
        unit="user",
        batches_per_user=often.batches,
        records_per_batch=often.records,
    )


def _whose(plan: Plan, data: Dataset) -> list[str]:
    if plan.participation is None or data.users is None:
        return []
    people = len(np.unique(data.users))
    return [f"ε is for one of {people:,} users, who contributes {plan.participation.text}."]


def _notes(args: argparse.Namespace) -> list[str]:
    if args.features == "raw":
        return [NOISE]
    from discreet.lab.campaign.tasks import NOT_PRIVATE

    return [NOISE, f"The {NOT_PRIVATE}: with people, declare public ranges in a Schema."]


def _document(found: PrivacyCurve, data: Dataset, features: str, notes: list[str]) -> JsonObject:
    return {
        "format": FORMAT,
        "data": {"name": data.name, "rows": data.rows, "n_actions": data.n_actions},
        "features": features,
        "rounds": found.rounds,
        "seeds": found.seeds,
        "confidence": found.confidence,
        "table": [point._asdict() for point in found.table],
        "best_fixed": found.best_fixed,
        "uniform": found.uniform,
        "helps_from": found.helps_from,
        "verdict": found.verdict,
        "plan": found.plan.to_config(),
        "notes": notes,
        **({"groups": found.by_group().to_json()} if found.group_lines else {}),
    }


def _write(
    out: Path,
    found: PrivacyCurve,
    name: str,
    notes: list[str],
    document: JsonObject,
    args: argparse.Namespace,
) -> list[str]:
    installed("campaign", "for figures", "matplotlib", "jinja2")
    from discreet.lab.report.privacy_page import group_figure, privacy_figure, privacy_page

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out must be a folder to write to; {out} is not ({error.strerror}). "
            "Choose another place."
        ) from None
    page = privacy_page(found, name, notes, _again(args))
    files: dict[str, str | bytes] = {
        "index.html": page,
        "curve.png": privacy_figure(found).png(),
        "curve.json": as_json(document) + "\n",
    }
    if found.group_lines:
        files["groups.png"] = group_figure(found).png()
    for file, content in files.items():
        write(out / file, content)
    return [str(out / file) for file in files]


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
        *(_group_lines(found) if found.group_lines else []),
        document["verdict"],
        *(["", *reward_lines(document["rewards"])] if "rewards" in document else []),
        *document["notes"],
        *(f"written to {file}" for file in document.get("files", ())),
    ]


def _group_lines(found: PrivacyCurve) -> list[str]:
    losses = found.by_group()
    return [*table(losses.header, losses.cells), ""]
