"""An experiment on labelled data: a plan, a data set and a number of seeds, from a document."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.plan.config import to_config
from discreet.plan.plan import Plan
from discreet.plan.registry import ORACLES, POLICIES
from discreet.releases.canonical import read_document
from discreet.simulate import Evaluation, evaluate
from discreet.simulate.group_losses import GroupLosses, file_groups, lines_over_seeds
from discreet.text import read_toml
from discreet.types import Contexts, Values
from discreet.validate import nearest, one_of, whole

if TYPE_CHECKING:
    from discreet.data import Dataset

FORMAT = "discreet-result/1"
CONFIDENCE = 0.95
NOISE = "seeded: the noise has the scale of ε but protects no one"
OWN_KEYS = ("data", "target", "user", "schema", "rows", "seeds")
"""Keys of an experiment that are not keys of its plan."""
WORDS = (
    *("feedback", "losses", "first_batch", "growth", "longest_batch", "missing_loss", "releases"),
    *("close_every", "half_life", "imported"),
    *("unit", "batches_per_user", "records_per_batch"),
)
"""Keys of the plan itself that ``--set`` reaches."""
PEOPLE = ("unit", "batches_per_user", "records_per_batch")
"""Keys about users: of a plan, and of the file of a service."""
DEFAULT = {"policy": "AdaptivePO", "oracle": "PooledRidge"}


@dataclass(frozen=True)
class Experiment:
    """A plan, its data (None for planning without data) and a number of seeds."""

    plan: Plan
    data: Dataset | None
    seeds: int
    rows: int | None

    @property
    def contexts(self) -> Contexts:
        """Contexts for the plan: numbers, or columns by name for a schema."""
        assert self.data is not None
        if not isinstance(self.plan.features, Schema):
            return self.data.contexts
        from discreet.data.dataset import schema_contexts

        return schema_contexts(self.plan.features, self.data)


def experiment_of(document: dict[str, Any], *, needs_data: bool = False) -> Experiment:
    """Return the experiment of a document with the keys of a plan and ``OWN_KEYS``."""
    from discreet.data import load

    document = dict(document)
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
    """Return the document of a TOML file, with paths relative to it.

    Of the file of a service it is the plan, with the keys about users.
    """
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


def _kind(features: object) -> object:
    return features.get("kind") if isinstance(features, dict) else None


def assign(document: dict[str, Any], assignment: str) -> None:
    """Set ``key=value`` in the policy, the oracle or the plan, whichever has the key."""
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


def _value(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def play_seeds(experiment: Experiment, group: str | None = None) -> list[Evaluation]:
    """Play every seed once."""
    data, contexts = experiment.data, experiment.contexts
    assert data is not None
    groups = None if group is None else file_groups(data, group)
    return [
        evaluate(experiment.plan, contexts, data.labels, groups=groups, seed=seed, users=data.users)
        for seed in range(experiment.seeds)
    ]


def losses_by_group(results: list[Evaluation]) -> GroupLosses:
    """Return losses by group with intervals over seeds, or over the rounds of a single seed."""
    if len(results) == 1:
        return results[0].by_group()
    played = [result.groups for result in results if result.groups is not None]
    lost = [each.lost(result.losses) for each, result in zip(played, results, strict=True)]
    levels = [results[0].noise_scale_of.epsilon]
    lines = lines_over_seeds(played, np.asarray([lost]), levels, CONFIDENCE)
    return GroupLosses(lines, CONFIDENCE, results[0].outcome)


def result_document(experiment: Experiment, results: list[Evaluation]) -> dict[str, Any]:
    """Return final losses, and the curve at batch ends."""
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


def standard_error(values: Values) -> float | None:
    """Return the standard error of the mean over seeds; None for one seed."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))
