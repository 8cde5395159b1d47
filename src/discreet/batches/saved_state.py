"""Saved state of a learner: a private file for its owner alone, which is loaded once.

Rows of batches under way become arrays, and come back with every check.
"""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.batches.batch_slots import BatchSlots, Moment
from discreet.batches.memory_store import MemoryStore
from discreet.batches.users import PeopleRegistry
from discreet.design.control import PARTS
from discreet.errors import CorruptRelease, DiscreetError, InvalidInput, StateClaimed
from discreet.privacy.ledger import Ledger
from discreet.releases.canonical import write_atomically
from discreet.releases.catalogue import changes_of
from discreet.releases.release import Release
from discreet.types import NumpyArray

FORMAT = "discreet-state/3"


class Custody:
    """A lock that refuses all use after the state was saved to a file, and in a forked copy.

    Privacy: if two processes hold the same rows, only the one that made the learner may go on;
    otherwise two noises would be drawn for one batch.
    [docs/privacy/transcript.md, "Proof"]
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.saved = False

    def __enter__(self) -> None:
        # Checked before the lock: a thread of the other process may hold it for ever.
        if os.getpid() != self._process:
            raise StateClaimed(
                "learner must be used in the process that made it; a fork copied it into this one. "
                "Make it after the fork, or save it in the process that made it and load it here."
            )
        self._lock.acquire()
        if self.saved:
            self._lock.release()
            raise StateClaimed(
                "learner must not be used after save(); its state goes on in the file. "
                "Continue with Learner.load."
            )

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def write(path: str | Path, header: Mapping[str, Any], rows: Arrays) -> None:
    """Write header and rows in one file of mode 0600 that appears whole or not at all."""
    if not Path(path).parent.is_dir():
        raise InvalidInput(
            f"path must be in a folder that exists; got '{path}'. Make the folder first: "
            "nothing was written, and the learner stays usable."
        )
    if os.path.lexists(path):
        raise _taken(path)
    text = json.dumps({"format": FORMAT, **header}).encode()
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {"header": np.frombuffer(text, dtype=np.uint8), **rows}
    np.savez(buffer, **arrays)
    try:
        write_atomically(Path(path), buffer.getvalue(), mode=0o600, new=True)
    except FileExistsError:  # another process was faster
        raise _taken(path) from None


def _taken(path: str | Path) -> InvalidInput:
    return InvalidInput(
        f"path must be a new file; {path} is there, and may be the only copy of a learner. Name "
        "another file, or move that one away: nothing was written, and the learner stays usable."
    )


@contextmanager
def contents(path: str | Path) -> Iterator[None]:
    """Turn errors from altered bytes of the file into CorruptRelease."""
    try:
        yield
    except DiscreetError:
        raise
    except Exception:  # zipfile, NumPy and JSON have many kinds for altered bytes
        raise CorruptRelease(
            f"saved state must be a file that Learner.save wrote; {path} is not, or it was "
            "altered. It was not claimed."
        ) from None


@contextmanager
def claim(path: str | Path) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Yield header and rows of a saved state, which is removed when the caller has restored it.

    Renaming is the claim: if two processes try, one does not find the file. If the file cannot be
    read, or the caller fails, the file is put back untouched.
    """
    source, claimed = Path(path), Path(f"{path}.claimed")
    if claimed.exists() and source.exists():  # renaming would destroy the claimed one
        raise StateClaimed(
            f"saved state must be the only one of its name; {claimed} is there as well. Another "
            "process is loading it, or ended while it did: move that file away, and load it under "
            "another name."
        )
    try:
        os.rename(source, claimed)
    except FileNotFoundError:
        raise StateClaimed(
            f"saved state must exist and be unclaimed; {source} is not there. "
            "It was loaded before (go on with that learner), or the path is wrong."
        ) from None
    try:
        with contents(path):
            with np.load(claimed, allow_pickle=False) as file:
                rows = {name: file[name] for name in file.files}
            header = json.loads(rows.pop("header").tobytes())
            if header.pop("format") != FORMAT:
                raise ValueError
        yield header, rows
    except BaseException:
        os.rename(claimed, source)
        raise
    claimed.unlink()


Arrays = dict[str, NumpyArray]


def waiting_facts(store: MemoryStore) -> dict[str, Any]:
    """Return the public state: the rules of waiting, and the counts since the start."""
    now = store.now()
    return {
        "waiting": store.waiting,
        "window": store.window.setting,
        "decisions": now.decisions,
        "seconds": now.seconds,
    }


def private_rows(store: MemoryStore) -> Arrays:
    """Return the rows of all batches under way in the order of slots, and the people's counts."""
    batches, width = store.batches, store.released.blocks(store.open_number)
    none = BatchSlots(store.plan, 1, width)
    parts = [none.rows(), *(batch.rows() for batch in batches)]
    for part in parts:  # actions that joined later cannot have a loss yet
        missing = ((0, 0), (0, width - part["losses"].shape[1]))
        part["losses"] = np.pad(part["losses"], missing, constant_values=np.nan)
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    sealed = [batch.sealed for batch in batches if batch.sealed is not None]
    rows["sealed_decisions"] = np.array([moment.decisions for moment in sealed], dtype=np.int64)
    rows["sealed_seconds"] = np.array([moment.seconds for moment in sealed], dtype=np.float64)
    rows["closed"] = np.asarray(bool(batches) and batches[0].closed)
    if store.plan.schedule.every is not None:  # a clock may close a batch early
        rows["taken"] = np.array([batch.taken for batch in batches], dtype=np.int64)
        rows["opened"] = np.array([batch.opened for batch in batches], dtype=np.float64)
    return rows | ({} if store.people is None else store.people.arrays())


def header_of(store: MemoryStore) -> dict[str, Any]:
    """Return everything public of a state."""
    return {
        "plan": store.plan.to_config(),
        "ledger": store.ledger.to_json(),
        "releases": [item.to_json() for item in store.released.items],
        "changes": [change.to_json() for change in store.released.changes],
        "batches": waiting_facts(store),
    }


def restore(store: MemoryStore, header: Mapping[str, Any], rows: Arrays) -> None:
    """Restore a saved state in a new store; an error for an impossible state."""
    plan, facts, participation = store.plan, header["batches"], store.ledger.participation
    releases = tuple(Release.from_json(item) for item in header["releases"])
    changes = changes_of(header.get("changes", ()), plan.digest)
    ledger = Ledger.from_json(header["ledger"])
    partitions = len(releases) * (1 if plan.control is None else len(PARTS))
    _require(
        [item.number for item in releases] == list(range(1, len(releases) + 1)),
        len(ledger.entries) == partitions and ledger.participation == participation,
    )
    ledger = replace(ledger, assumption=store.ledger.assumption)
    store.begin_after(replace(store.released, items=releases, changes=changes), ledger)
    _refuse_impossible_rows(store, rows)
    store.people = None  # these slots were counted before
    seconds = float(facts["seconds"])
    _take_again(store, rows, seconds)
    _require(rows["losses"].shape[1] == store.released.blocks(store.open_number))
    store.decisions, store.seconds = int(facts["decisions"]), seconds
    done = 0
    for batch in store.batches:
        part = slice(done, done := done + batch.taken)
        for name, array in batch.rows().items():
            array[:] = rows[name][part] if array.ndim == 1 else rows[name][part, : array.shape[1]]
        batch.unobserved = int(np.isnan(rows["losses"][part]).all(axis=-1).sum())
    _restore_moments(store, rows)
    if participation is not None:
        newest = store.batches[-1].number if store.batches else len(releases)
        store.people = PeopleRegistry.of_arrays(participation, rows, newest)


def _take_again(store: MemoryStore, rows: Arrays, now: float) -> None:
    """Put rows into the slots that they had."""
    features, actions, control = rows["features"], rows["actions"], rows.get("control")
    if store.plan.schedule.every is None:
        _require(bool((store.take(features, actions, control=control) >= 0).all()))
        return
    taken, opened, sealed = rows["taken"], rows["opened"], len(rows["sealed_seconds"])
    _require(
        taken.ndim == 1 and taken.dtype == np.int64 and taken.shape == opened.shape,
        bool((opened <= now).all() and (taken >= 0).all()),
        int(taken.sum()) == len(actions),
    )
    for place, (count, end) in enumerate(zip(taken, np.cumsum(taken), strict=True)):
        batch = store.batches[place]
        _require(count <= batch.free and (count > 0 or place >= sealed))
        part = slice(end - count, end)
        own = None if control is None else control[part]
        store.take(features[part], actions[part], control=own)
        if place < sealed and batch.sealed is None:
            store.close_to_slots(Moment(store.decisions, float(rows["sealed_seconds"][place])))
    for batch, moment in zip(store.batches, opened, strict=True):
        batch.opened = float(moment)


def _restore_moments(store: MemoryStore, rows: Arrays) -> None:
    sealed = [batch for batch in store.batches if batch.sealed is not None]
    decisions = [int(each) for each in rows["sealed_decisions"]]
    seconds = [float(each) for each in rows["sealed_seconds"]]
    before = store.released.rounds  # slots of the batches that were released
    _require(
        sorted(decisions) == decisions and sorted(seconds) == seconds,
        max([before + len(rows["actions"]), *decisions]) <= store.decisions,
        all(0.0 <= each <= store.seconds < np.inf for each in [0.0, *seconds]),
    )
    for batch, made, moment in zip(sealed, decisions, seconds, strict=True):
        before += batch.taken
        _require(before <= made)
        batch.sealed = Moment(made, moment)
    if rows["closed"].item():
        sealed[0].closed = True


def _refuse_impossible_rows(store: MemoryStore, rows: Arrays) -> None:
    plan, losses, actions, counts = store.plan, rows["losses"], rows["actions"], rows["counts"]
    control, n = rows.get("control", counts), len(actions)
    rails, kinds = rows.get("guardrails", np.empty((n, 0))), len(plan.guardrails or ())
    observed, own = ~np.isnan(losses), np.arange(losses.shape[1]) == actions[:, None]
    none_or_own_or_all = ~observed.any(1) | (observed == own).all(1) | observed.all(1)
    people = store.people is not None
    _require(
        actions.ndim == 1 and actions.dtype == np.int64 and rows["closed"].dtype == np.bool_,
        rows["features"].shape == (n, plan.features.p),
        losses.ndim == 2 and len(losses) == n and losses.shape[1] >= 1,
        counts.shape == actions.shape and counts.dtype == np.bool_,
        people == ("people_key" in rows) and bool(people or counts.all()),
        (plan.control is not None) == ("control" in rows),
        control.shape == actions.shape and control.dtype == np.bool_,
        bool(np.isfinite(rows["features"]).all()),
        bool(((actions >= 0) & (actions < losses.shape[1])).all()),
        bool(none_or_own_or_all.all()),
        bool(((losses >= 0.0) & (losses <= 1.0))[observed].all()),
        rails.shape == (n, kinds),
        bool((np.isnan(rails) | ((rails >= 0.0) & (rails <= 1.0))).all()),
    )


def _require(*possible: bool) -> None:
    if not all(possible):
        raise ValueError  # the caller names the file, and nothing about its rows
