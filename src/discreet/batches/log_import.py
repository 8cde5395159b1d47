"""Import of a private log: rows as a plan reads them, checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from discreet.batches.evaluation_data import evaluation_data
from discreet.batches.memory_store import Compute, MemoryStore
from discreet.batches.observations import action_columns
from discreet.batches.users import user_ids
from discreet.design.action_names import action_index
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.features.joint import Joint
from discreet.plan.plan import Plan
from discreet.types import Contexts, Floats, NumpyArray, Values


class LoggedRows(NamedTuple):
    """PRIVATE: features (n, p), actions (n,), losses (n,) or with full feedback (n, A), users.

    With full feedback actions are 0: it does not matter which one was played.
    """

    features: Floats
    actions: Floats
    losses: Floats
    users: Sequence[str | None]

    def __repr__(self) -> str:
        return "LoggedRows(private)"

    def part(self, rows: NumpyArray | range) -> LoggedRows:
        """Return some of the rows."""
        users = [self.users[row] for row in rows] if self.users else ()
        return LoggedRows(self.features[rows], self.actions[rows], self.losses[rows], users)

    def batches(self, schedule: Schedule) -> list[LoggedRows]:
        """Cut the log into batches of a schedule. Rows of one person come together, and all that
        count are in one batch: rows that reach into the next have no owner there, and are void."""
        order = np.arange(len(self.actions))
        if self.users:
            first = {person: row for row, person in reversed([*enumerate(self.users)])}
            order = np.argsort([first[person] for person in self.users], kind="stable")
        rows, seen, made, start = self.part(order), set[str | None](), [], 0
        for number in range(1, schedule.imported_batches + 1):
            length = schedule.length(number)
            one = rows.part(range(start, start + length))
            made.append(one._replace(users=[None if who in seen else who for who in one.users]))
            seen.update(one.users)
            start += length
        return made


def logged_rows(
    plan: Plan,
    contexts: Contexts,
    actions: Values,
    losses: Values,
    reward: Values,
    user: Values = None,
    items: Mapping[str, Values] | None = None,
) -> LoggedRows:
    """Read the rows of a log from frames or arrays; after an error nothing is kept.

    ``items`` are features of actions that are not in the catalogue, by id.
    """
    full = plan.feedback == "full"
    outcomes = action_columns(plan.outcome.reported(losses, reward), plan.actions, contexts)
    columns = {"actions": actions, plan.outcome.plural: outcomes, "user": user}
    given = evaluation_data(plan.features, contexts, **columns)
    features = plan.features.map(given.contexts)
    rows = len(features)
    if full != (actions is None):
        raise InvalidInput(
            f"actions must be {'left out with full feedback' if full else 'given'}; got "
            f"{'some' if full else 'none'}. "
            + ("Pass None: all losses are known." if full else "Pass what was played, row by row.")
        )
    shape = (rows, plan.n_actions) if full else (rows,)
    values = plan.outcome.losses_of(given.columns[plan.outcome.plural], shape)
    played = np.zeros(rows, dtype=np.int64)
    if not full:
        catalogue, names = plan.catalogue, given.columns["actions"]
        if catalogue is not None and items is not None:
            new = {name: each for name, each in items.items() if name not in catalogue}
            catalogue = catalogue.changed(add=new)
            played = np.asarray([catalogue.place(name) for name in names], dtype=np.int64)
        else:
            played = np.asarray(action_index(plan, names, "actions"))
        if catalogue is not None and isinstance(plan.features, Joint):
            features = plan.features.rows(features, catalogue.rows[played])
            played = 0 * played
    if played.shape != (rows,):
        raise InvalidInput(
            f"actions must be one per context; got shape {played.shape} for {rows} contexts. "
            "Log one action per decision."
        )
    needed = plan.participation is not None
    users = user_ids("user", given.columns["user"], rows, needed=needed, single=False)
    return LoggedRows(features, played, values, users or ())


def release_log(store: MemoryStore, plan: Plan, rows: LoggedRows, compute: Compute) -> None:
    """Put a log into the first slots of a store, and release it batch by batch."""
    wanted, given = plan.imported, len(rows.actions)
    if wanted is None or store.end > 0:
        raise InvalidInput(
            "log must be imported once, before the first decision, by a plan that announces it; "
            f"this plan has imported={wanted}, and {store.end:,} slots are taken. Begin a new "
            f"learner with Plan(imported={given})."
        )
    if given != wanted:
        raise InvalidInput(
            f"log must have the {wanted:,} rows that the plan announces; got {given:,}. "
            f"Leave rows out, or begin a new learner with Plan(imported={given})."
        )
    for one in rows.batches(plan.schedule):
        control = None if plan.control is None else np.zeros(len(one.actions), dtype=bool)
        ids = store.take(one.features, one.actions, one.users, control)
        store.observe(ids, one.losses)
        store.close()  # at a public moment: the whole log is there
        store.release(compute)
