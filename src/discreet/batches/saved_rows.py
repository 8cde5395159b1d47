"""What a saved learner says of its batches under way: to arrays, and back with every check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.batches.batch_slots import BatchSlots, Moment
from discreet.batches.memory_store import MemoryStore
from discreet.batches.people_registry import PeopleRegistry
from discreet.design.control import PARTS
from discreet.privacy.ledger import Ledger
from discreet.releases.action_change import ActionChange
from discreet.releases.release import Release

Arrays = dict[str, np.ndarray[Any, Any]]


def waiting_facts(store: MemoryStore) -> dict[str, Any]:
    """The public state beside rows: how batches wait, and what was counted since the start."""
    now = store.now()
    return {
        "waiting": store.waiting,
        "window": store.window.setting,
        "decisions": now.decisions,
        "seconds": now.seconds,
    }


def private_rows(store: MemoryStore) -> Arrays:
    """The rows of all batches under way, in the order of their slots, and who had any before."""
    batches, no_features = store.batches, np.empty((0, store.p))
    widest, no_actions = store.released.blocks(store.open_number), np.empty(0, np.int64)
    losses = [np.empty((0, widest)), *(_widened(b.losses[: b.taken], widest) for b in batches)]
    sealed = [batch.sealed for batch in batches if batch.sealed is not None]
    return {
        "features": np.vstack([no_features, *(b.features[: b.taken] for b in batches)]),
        "losses": np.vstack(losses),
        "actions": np.hstack([no_actions, *(b.actions[: b.taken] for b in batches)]),
        "counts": np.hstack([np.empty(0, bool), *(b.counts[: b.taken] for b in batches)]),
        "sealed_decisions": np.array([moment.decisions for moment in sealed], dtype=np.int64),
        "sealed_seconds": np.array([moment.seconds for moment in sealed], dtype=np.float64),
        "closed": np.asarray(bool(batches) and batches[0].closed),
        **({} if store.released.schedule.every is None else _of_clock(batches)),
        **_parts_of(batches, store.parts),
        **({} if store.people is None else store.people.arrays()),
    }


def _widened(losses: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """Losses of a batch from before actions were added, which nobody can have heard."""
    missing = ((0, 0), (0, width - losses.shape[1]))
    return np.pad(losses, missing, constant_values=np.nan)


def _of_clock(batches: Sequence[BatchSlots]) -> Arrays:
    """Slots taken in each batch, since a clock may close one early, and since when each is open."""
    return {
        "taken": np.array([batch.taken for batch in batches], dtype=np.int64),
        "opened": np.array([batch.opened for batch in batches], dtype=np.float64),
    }


def _parts_of(batches: list[BatchSlots], parts: bool) -> Arrays:
    """Which slots are the control's, where the plan has one."""
    taken = [b.control[: b.taken] for b in batches if b.control is not None]
    return {"control": np.hstack([np.empty(0, bool), *taken])} if parts else {}


def restore(
    store: MemoryStore,
    releases: tuple[Release, ...],
    changes: tuple[ActionChange, ...],
    ledger: Ledger,
    facts: Mapping[str, Any],
    rows: Arrays,
) -> None:
    """Make a new store go on where a saved one stopped; ValueError for an impossible state."""
    _require([item.number for item in releases] == list(range(1, len(releases) + 1)))
    _require(len(ledger.entries) == len(releases) * (len(PARTS) if store.parts else 1))
    participation = store.ledger.participation
    _require(ledger.participation == participation)
    ledger = replace(ledger, assumption=store.ledger.assumption)
    store.begin_after(replace(store.released, items=releases, changes=changes), ledger)
    _refuse_impossible_rows(store, rows)
    store.people = None  # these slots were handed out before: none is counted again
    seconds = float(facts["seconds"])
    _take_again(store, rows, seconds)
    _require(rows["losses"].shape[1] == store.released.blocks(store.open_number))
    store.decisions, store.seconds = int(facts["decisions"]), seconds
    done = 0
    for batch in store.batches:
        part = slice(done, done := done + batch.taken)
        batch.losses[: batch.taken] = rows["losses"][part, : batch.losses.shape[1]]
        batch.counts[: batch.taken] = rows["counts"][part]
        batch.unheard = int(np.isnan(rows["losses"][part]).all(axis=-1).sum())
    _restore_moments(store, rows)
    if participation is not None:
        newest = store.batches[-1].number if store.batches else len(releases)
        store.people = PeopleRegistry.of_arrays(participation, rows, newest)


def _take_again(store: MemoryStore, rows: Arrays, now: float) -> None:
    """Put rows into the slots that they had; each has one, of a batch that may be open."""
    features, actions, control = rows["features"], rows["actions"], rows.get("control")
    if store.released.schedule.every is None:
        _require((store.take(features, actions, control=control) >= 0).all())
        return
    taken, opened, sealed = rows["taken"], rows["opened"], len(rows["sealed_seconds"])
    _require(taken.ndim == 1 and taken.dtype == np.int64 and taken.shape == opened.shape)
    _require(bool((opened <= now).all() and (taken >= 0).all()))
    _require(int(taken.sum()) == len(actions))
    ends = np.cumsum(taken)
    for place, (count, end) in enumerate(zip(taken, ends, strict=True)):
        _require(len(store.batches) > place)
        batch = store.batches[place]
        _require(count <= batch.free and (count > 0 or place >= sealed))
        part = slice(end - count, end)
        own = None if control is None else control[part]
        store.take(features[part], actions[part], control=own)
        if place < sealed and batch.sealed is None:
            store.close_to_slots(Moment(store.decisions, float(rows["sealed_seconds"][place])))
    _require(len(store.batches) == len(taken))
    for batch, moment in zip(store.batches, opened, strict=True):
        batch.opened = float(moment)


def _restore_moments(store: MemoryStore, rows: Arrays) -> None:
    sealed = [batch for batch in store.batches if batch.sealed is not None]
    decisions = [int(each) for each in rows["sealed_decisions"]]
    seconds = [float(each) for each in rows["sealed_seconds"]]
    _require(len(decisions) == len(seconds) == len(sealed))
    _require(sorted(decisions) == decisions and sorted(seconds) == seconds)
    before = store.released.rounds  # slots of the batches that were released
    _require(max([before + len(rows["actions"]), *decisions]) <= store.decisions)
    _require(all(0.0 <= each <= store.seconds < np.inf for each in [0.0, *seconds]))
    for batch, moment in zip(sealed, map(Moment, decisions, seconds), strict=True):
        before += batch.taken
        _require(before <= moment.decisions)
        batch.sealed = moment
    if rows["closed"].item():
        _require(bool(sealed))
        sealed[0].closed = True


def _refuse_impossible_rows(store: MemoryStore, rows: Arrays) -> None:
    features, losses, actions = rows["features"], rows["losses"], rows["actions"]
    _require(actions.ndim == 1 and actions.dtype == np.int64 and rows["closed"].dtype == np.bool_)
    _require(features.shape == (len(actions), store.p))
    _require(losses.ndim == 2 and len(losses) == len(actions) and losses.shape[1] >= 1)
    counts, people = rows["counts"], store.people is not None
    _require(counts.shape == actions.shape and counts.dtype == np.bool_)
    _require(people == ("people_key" in rows) and bool(people or counts.all()))
    control = rows.get("control", counts)
    _require(store.parts == ("control" in rows))
    _require(control.shape == actions.shape and control.dtype == np.bool_)
    _require(bool(np.isfinite(features).all()))
    _require(bool(((actions >= 0) & (actions < losses.shape[1])).all()))
    heard = ~np.isnan(losses)
    own = np.arange(losses.shape[1]) == actions[:, None]
    none_or_own_or_all = ~heard.any(1) | (heard == own).all(1) | heard.all(1)
    _require(bool(none_or_own_or_all.all()))
    _require(bool(((losses >= 0.0) & (losses <= 1.0))[heard].all()))


def _require(possible: bool) -> None:
    if not possible:
        raise ValueError  # the caller names the file; nothing is said of its rows
