"""``discreet import``: a log of earlier decisions, as private batches or as a public prior."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.cli.answer import Answer, as_json, write
from discreet.cli.flags import experiment_flags, experiment_from
from discreet.cli.parser import Commands, command
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.plan.config import to_config
from discreet.plan.plan import Plan
from discreet.text import guarantee_text, read_toml
from discreet.types import JsonObject
from discreet.validate import nearest

if TYPE_CHECKING:
    from discreet.service.settings import Settings

TEXT = """\
A log is a .csv or .parquet file with a row per decision, or a log of Vowpal Wabbit (.vw, .txt)
with labels action:cost:probability, whose columns are called action, cost and probability, or a
log in dsjson of Vowpal Wabbit or Azure Personalizer (.dsjson, .jsonl, .json). The experiment file
has the keys of a plan; actions and features must be in it.

Private rows become the first batches: each costs ε once, and is forgotten. Two files are written:
NAME.state, private, from which Learner.load goes on, and NAME.released.json, which is public.
With --public the rows become a prior without noise, NAME.prior.json, which whoever sees the plan
sees too: only for logs that are public already. Name it in an experiment file with the key prior.

Where the file is that of a service, with imported in its [plan], private rows go into its database,
sealed, after discreet serve --init and before the first start; then nothing else is written.

examples:
  discreet import plan.toml --log visits.csv --action shown --loss lost --out welcome
  discreet import plan.toml --log visits.csv --reward won --user visitor --out welcome
  discreet import plan.toml --log trial.vw --public --weight 0.5 --out welcome
  discreet import experiment.toml --log visits.csv --action shown --loss lost
"""
FIXED = (
    *("data", "target", "schema", "rows", "policy", "oracle", "set"),
    *("epsilon", "delta", "seeds"),
)
"""Flags that would change the plan of a service, or have no meaning for it."""


def add(commands: Commands) -> None:
    """Add flags for the log, its columns, and for public logs."""
    summary = "begin with a log of earlier decisions"
    parser = command(commands, "import", summary, import_, TEXT)
    experiment_flags(parser)
    flag = parser.add_argument
    flag("--log", required=True, metavar="FILE", help="a row per decision")
    flag("--action", default="action", metavar="COLUMN", help="what was played (action)")
    flag("--loss", metavar="COLUMN", help="its loss (loss, or cost in a log of Vowpal Wabbit)")
    flag("--reward", metavar="COLUMN", help="its reward, where the plan declares rewards")
    flag("--ignore", action="append", default=[], metavar="COLUMN", help="no feature; repeat it")
    flag("--public", action="store_true", help="the log is public: make a prior, without noise")
    flag("--weight", type=float, metavar="W", help="what a row of a prior counts, at most 1 (1)")
    flag("--out", metavar="NAME", help="where to write; for the file of a service only a prior is")


def import_(args: argparse.Namespace) -> Answer:
    """Import a log; all inputs are checked before anything is written."""
    from discreet.data.decision_logs import log_columns
    from discreet.data.dsjson_log import DSJSON, declared_features

    if args.weight is not None and not args.public:
        raise InvalidInput(
            "weight must come with --public; got it alone. Private rows count as all others do: "
            "leave --weight out."
        )
    settings = _service(args)
    stored = settings is not None and not args.public
    if stored != (args.out is None):
        raise InvalidInput(
            f"out must be {'left out: the rows go into a database' if stored else 'a name'}; got "
            f"{'one' if stored else 'none'}. {'Leave --out out.' if stored else 'Add --out NAME.'}"
        )
    user, args.user = args.user, None  # a column of the log, not of data
    if settings is not None:
        plan = settings.plan
    else:
        if user is not None:
            args.set = ["unit=user", *(args.set or ())]
        plan = experiment_from(args).plan
    items: dict[str, Any] | None = None if plan.catalogue is None else {}
    columns = log_columns(args.log, items)
    if plan.catalogue is not None and items and isinstance(plan.catalogue.schema, Schema):
        schema = plan.catalogue.schema
        items = {name: declared_features(schema, each) for name, each in items.items()}
    word = plan.outcome.word
    outcome = getattr(args, word) or ("cost" if word == "loss" and "cost" in columns else word)
    wrong = args.reward if word == "loss" else args.loss
    if wrong:
        raise InvalidInput(
            f"log must have a {word}, which the plan declares; got another kind. "
            f"Write --{word} COLUMN, or change the outcome of the plan."
        )
    named = {"action": args.action, word: outcome}
    if user is not None:
        named["user"] = user
    values = {kind: _column(columns, name, kind) for kind, name in named.items()}
    labels = ["probability", *(("cost", "reward") if Path(args.log).suffix in DSJSON else ())]
    contexts = _contexts(plan, columns, [*named.values(), *labels, *args.ignore])
    if args.public:
        return _prior(args, plan, contexts, values, word)
    values["items"] = items or None
    if settings is not None:
        return _into_service(args, settings, contexts, values, word)
    return _into_state(args, plan, contexts, values, word)


def _service(args: argparse.Namespace) -> Settings | None:
    """Return the settings of a service, if the file has a table for its plan."""
    if not args.file or not isinstance(read_toml(args.file, "experiment").get("plan"), dict):
        return None
    from discreet.cli.serve_command import need_extra
    from discreet.service.settings import Settings

    need_extra()
    for name in FIXED:
        if getattr(args, name) is not None:
            raise InvalidInput(
                f"--{name} must be left out with the file of a service; got it. The plan of a "
                "service never changes: what the file says counts."
            )
    settings = Settings.read(args.file)
    if settings.unit == "user" and args.user is None and not args.public:
        raise InvalidInput(
            "user must name the column of ids where the unit is 'user'; got none. "
            "Add --user COLUMN."
        )
    return settings


def _into_service(
    args: argparse.Namespace,
    settings: Settings,
    contexts: Any,
    values: JsonObject,
    word: str,
) -> Answer:
    from discreet.batches.log_import import logged_rows
    from discreet.service.runtime.log_import import import_log
    from discreet.service.storage.database import storage_errors
    from discreet.service.storage.locations import open_database

    outcome = {"losses": None, "reward": None}
    outcome["losses" if word == "loss" else "reward"] = values[word]
    rows = logged_rows(
        settings.plan,
        contexts,
        values["action"],
        **outcome,
        user=values.get("user"),
        items=values["items"],
    )
    with storage_errors(open_database(settings)):
        batches = import_log(settings, rows)
    count = len(rows.actions)
    lines = [
        f"{count:,} rows in {batches} sealed batches of {settings.experiment!r}",
        f"next: discreet serve --config {args.file}, which releases them and destroys their keys",
        f"The log itself is still in {args.log}: whoever can read that needs no release.",
    ]
    return Answer({"rows": count, "batches": batches}, "\n".join(lines))


def _prior(
    args: argparse.Namespace, plan: Plan, contexts: Any, values: JsonObject, word: str
) -> Answer:
    from discreet.simulate.warm_start import prior_from_logs

    outcome = {"losses" if word == "loss" else "reward": values[word]}
    weight = 1.0 if args.weight is None else args.weight
    source = f"public log {Path(args.log).name}"
    prior = prior_from_logs(
        plan, contexts, values["action"], **outcome, weight=weight, source=source
    )
    replace(plan, prior=prior)  # fails now, if at all
    path = f"{args.out}.prior.json"
    write(path, as_json(to_config(prior)) + "\n")
    lines = [
        f"{prior.text}",
        f"wrote {path}: public, without noise. In an experiment file: prior = {path!r}",
    ]
    return Answer({"records": prior.records, "weight": weight, "files": [path]}, "\n".join(lines))


def _into_state(
    args: argparse.Namespace, plan: Plan, contexts: Any, values: JsonObject, word: str
) -> Answer:
    from discreet.learner import Learner

    files = [f"{args.out}.state", f"{args.out}.released.json"]
    for path in files:
        if Path(path).exists():
            raise InvalidInput(
                f"out must be a new name; {path} is there. Two imports of one log would draw two "
                "noises for it: go on from the first, or move it away."
            )
    rows = len(values["action"])
    if plan.imported is None:
        plan = replace(plan, imported=rows)
    learner = Learner(plan)
    outcome = {"losses" if word == "loss" else "reward": values[word]}
    learner.import_log(
        contexts, values["action"], **outcome, user=values.get("user"), items=values["items"]
    )
    learner.released.save(files[1])
    spent = learner.ledger.spent()
    learner.save(files[0])
    cost = guarantee_text(spent.epsilon, spent.delta)
    lines = [
        f"{rows:,} rows in {plan.schedule.imported_batches} batches: {cost} for one {plan.unit}; "
        "the rows are forgotten here.",
        f"wrote {files[0]} (private: Learner.load goes on from it) and {files[1]} (public)",
        f"The log itself is still in {args.log}: whoever can read that needs no release.",
    ]
    facts = {"rows": rows, "epsilon": spent.epsilon, "delta": spent.delta, "files": files}
    return Answer(facts, "\n".join(lines))


def _column(columns: JsonObject, name: str, kind: str) -> Any:
    if name not in columns:
        raise InvalidInput(
            f"{kind} must be a column of the log; got {name!r}. {nearest(name, columns)}"
        )
    values = columns[name]
    if kind in ("action", "user") and values.dtype.kind == "f" and not (values % 1).any():
        return values.astype(np.int64)  # a file of numbers does not say which are whole
    return values


def _contexts(plan: Plan, columns: JsonObject, others: list[str]) -> Any:
    """Return columns by name for a schema; else all columns that are left, in their order."""
    from discreet.data.dataset import column_contexts

    if isinstance(plan.contexts, Schema):
        return column_contexts(plan.contexts, columns)
    left = [name for name in columns if name not in others]
    words = [name for name in left if columns[name].dtype.kind == "O"]
    if len(left) != plan.contexts.dimension or words:
        raise InvalidInput(
            f"log must have {plan.contexts.dimension} columns of numbers beside action and "
            f"outcome; got {len(left)}, {len(words)} of them words: {', '.join(left[:8])}. Name "
            "those that are no feature with --ignore, or declare a schema."
        )
    return np.stack([columns[name] for name in left], axis=-1)
