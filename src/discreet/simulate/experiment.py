"""Experiments on labelled data, and logs of earlier decisions, as files and plans declare them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.batches.log_import import LoggedRows, logged_rows
from discreet.data import Dataset, load
from discreet.data.dataset import column_contexts, schema_contexts
from discreet.data.decision_logs import DSJSON, log_columns
from discreet.data.files import declared_features
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.learner import Learner
from discreet.plan.config import to_config
from discreet.plan.plan import Plan
from discreet.plan.registry import ORACLES, POLICIES
from discreet.releases.canonical import read_document
from discreet.releases.prior import Prior
from discreet.simulate.evaluation import Evaluation, evaluate
from discreet.simulate.group_losses import GroupLosses, file_groups, lines_over_seeds
from discreet.simulate.warm_start import prior_from_logs
from discreet.text import listed, read_toml
from discreet.types import Contexts, NumpyArray, Values
from discreet.validate import nearest, one_of, whole

CONFIDENCE = 0.95
OWN_KEYS = ("data", "target", "user", "schema", "rows", "seeds")
"""Keys of an experiment that are not keys of its plan."""
PEOPLE = ("unit", "batches_per_user", "records_per_batch")
"""Keys about users: of a plan, and of the file of a service."""
WORDS = (
    *("feedback", "losses", "first_batch", "growth", "longest_batch", "missing_loss", "releases"),
    *("close_every", "half_life", "imported", *PEOPLE),
)
"""Keys of the plan itself that ``--set`` reaches."""
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
        return schema_contexts(self.plan.features, self.data)


def experiment_of(document: dict[str, Any], *, needs_data: bool = False) -> Experiment:
    """Return the experiment of a document with the keys of a plan and ``OWN_KEYS``."""
    known = (*OWN_KEYS, *(each.name for each in fields(Plan)))
    for key in document:
        if key not in known:
            raise InvalidInput(
                f"experiment must have only known keys; got {key!r}. {nearest(key, known)}"
            )
    own = {key: document.get(key) for key in OWN_KEYS}
    document = {key: value for key, value in document.items() if key not in OWN_KEYS}
    name, target, user, rows = own["data"], own["target"], own["user"], own["rows"]
    seeds = whole("seeds", 5 if own["seeds"] is None else own["seeds"], 1)
    if rows is not None:
        whole("rows", rows, 1)
    if (name is None and needs_data) or not isinstance(name, (str, type(None))):
        raise InvalidInput(
            f"data must be the name of a set or a path; got {name!r}. Add --data fried, --data "
            "FILE.csv, or the key data to the experiment file."
        )
    if name is None and (target or user):
        key = "target" if target else "user"
        raise InvalidInput(
            f"{key} must come with data; got {target or user!r} alone. Add --data FILE.csv."
        )
    if user is not None:
        document.setdefault("unit", "user")
    if own["schema"] is not None:
        document["features"] = to_config(Schema.from_toml(own["schema"]))
    features, data = document.get("features"), None
    if name is not None:
        by_schema = isinstance(features, dict) and features.get("kind") == "Schema"
        data = load(name, rows=rows, target=target, encoded=not by_schema, user=user)
        if "actions" not in document:
            document.setdefault("n_actions", data.n_actions)
        document.setdefault("features", {"kind": "UnitBall", "dimension": data.dimension})
    missing = {"n_actions", "features"} - document.keys()
    if "actions" in document:  # names are counted
        missing.discard("n_actions")
    if missing:
        raise InvalidInput(
            f"{' and '.join(sorted(missing, reverse=True))} must be known; no data were named. "
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
    for key in ("data", "schema", "prior"):
        name = document.get(key)
        if isinstance(name, str) and (key != "data" or Path(name).suffix):
            document[key] = str(Path(path).parent / name)
            if key == "prior":
                document[key] = read_document(document[key])
    return document


def assign(document: dict[str, Any], assignment: str) -> None:
    """Set ``key=value`` in the policy, the oracle or the plan, whichever has the key."""
    key, equals, text = assignment.partition("=")
    if not equals:
        raise InvalidInput(
            f"--set must be key=value; got {assignment!r}. Write --set {assignment}=value."
        )
    tables: dict[str, dict[str, Any]] = dict.fromkeys(WORDS, document)
    for part, registry in (("oracle", ORACLES), ("policy", POLICIES)):
        table = document.setdefault(part, {"kind": DEFAULT[part]})
        if isinstance(table, dict) and "kind" in table:
            kind = registry[one_of(part, table["kind"], registry)]
            tables |= {each.name: table for each in fields(kind)}
    if key not in tables:
        listed = ", ".join(sorted(tables))
        raise InvalidInput(f"--set must name one of {listed}; got {key!r}. {nearest(key, tables)}")
    tables[key][key] = _value(text)


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
    first = results[0].by_group()
    if len(results) == 1:
        return first
    played = [result.groups for result in results if result.groups is not None]
    lost = [each.summed(result.losses) for each, result in zip(played, results, strict=True)]
    levels = [results[0].plan.budget.epsilon]
    return replace(first, lines=lines_over_seeds(played, np.asarray([lost]), levels, CONFIDENCE))


def result_document(experiment: Experiment, results: list[Evaluation]) -> dict[str, Any]:
    """Return final losses, and the curve at batch ends."""
    plan, data = experiment.plan, experiment.data
    assert data is not None
    ends = results[0].table["rounds"]
    at_ends = np.stack([result.curve for result in results])[:, ends - 1]
    size = {"dimension": plan.features.p - 1, "n_actions": data.n_actions}
    return {
        "format": "discreet-result/1",
        "data": {"name": data.name, "rows": data.rows, **size, "best_loss": data.best_loss},
        "plan": plan.to_config(),
        "plan_digest": plan.digest,
        "noise": "seeded: the noise has the scale of ε but protects no one",
        "seeds": list(range(experiment.seeds)),
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
    count = len(values)
    return None if count < 2 else float(np.std(values, ddof=1) / math.sqrt(count))


class PlanLog(NamedTuple):
    """PRIVATE: columns of a log, by the role that they have in a plan."""

    plan: Plan
    name: str
    contexts: Contexts
    actions: NumpyArray
    outcome: dict[str, Any]
    """By its name: losses or reward."""
    people: dict[str, Any]
    """Users and items."""

    def __repr__(self) -> str:
        return "PlanLog(private)"

    def rows(self) -> LoggedRows:
        """Return the rows, checked, for the database of a service."""
        given = {"losses": None, "reward": None} | self.outcome | self.people
        return logged_rows(self.plan, self.contexts, self.actions, **given)

    def learner(self) -> Learner:
        """Return a new learner that has released the log."""
        made = Learner(replace(self.plan, imported=self.plan.imported or len(self.actions)))
        made.import_log(self.contexts, self.actions, **self.outcome, **self.people)
        return made

    def prior(self, weight: float) -> Prior:
        """Return the prior of a log that is public, without noise."""
        source = f"public log {self.name}"
        given: dict[str, Any] = {**self.outcome, "weight": weight, "source": source}
        return prior_from_logs(self.plan, self.contexts, self.actions, **given)


def read_log(
    plan: Plan,
    path: str,
    *,
    action: str = "action",
    loss: str | None = None,
    reward: str | None = None,
    user: str | None = None,
    ignore: Sequence[str] = (),
) -> PlanLog:
    """Return the log of a file; ``ignore`` are columns that are no features."""
    items: dict[str, Any] | None = None if plan.catalogue is None else {}
    columns = log_columns(path, items)
    if plan.catalogue is not None and items and isinstance(plan.catalogue.schema, Schema):
        schema = plan.catalogue.schema
        items = {name: declared_features(schema, each) for name, each in items.items()}
    word = plan.outcome.word
    named, wrong = (loss, reward) if word == "loss" else (reward, loss)
    if wrong is not None:
        raise InvalidInput(
            f"log must have a {word}, which the plan declares; got another kind. "
            f"Write --{word} COLUMN, or change the outcome of the plan."
        )
    outcome = named or ("cost" if word == "loss" and "cost" in columns else word)
    labels = ["probability", *(("cost", "reward") if Path(path).suffix in DSJSON else ())]
    used = [action, outcome, *([] if user is None else [user]), *labels, *ignore]
    actions, outcomes = _column(columns, action, "action"), _column(columns, outcome, word)
    people = {"user": user and _column(columns, user, "user"), "items": items or None}
    outcome_of_rows = {"losses" if word == "loss" else "reward": outcomes}
    contexts = _contexts(plan, columns, used)
    return PlanLog(plan, Path(path).name, contexts, actions, outcome_of_rows, people)


def _column(columns: Mapping[str, NumpyArray], name: str, kind: str) -> NumpyArray:
    if name not in columns:
        raise InvalidInput(
            f"{kind} must be a column of the log; got {name!r}. {nearest(name, columns)}"
        )
    values = columns[name]
    if kind in ("action", "user") and values.dtype.kind == "f" and not (values % 1).any():
        return values.astype(np.int64)  # a file of numbers does not say which are whole
    return values


def _contexts(plan: Plan, columns: Mapping[str, NumpyArray], used: Sequence[str]) -> Contexts:
    """Return columns by name for a schema; else all columns that are left, in their order."""
    if isinstance(plan.contexts, Schema):
        return column_contexts(plan.contexts, columns)
    left = [name for name in columns if name not in used]
    words = sum(columns[name].dtype.kind == "O" for name in left)
    if len(left) != plan.contexts.dimension or words:
        raise InvalidInput(
            f"log must have {plan.contexts.dimension} columns of numbers in addition to action and "
            f"outcome; got {len(left)}, {words} of them words: {listed(left)}. Name those that are "
            "no feature with --ignore, or declare a schema."
        )
    return np.stack([columns[name] for name in left], axis=-1)
