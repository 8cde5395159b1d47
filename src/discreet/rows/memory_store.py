"""Keeps private rows until their release, which is one atomic step.

``Store.release`` is the single place where private rows become a public release: ledger
entry, release and deletion of the rows appear together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.errors import InvalidInput, NotReady
from discreet.privacy.ledger import Ledger
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.rows.batch import Batch
from discreet.rows.slot_rules import batch_over, refuse_other_loss, unknown_decision

Compute = Callable[[Batch, Released, Ledger], tuple[Release, Ledger]]


class MemoryStore:
    """One open batch of numbered slots in memory.

    A decision takes the next slot by count, so later events can only change what is *in* a slot.
    Slot numbers continue through all batches and serve as ids.
    """

    def __init__(self, released: Released, ledger: Ledger, p: int, missing: float | None) -> None:
        self.released, self.ledger = released, ledger
        self._p, self._missing = p, missing
        self._open_batch()

    def __repr__(self) -> str:
        return "MemoryStore(private)"

    def _open_batch(self) -> None:
        number = len(self.released.items) + 1
        schedule, A = self.released.schedule, self.released.n_actions
        self.number = number
        self.start = schedule.start(number)
        self.size = schedule.length(number) if schedule.fitted(number) else 0
        self.taken = self.unheard = 0
        self.closed = False
        self._features = np.empty((self.size, self._p))
        self._losses = np.empty((self.size, A))
        self._actions = np.empty(self.size, dtype=np.int64)

    @property
    def sealed(self) -> bool:
        """Every slot of the batch is taken."""
        return self.taken == self.size > 0

    @property
    def ready(self) -> bool:
        """Sealed, and every slot was heard from or declared missing."""
        return self.sealed and (self.closed or self.unheard == 0)

    def take(self, features: np.ndarray[Any, Any], actions: np.ndarray[Any, Any]) -> Any:
        """Take slots for as many decisions as fit; ids (n,), −1 for decisions without a slot."""
        count = min(len(actions), self.size - self.taken)
        begin, end = self.taken, self.taken + count
        self._features[begin:end] = features[:count]
        self._actions[begin:end] = actions[:count]
        self._losses[begin:end] = np.nan
        self.taken += count
        self.unheard += count
        ids = np.full(len(actions), -1, dtype=np.int64)
        ids[:count] = np.arange(self.start + begin, self.start + end)
        return ids

    def hear(self, ids: np.ndarray[Any, Any], losses: np.ndarray[Any, Any]) -> None:
        """Store losses (n,) of the chosen actions, or (n, A) of all actions; or store nothing."""
        stored = ids != -1
        if not stored.all():  # decisions without a slot have no loss to store
            ids, losses = ids[stored], losses[stored]
        slots = ids - self.start
        if slots.size:
            self._refuse_unknown_or_over(ids.min(), ids.max())
        if np.unique(slots).size != slots.size:
            raise InvalidInput(
                "decision ids must be distinct in one call; some repeat. Report each id once."
            )
        rows = self._rows_of(slots, losses)
        known = self._losses[slots]
        heard = ~np.isnan(known).all(axis=-1)
        refuse_other_loss(np.array_equal(known[heard], rows[heard], equal_nan=True))
        self._losses[slots] = rows
        self.unheard -= int((~heard).sum())

    def hear_one(self, id: int, loss: float) -> None:
        """``hear`` for one loss of one decision, faster, since it uses no arrays."""
        if id == -1:
            return
        self._refuse_unknown_or_over(id, id)
        slot = id - self.start
        place = slot, self._actions[slot]
        known = self._losses[place]
        if known == known:  # not NaN: heard before
            refuse_other_loss(known == loss)
            return
        self._losses[place] = loss
        self.unheard -= 1

    def _refuse_unknown_or_over(self, lowest: int, highest: int) -> None:
        if highest >= self.start + self.taken or lowest < 0:
            raise unknown_decision()
        if lowest < self.start or self.closed:
            raise batch_over()

    def _rows_of(self, slots: Any, losses: Any) -> np.ndarray[Any, Any]:
        if losses.ndim == 2:
            return np.asarray(losses)
        rows = np.full((len(slots), self._losses.shape[1]), np.nan)
        rows[np.arange(len(slots)), self._actions[slots]] = losses
        return rows

    def close(self) -> None:
        """Declare losses that the sealed batch still lacks missing."""
        if not self.sealed:
            raise NotReady(
                "batch must be sealed before it is closed; slots are still free. "
                "Go on deciding: a batch is closed by count, never by who answered."
            )
        self.closed = True

    def release(self, compute: Compute) -> Release:
        """Fit, publish, charge and delete rows in one step; an error changes nothing."""
        if not self.ready:
            raise NotReady(
                "batch must be full, with all losses, to be released; this one is not. "
                "Observe the remaining losses, or declare them missing with close()."
            )
        release, ledger = compute(self._batch(), self.released, self.ledger)
        self.released, self.ledger = self.released.add(release), ledger
        self._features.fill(0.0)  # overwrite the rows before their memory is freed
        self._losses.fill(0.0)
        self._actions.fill(0)
        self._open_batch()
        return release

    def _batch(self) -> Batch:
        return batch_of(self._features, self._losses, self._actions, self._missing)

    def rows(self) -> dict[str, np.ndarray[Any, Any]]:
        """The private rows of the open batch, for Learner.save."""
        return {
            "features": self._features[: self.taken],
            "losses": self._losses[: self.taken],
            "actions": self._actions[: self.taken],
            "closed": np.asarray(self.closed),
        }

    def continue_from(self, releases: tuple[Release, ...], ledger: Ledger, rows: Any) -> None:
        """Continue from a saved store."""
        self.released, self.ledger = replace(self.released, items=releases), ledger
        self._open_batch()
        count = len(rows["actions"])
        self.take(rows["features"], rows["actions"])
        self._losses[:count] = rows["losses"]
        self.unheard = int(np.isnan(rows["losses"]).all(axis=-1).sum())
        self.closed = bool(rows["closed"])


def batch_of(
    features: np.ndarray[Any, Any],
    losses: np.ndarray[Any, Any],
    actions: np.ndarray[Any, Any],
    missing: float | None,
) -> Batch:
    """Slots as a batch. Losses (n, A) are NaN if they never came: such a slot takes the missing
    loss for its action, or is void. A slot with the action −1 is always void."""
    if missing is not None:
        losses = losses.copy()  # a failed release must leave the rows as they were
        silent = np.flatnonzero(np.isnan(losses).all(axis=-1) & (actions >= 0))
        losses[silent, actions[silent]] = missing
    return Batch(features, np.nan_to_num(losses, nan=0.0), ~np.isnan(losses))
