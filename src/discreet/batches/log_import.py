"""Import of a private log: rows as a plan reads them, checked before anything is stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from discreet.batch import Batch, PartitionedBatch, Sums, added
from discreet.batches.batch_slots import batch_of
from discreet.batches.memory_store import MemoryStore
from discreet.batches.observations import action_columns, evaluation_data
from discreet.batches.users import user_ids
from discreet.design.action_names import action_index
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput, PrivateData, kind_of
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.plan.plan import Plan
from discreet.types import Contexts, Floats, Frame, NumpyArray, Values

if TYPE_CHECKING:
    from discreet.data.parquet_log import LogPart, ParquetLog


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

    def batches(self, schedule: Schedule) -> list[LoggedRows]:
        """Cut the log into batches of a schedule. Rows of one person come together, and all that
        count are in one batch: rows that reach into the next have no owner there, and are void."""
        order = np.arange(len(self.actions))
        if self.users:
            first = {person: row for row, person in reversed([*enumerate(self.users)])}
            order = np.argsort([first[person] for person in self.users], kind="stable")
        seen, made, start = set[str | None](), [], 0
        for number in range(1, schedule.imported_batches + 1):
            rows = order[start : start + schedule.length(number)]
            owners = [self.users[row] for row in rows] if self.users else []
            users = [None if who in seen else who for who in owners]
            made.append(
                LoggedRows(self.features[rows], self.actions[rows], self.losses[rows], users)
            )
            seen.update(owners)
            start += len(rows)
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
    """Read the rows of a log from frames or arrays; after an error nothing is stored.

    ``items`` are features of actions that are not in the catalogue, by id.
    """
    full = plan.feedback == "full"
    outcomes = action_columns(plan.outcome.reported(losses, reward), plan.actions, contexts)
    columns = {"actions": actions, plan.outcome.plural: outcomes, "user": user}
    given = evaluation_data(plan.features, contexts, **columns)
    features = plan.features.map(given.contexts)
    rows = len(features)
    if full != (actions is None):
        rule, got = ("left out", "some") if full else ("given", "none")
        raise InvalidInput(
            f"actions must be {rule} with {plan.feedback} feedback; got {got}. Pass what was "
            "played, row by row, or None where all losses are known."
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


def release_log(store: MemoryStore, rows: LoggedRows) -> None:
    """Put a log into the first slots of a store, and release it batch by batch."""
    _refuse_other_log(store, len(rows.actions))
    for one in rows.batches(store.plan.schedule):
        control = _no_control(store.plan, len(one.actions))
        ids = store.take(one.features, one.actions, one.users, control)
        store.observe(ids, one.losses)
        store.close()  # at a public moment: the whole log is there
        store.release()


def _no_control(plan: Plan, rows: int) -> NumpyArray | None:
    return None if plan.control is None else np.zeros(rows, dtype=bool)


def _refuse_other_log(store: MemoryStore, given: int) -> None:
    wanted = store.plan.imported
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


@dataclass(frozen=True)
class LogColumns:
    """Public facts with which a worker reads rows of Parquet files: names of columns."""

    plan: Plan
    names: tuple[str, ...]
    actions: Values
    losses: Values
    reward: Values

    @classmethod
    def of(
        cls, plan: Plan, log: ParquetLog, actions: Values, losses: Values, reward: Values
    ) -> LogColumns:
        """Choose the columns that the plan needs; refuse names and types that do not fit it."""
        roles = [each for each in (actions, losses, reward) if each is not None]
        if plan.participation is not None or plan.feedback == "full" or not plan.summable:
            raise InvalidInput(
                "log must be imported as arrays or as a frame where the unit is a user, feedback "
                "is full, or the oracle reads whole batches; got Parquet files. Read them first."
            )
        if not all(isinstance(each, str) for each in roles) or len(roles) != 2:
            raise InvalidInput(
                "actions and losses (or reward) must be names of columns of the Parquet files; got "
                f"{' and '.join(kind_of(each) for each in roles)}. Write import_log(path, "
                "'action', 'loss')."
            )
        schema = plan.contexts
        fields = [each.name for each in schema.fields] if isinstance(schema, Schema) else None
        needed = [*(log.types.names if fields is None else fields), *roles]
        names = tuple(dict.fromkeys(name for name in needed if name in log.types.names))
        made = cls(plan, names, actions, losses, reward)
        empty = log.types.empty_table().select(names)
        logged_rows(plan, empty, actions, losses, reward)  # no row, so no value in an error
        return made

    def batch(self, rows: Frame) -> Batch:
        """Return some rows as a fit reads them."""
        read = logged_rows(self.plan, rows, self.actions, self.losses, self.reward)
        losses = np.full((len(read.actions), self.plan.blocks), np.nan)
        losses[np.arange(len(losses)), read.actions] = read.losses
        control = _no_control(self.plan, len(losses))
        return batch_of(read.features, losses, read.actions, self.plan.missing_loss, control)


class Unsummed(NamedTuple):
    """Public reason why a part of a log has no sums: a place, and a rule."""

    reason: str


PartSums = tuple[int, Sums] | Unsummed
"""PRIVATE: the number of rows of a part and their sums, if it has any."""


class Executor(Protocol):
    """Workers as of ``concurrent.futures``, or of Dask: ``client.get_executor()``."""

    @property
    def submit(self) -> Callable[..., Future[PartSums]]: ...


def sums_of_part(columns: LogColumns, of: Callable[[Batch], Sums], part: LogPart) -> PartSums:
    """Return the number of rows of a part, and their integer sums; a worker calls this.

    Privacy: it raises nothing, since an error of a library may quote a row, and clusters log
    errors. Those of ``InvalidInput`` quote no private value.
    [docs/privacy/threat-model.md, "Errors"]
    """
    done = 0

    def sums() -> Iterator[Sums]:
        nonlocal done
        for rows in part.tables(columns.names):
            yield columns.batch(rows).sums(of)
            done += len(rows)

    try:
        total = added(sums(), part.rows)
        return done, total
    except Exception as error:
        reason = str(error) if isinstance(error, InvalidInput) else f"{type(error).__name__}."
        return Unsummed(f"{part.file}, counted from its row {part.start + done:,}: {reason}")


def release_partitions(
    store: MemoryStore, columns: LogColumns, log: ParquetLog, executor: Executor | None
) -> None:
    """Release a log whose rows stay in their files, batch by batch; after an error, nothing.

    Workers return integer sums, whose total is the same for every order and division of the rows,
    so that the releases are those of one process.
    """
    plan, schedule = store.plan, store.plan.schedule
    _refuse_other_log(store, log.rows)
    released, ledger = store.released, store.ledger
    features, losses = np.empty((0, plan.features.p)), np.empty((0, plan.blocks))
    for number in range(1, schedule.imported_batches + 1):
        start, size = schedule.start(number), schedule.length(number)
        summed = partial(_summed, executor, columns, log.parts(start, start + size), size)
        rows = features, losses, losses > 0.0, _no_control(plan, 0)
        batch = PartitionedBatch(*rows, size=size, summed=summed)
        release, ledger = store.fit(batch, released, ledger)
        released = released.add(release)
    store.decisions += log.rows
    store.begin_after(released, ledger)


def _summed(
    executor: Executor | None,
    columns: LogColumns,
    parts: Sequence[LogPart],
    size: int,
    of: Callable[[Batch], Sums],
) -> Iterator[Sums]:
    """Yield the sums of each part once, however often workers computed them."""
    sums_of, counted = partial(sums_of_part, columns, of), 0
    for found in map(sums_of, parts) if executor is None else _results(executor, sums_of, parts):
        if isinstance(found, Unsummed):
            raise InvalidInput(
                f"log must fit the plan; {found.reason} Nothing was released: correct the log, and "
                "import it again."
            )
        counted += found[0]
        yield found[1]
    # Privacy: the guarantee is for rows that are counted once.
    # [docs/privacy/arithmetic.md, "Larger batches"]
    if counted != size:
        raise PrivateData(
            f"parts must have the {size:,} rows of their batch, each once; they have another "
            "number. Nothing was released: import the log again."
        )


def _results(
    executor: Executor, sums_of: Callable[[LogPart], PartSums], parts: Sequence[LogPart]
) -> Iterator[PartSums]:
    """Yield the result of each part, in their order; after an error the others are cancelled."""
    jobs = deque(executor.submit(sums_of, part) for part in parts)
    try:
        while jobs:
            yield jobs.popleft().result()
    except (Exception, CancelledError) as error:
        raise InvalidInput(
            "executor must keep workers until the end; it lost them, or could not send them the "
            f"plan ({type(error).__name__}). Nothing was released: start them, and import again."
        ) from None
    finally:
        for job in jobs:
            job.cancel()
