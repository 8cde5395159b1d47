"""Log of earlier decisions, with its columns read as a plan declares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.batches.log_import import LoggedRows, logged_rows
from discreet.data.dataset import column_contexts
from discreet.data.decision_logs import log_columns
from discreet.data.dsjson_log import DSJSON, declared_features
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.learner import Learner
from discreet.plan.plan import Plan
from discreet.releases.prior import Prior
from discreet.simulate.warm_start import prior_from_logs
from discreet.types import Contexts, NumpyArray
from discreet.validate import nearest


class PlanLog(NamedTuple):
    """PRIVATE: columns of a log, by the role that they have in a plan."""

    plan: Plan
    name: str
    contexts: Contexts
    actions: NumpyArray
    outcomes: NumpyArray
    users: NumpyArray | None
    items: Mapping[str, Any] | None

    def __repr__(self) -> str:
        return "PlanLog(private)"

    @property
    def _outcome(self) -> dict[str, Any]:
        """The argument that reports outcomes, as the plan declares them."""
        name = "losses" if self.plan.outcome.word == "loss" else "reward"
        return {name: self.outcomes}

    def rows(self) -> LoggedRows:
        """Return the rows, checked, for the database of a service."""
        given = {"losses": None, "reward": None} | self._outcome
        return logged_rows(
            self.plan, self.contexts, self.actions, **given, user=self.users, items=self.items
        )

    def learner(self) -> Learner:
        """Return a new learner that has released the log."""
        plan = self.plan
        if plan.imported is None:
            plan = replace(plan, imported=len(self.actions))
        made = Learner(plan)
        made.import_log(
            self.contexts, self.actions, **self._outcome, user=self.users, items=self.items
        )
        return made

    def prior(self, weight: float) -> Prior:
        """Return the prior of a log that is public, without noise."""
        source = f"public log {self.name}"
        return prior_from_logs(
            self.plan, self.contexts, self.actions, **self._outcome, weight=weight, source=source
        )


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
    users = None if user is None else _column(columns, user, "user")
    contexts = _contexts(plan, columns, used)
    return PlanLog(plan, Path(path).name, contexts, actions, outcomes, users, items or None)


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
    words = [name for name in left if columns[name].dtype.kind == "O"]
    if len(left) != plan.contexts.dimension or words:
        raise InvalidInput(
            f"log must have {plan.contexts.dimension} columns of numbers in addition to action and "
            f"outcome; got {len(left)}, {len(words)} of them words: {', '.join(left[:8])}. Name "
            "those that are no feature with --ignore, or declare a schema."
        )
    return np.stack([columns[name] for name in left], axis=-1)
