"""At most one row of a batch per person in a service.

Sealed rows, answers and counts are written as the service writes them and read by the code that
reads a batch for the fit. One person holds every third slot of small and large batches, and may
contribute one record.
"""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

import numpy as np

from discreet.audit.finding import Finding, listed
from discreet.audit.subjects import Subject
from discreet.batch import Batch
from discreet.plan.plan import Plan
from discreet.types import JsonObject, NumpyArray

SIZES = (5, 63, 64, 65, 200)
_EPOCH, _BATCH = 1, 1
ONE_RECORD: JsonObject = {"unit": "user", "batches_per_user": 1, "records_per_batch": 1}
WAYS = ("written at once", "with a loss for silence", "written with the answer")
ANSWERED = {"everything": (0, 1), "nothing": (0, 0), "all but the first": (1, 1), "half": (0, 2)}
"""The turns on which one person answers: the first, and the step to the next (0: no turn)."""


def one_row_each(subject: Subject) -> Finding:
    """Everything that one person does moves at most one row, which is their own."""
    wrong = []
    for size, way in itertools.product(SIZES, WAYS):
        plan = subject.plan(missing_loss=0.5 if way == WAYS[1] else None, **ONE_RECORD)
        theirs = np.arange(size) % 3 == 0
        before = None
        for name in ANSWERED:
            batch = _read(plan, size, theirs, name, whole=way == WAYS[2])
            rows = np.asarray(batch.observed.any(axis=-1))
            if batch.records != size:
                wrong.append(f"{batch.records} records in {size} slots")
                continue
            if rows[theirs].sum() > 1:
                wrong.append(f"{rows[theirs].sum()} rows of one person in {size} slots, {way}")
            others = [part[~theirs] for part in (batch.features, batch.losses, batch.observed)]
            before = before or others
            if not all(map(np.array_equal, before, others)):
                wrong.append(f"one person moves the rows of others in {size} slots, {way}")
    correct = f"batches of {', '.join(map(str, SIZES))} slots, for all answers of the person"
    return listed(subject, "a person has one row of a batch in a service", wrong, correct)


def _read(plan: Plan, size: int, theirs: NumpyArray, name: str, *, whole: bool) -> Batch:
    """The batch of a service in which one person answers this way and all others answer."""
    from discreet.service.secrets.sealing import LOSS, ROW, WHOLE, DecisionRow, Sealer, pack_losses
    from discreet.service.storage.database import create_tables
    from discreet.service.storage.journal import OwnedSlot, People
    from discreet.service.storage.sealed_batch import read_batch
    from discreet.service.storage.sqlite import Sqlite

    rng, turns = np.random.default_rng(0), itertools.count()
    sealer = Sealer(bytes(32), _EPOCH, _BATCH)
    records, answers, owned = [], [], []
    for slot in range(size):
        features = plan.features.map(rng.normal(size=(1, plan.features.p - 1)))[0]
        loss = float(rng.integers(2))
        observed, person = True, b"person %d" % slot
        if theirs[slot]:
            turn, (first, every) = next(turns), ANSWERED[name]
            observed = every > 0 and turn >= first and (turn - first) % every == 0
            person = b"the same person"
            features = features * (1.0 if name == "everything" else 0.5)
        owned.append(OwnedSlot(_EPOCH, _BATCH, slot, person))
        row = DecisionRow(features, slot % plan.n_actions).pack()
        if not whole:
            records.append((slot, sealer.seal(ROW, slot, row)))
        if observed:
            packed = pack_losses([loss])
            kind, packed = (WHOLE, row + packed) if whole else (LOSS, packed)
            answers.append((slot, kind, sealer.seal(kind, slot, packed)))
    assert plan.participation is not None
    database, connection = Sqlite(Path()), sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("discreet_now", 0, lambda: 0.0)
    try:
        create_tables(database, connection)
        connection.execute("INSERT INTO experiment VALUES (1, '', '', 1, '', 0, 0, 0, 0)")
        People(database, plan.participation).record_slots(connection, owned)
        place = f"{_EPOCH}, {_BATCH}"
        connection.executemany(
            f"INSERT INTO records (epoch, batch, slot, payload) VALUES ({place}, ?, ?)", records
        )
        connection.executemany(
            f"INSERT INTO answers (epoch, batch, slot, kind, payload) VALUES ({place}, ?, ?, ?)",
            answers,
        )
        return read_batch(connection, plan, sealer, _EPOCH, _BATCH, size)
    finally:
        connection.close()


def installed() -> bool:
    """Return whether the service, an extra of the package, is installed."""
    try:
        import discreet.service.runtime.fit_process
        import discreet.service.storage.sqlite  # noqa: F401
    except ImportError:
        return False
    return True
