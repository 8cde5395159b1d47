"""The private rows of one batch under way: a context, an action and losses per numbered slot."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from discreet.batch import Batch
from discreet.batches.slot_rules import refuse_other_loss


class Moment(NamedTuple):
    """A public moment: decisions made so far, and seconds by the clock of the window."""

    decisions: int
    seconds: float


class News(NamedTuple):
    """Losses that were checked and may be written: slots, their rows, how many are new."""

    slots: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]
    fresh: int


class BatchSlots:
    """Slots ``start`` … ``start + size − 1``; they are taken in order, and hear losses in any.

    ``opened`` is the moment from which a clock that closes the batch runs; with ``parts`` some
    slots are of a control.
    """

    def __init__(
        self,
        number: int,
        start: int,
        size: int,
        p: int,
        n_actions: int,
        opened: float = 0.0,
        parts: bool = False,
    ) -> None:
        self.number, self.start, self.size, self.opened = number, start, size, opened
        self.taken = self.unheard = 0
        self.sealed: Moment | None = None
        self.closed = False  # by hand; what the window says is asked of the window
        self.features = np.empty((size, p))
        self.losses = np.empty((size, n_actions))
        self.actions = np.empty(size, dtype=np.int64)
        self.counts = np.ones(size, dtype=bool)
        self.control = np.zeros(size, dtype=bool) if parts else None

    def __repr__(self) -> str:
        return "BatchSlots(private)"

    @property
    def free(self) -> int:
        return self.size - self.taken

    @property
    def end(self) -> int:
        """The id after the last slot that is taken."""
        return self.start + self.taken

    def take(
        self,
        features: np.ndarray[Any, Any],
        actions: np.ndarray[Any, Any],
        counts: np.ndarray[Any, Any] | None = None,
        control: np.ndarray[Any, Any] | None = None,
    ) -> None:
        """Take as many slots as there are rows; the caller has counted them.

        Slots that do not count are void: they hear a loss as all others do, and no fit reads them.
        """
        taken = slice(self.taken, self.taken + len(actions))
        self.features[taken] = features
        if counts is not None:
            self.counts[taken] = counts
            self.features[taken][~counts] = 0.0  # not needed, so not kept
        self.actions[taken] = actions
        if self.control is not None:
            self.control[taken] = control
        self.losses[taken] = np.nan
        self.taken += len(actions)
        self.unheard += len(actions)

    def widen(self, n_actions: int) -> None:
        """Make room for the losses of actions that were added before any slot was taken."""
        self.losses = np.empty((self.size, n_actions))

    def close_to_slots(self, sealed: Moment) -> None:
        """End the batch before it is full: slots that nobody took are no records of it."""
        self.size, self.sealed, taken = self.taken, sealed, slice(self.taken)
        self.features, self.losses = self.features[taken], self.losses[taken]
        self.actions, self.counts = self.actions[taken], self.counts[taken]
        self.control = None if self.control is None else self.control[taken]

    def news(self, ids: np.ndarray[Any, Any], losses: np.ndarray[Any, Any]) -> News:
        """What ``hear`` may write; refused if a slot has another loss already."""
        slots = ids - self.start
        rows = losses
        if losses.ndim == 1:
            rows = np.full((len(slots), self.losses.shape[1]), np.nan)
            rows[np.arange(len(slots)), self.actions[slots]] = losses
        known = self.losses[slots]
        heard = ~np.isnan(known).all(axis=-1)
        refuse_other_loss(np.array_equal(known[heard], rows[heard], equal_nan=True))
        return News(slots, rows, int((~heard).sum()))

    def hear(self, news: News) -> None:
        """Write losses that ``news`` has checked."""
        self.losses[news.slots] = news.rows
        self.unheard -= news.fresh

    def hear_one(self, id: int, loss: float) -> None:
        """``news`` and ``hear`` for one loss of one decision, faster, since it uses no arrays."""
        slot = id - self.start
        place = slot, self.actions[slot]
        known = self.losses[place]
        if known == known:  # not NaN: heard before
            refuse_other_loss(known == loss)
            return
        self.losses[place] = loss
        self.unheard -= 1

    def batch(self, missing: float | None) -> Batch:
        """The rows as a fit reads them."""
        if self.counts.all():
            return batch_of(self.features, self.losses, self.actions, missing, self.control)
        # Privacy: what a person says beyond their bound is in no fit, nor is their silence.
        # [docs/privacy/users.md, "Neighbours"]
        losses = np.where(self.counts[:, None], self.losses, np.nan)
        actions = np.where(self.counts, self.actions, -1)
        return batch_of(self.features, losses, actions, missing, self.control)

    def forget(self) -> None:
        """Overwrite the rows before their memory is freed."""
        self.features.fill(0.0)
        self.losses.fill(0.0)
        self.actions.fill(0)
        self.counts.fill(True)
        if self.control is not None:
            self.control.fill(False)


def batch_of(
    features: np.ndarray[Any, Any],
    losses: np.ndarray[Any, Any],
    actions: np.ndarray[Any, Any],
    missing: float | None,
    control: np.ndarray[Any, Any] | None = None,
) -> Batch:
    """Slots as a batch. Losses (n, A) are NaN if they never came: such a slot takes the missing
    loss for its action, or is void. A slot with the action −1 is always void."""
    if missing is not None:
        losses = losses.copy()  # a failed release must leave the rows as they were
        silent = np.flatnonzero(np.isnan(losses).all(axis=-1) & (actions >= 0))
        losses[silent, actions[silent]] = missing
    return Batch(features, np.nan_to_num(losses, nan=0.0), ~np.isnan(losses), control)
