"""One experiment, from flags, from a TOML file, or from a file that flags change."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.own_code import import_flag
from discreet.cli.people_flags import user_flag
from discreet.cli.spoken_advice import quiet_flag
from discreet.config import to_config
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.plan import Plan
from discreet.registry import ORACLES, POLICIES
from discreet.releases.canonical import read_document
from discreet.toml_files import read_toml
from discreet.validate import nearest, one_of, whole

if TYPE_CHECKING:
    from discreet.data import Dataset

TEXT = """\
An experiment is a TOML file, or flags, or a file that flags correct. The policy is AdaptivePO
and the oracle PooledRidge unless said otherwise: they need no tuning. --set reaches every
parameter of policy, oracle and plan: scale=16, ridge=0.001, mechanism=paper, first_batch=64.
Supervised is --policy Greedy --set feedback=full --set losses=one_label.
"""
OWN_KEYS = ("data", "target", "user", "schema", "rows", "seeds")
"""What an experiment has beyond its plan."""
WORDS = (
    *("feedback", "losses", "first_batch", "growth", "longest_batch", "missing_loss", "releases"),
    *("close_every", "half_life", "imported"),
    *("unit", "batches_per_user", "records_per_batch"),
)
"""Keys of the plan itself that ``--set`` reaches."""
PEOPLE = ("unit", "batches_per_user", "records_per_batch")
"""What the file of a service says at its top and a plan says itself."""
DEFAULT = {"policy": "AdaptivePO", "oracle": "PooledRidge"}


@dataclass(frozen=True)
class Experiment:
    """A plan, the data it will meet (None while planning without any) and how often."""

    plan: Plan
    data: Dataset | None
    seeds: int
    rows: int | None

    @property
    def contexts(self) -> Any:
        """What the plan maps: numbers, or columns by name where it has a schema."""
        assert self.data is not None
        if not isinstance(self.plan.features, Schema):
            return self.data.contexts
        from discreet.simulate.schema_columns import schema_contexts

        return schema_contexts(self.plan.features, self.data)


def experiment_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that ``discreet run`` and ``discreet plan`` share."""
    flag = parser.add_argument
    flag(
        "file",
        nargs="?",
        metavar="experiment.toml",
        help="keys of a plan, and data, rows, seeds; or the file of a service",
    )
    flag("--data", metavar="NAME|FILE", help="fried, linear, logistic, digits, …, .npz or .csv")
    target_flag(parser)
    user_flag(parser)
    schema_flag(parser)
    flag("--rows", type=int, metavar="N", help="size of a generated set")
    flag("--policy", metavar="NAME", help=", ".join(POLICIES))
    flag("--oracle", metavar="NAME", help=", ".join(ORACLES))
    flag("--set", action="append", metavar="KEY=VALUE", help="a parameter; may be repeated")
    flag("--epsilon", type=float, metavar="E", help="noise scale; inf for none (default: 1)")
    flag("--delta", type=float, metavar="D", help="0 for pure mechanisms (default: 1e-5)")
    flag("--seeds", type=int, metavar="N", help="runs, seeded 0 … N−1 (default: 5)")
    quiet_flag(parser)
    import_flag(parser)
    parser.set_defaults(horizon=None, actions=None, dimension=None)


def target_flag(parser: argparse.ArgumentParser) -> None:
    """Which column of a file is the class."""
    words = "the class of a file: a column's name or number from 1 (default: the last)"
    parser.add_argument("--target", metavar="COLUMN", help=words)


def schema_flag(parser: argparse.ArgumentParser) -> None:
    """What the columns of a file mean."""
    words = "what the columns of a file mean, by public rules (default: numbers as they are)"
    parser.add_argument("--schema", metavar="FILE.toml", help=words)


def group_flag(parser: argparse.ArgumentParser) -> None:
    """By which column of a file losses are broken down."""
    words = "also losses by group: a public column of a file; never one that is private"
    parser.add_argument("--group", metavar="COLUMN", help=words)


def from_arguments(args: argparse.Namespace, *, needs_data: bool = False) -> Experiment:
    """The experiment of ``discreet run``, which needs data, or of ``discreet plan``."""
    from discreet.data import load
    from discreet.data.files import is_file_name

    document: dict[str, Any] = {"budget": {"epsilon": 1.0, "delta": 1e-5}}
    if args.file and is_file_name(args.file):
        raise InvalidInput(
            f"experiment file must be TOML; got {args.file!r}. For data write --data {args.file}."
        )
    if args.file:
        document = read_experiment(args.file)
    apply_flags(document, args)
    known = (*OWN_KEYS, *(each.name for each in fields(Plan)))
    for name in document:
        if name not in known:
            raise InvalidInput(
                f"experiment must have only known keys; got {name!r}. {nearest(name, known)}"
            )
    name, rows = document.pop("data", None), document.pop("rows", None)
    target, user = document.pop("target", None), document.pop("user", None)
    seeds = whole("seeds", document.pop("seeds", 5), 1)
    if rows is not None:
        whole("rows", rows, 1)
    if name is not None and not isinstance(name, str):
        raise InvalidInput(f"data must be a name or a path; got {name!r}. Write it as text.")
    if name is None and needs_data:
        raise InvalidInput(
            "data must be given to run; none were named. Add --data fried, --data FILE.csv, or the "
            "key data to the experiment file."
        )
    for key, column in (("target", target), ("user", user)):
        if name is None and column is not None:
            raise InvalidInput(
                f"{key} must come with data; got {column!r} alone. Add --data FILE.csv."
            )
    if user is not None:
        document.setdefault("unit", "user")
    schema = document.pop("schema", None)
    if schema is not None:
        document["features"] = to_config(Schema.from_toml(schema))
    by_schema = _kind(document.get("features")) == "Schema"
    data = None
    if name is not None:
        data = load(name, rows=rows, target=target, encoded=not by_schema, user=user)
    if data is not None:
        if "actions" not in document:
            document.setdefault("n_actions", data.n_actions)
        document.setdefault("features", {"kind": "UnitBall", "dimension": data.dimension})
    named = {"n_actions"} if "actions" in document else set()  # names are counted
    missing = [key for key in ("n_actions", "features") if key not in document.keys() | named]
    if missing:
        raise InvalidInput(
            f"{' and '.join(missing)} must be known; no data were named. "
            "Add --data fried, or --actions and --dimension to plan without data."
        )
    plan = Plan.from_config(document)
    if needs_data and plan.unit == "user" and user is None:
        raise InvalidInput(
            "user must name the column of ids where the unit is 'user'; got none. "
            "Add --user COLUMN, or the key user to the experiment file."
        )
    return Experiment(plan, data, seeds, rows)


def read_experiment(path: str) -> dict[str, Any]:
    """The document of a TOML file; a data file is relative to it. Of a service's file it is the
    plan, with what the file says of people."""
    document = read_toml(path, "experiment")
    if isinstance(document.get("plan"), dict):
        people = {name: document[name] for name in PEOPLE if name in document}
        document = document["plan"] | people
    data = document.get("data")
    if isinstance(data, str) and Path(data).suffix:
        document["data"] = str(Path(path).parent / data)
    if isinstance(document.get("schema"), str):
        document["schema"] = str(Path(path).parent / document["schema"])
    if isinstance(document.get("prior"), str):
        document["prior"] = read_document(Path(path).parent / document["prior"])
    return document


def _kind(features: Any) -> Any:
    return features.get("kind") if isinstance(features, dict) else None


def apply_flags(document: dict[str, Any], args: argparse.Namespace) -> None:
    """Flags win over the file."""
    for name in ("data", "target", "user", "schema", "rows", "seeds", "horizon"):
        if getattr(args, name) is not None:
            document[name] = getattr(args, name)
    if args.actions is not None:  # a count or names, instead of those in the file
        for name in ("n_actions", "actions"):
            document.pop(name, None)
        document["n_actions" if isinstance(args.actions, int) else "actions"] = args.actions
    if args.dimension is not None:
        document["features"] = {"kind": "UnitBall", "dimension": args.dimension}
    for part in DEFAULT:
        if getattr(args, part) is not None:
            document[part] = {"kind": getattr(args, part)}
    if args.epsilon is not None or args.delta is not None:
        known = document.get("budget")
        budget = {"delta": 1e-5, **(known if isinstance(known, dict) else {})}
        given = {"epsilon": args.epsilon, "delta": args.delta}
        document["budget"] = budget | {
            key: value for key, value in given.items() if value is not None
        }
    for assignment in args.set or ():
        assign(document, assignment)


def assign(document: dict[str, Any], assignment: str) -> None:
    """``key=value`` into the policy, the oracle or the plan, wherever the key is known."""
    key, equals, text = assignment.partition("=")
    if not equals:
        raise InvalidInput(
            f"--set must be key=value; got {assignment!r}. Write --set {assignment}=value."
        )
    places: dict[str, dict[str, Any]] = dict.fromkeys(WORDS, document)
    for part, registry in (("oracle", ORACLES), ("policy", POLICIES)):
        table = document.setdefault(part, {"kind": DEFAULT[part]})
        if isinstance(table, dict) and "kind" in table:
            kind = registry[one_of(part, table["kind"], registry)]
            places |= {each.name: table for each in fields(kind)}
    if key not in places:
        listed = ", ".join(sorted(places))
        raise InvalidInput(f"--set must name one of {listed}; got {key!r}. {nearest(key, places)}")
    places[key][key] = _value(text)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)
