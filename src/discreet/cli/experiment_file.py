"""One experiment, from flags, from a TOML file, or from a file that flags correct."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from discreet.cli import toml_file
from discreet.data import Dataset, load
from discreet.errors import InvalidInput
from discreet.plan import Plan
from discreet.registry import ORACLES, POLICIES
from discreet.validate import nearest, one_of, whole

OWN_KEYS = ("data", "rows", "seeds")
"""What an experiment has beyond its plan."""
WORDS = ("feedback", "losses", "first_batch", "missing_loss", "releases", "unit")
"""Keys of the plan itself that ``--set`` reaches."""
DEFAULT = {"policy": "ReplayBonusPO", "oracle": "PooledRidge"}


@dataclass(frozen=True)
class Experiment:
    """A plan, the data it will meet (None while planning without any) and how often."""

    plan: Plan
    data: Dataset | None
    seeds: int
    rows: int | None


def from_arguments(args: argparse.Namespace) -> Experiment:
    """The experiment of ``discreet run`` or ``discreet plan``."""
    document: dict[str, Any] = {"budget": {"epsilon": 1.0, "delta": 1e-5}}
    if args.file:
        document = read_toml(args.file)
    apply_flags(document, args)
    known = (*OWN_KEYS, *(each.name for each in fields(Plan)))
    for name in document:
        if name not in known:
            raise InvalidInput(
                f"experiment must have only known keys; got {name!r}. {nearest(name, known)}"
            )
    name, rows = document.pop("data", None), document.pop("rows", None)
    seeds = whole("seeds", document.pop("seeds", 5), 1)
    if rows is not None:
        whole("rows", rows, 1)
    if name is not None and not isinstance(name, str):
        raise InvalidInput(f"data must be a name or a path; got {name!r}. Write it as text.")
    data = None if name is None else load(name, rows=rows)
    if data is not None:
        document.setdefault("n_actions", data.n_actions)
        document.setdefault("features", {"kind": "UnitBall", "dimension": data.dimension})
    missing = [key for key in ("n_actions", "features") if key not in document]
    if missing:
        raise InvalidInput(
            f"{' and '.join(missing)} must be known; no data were named. "
            "Add --data fried, or --actions and --dimension to plan without data."
        )
    return Experiment(Plan.from_config(document), data, seeds, rows)


def read_toml(path: str) -> dict[str, Any]:
    """The document of a TOML file; a data file is looked for beside it."""
    document = toml_file.read(path, "experiment")
    data = document.get("data")
    if isinstance(data, str) and Path(data).suffix:
        document["data"] = str(Path(path).parent / data)
    return document


def apply_flags(document: dict[str, Any], args: argparse.Namespace) -> None:
    """Flags win over the file."""
    for name in ("data", "rows", "seeds", "horizon", "n_actions"):
        if getattr(args, name) is not None:
            document[name] = getattr(args, name)
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
        raise InvalidInput(f"--set must be key=value; got {assignment!r}. Write --set scale=16.")
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
