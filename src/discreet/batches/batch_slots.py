"""Private rows of one batch under way: a context, an action and losses per numbered slot.

The rules of a slot hold for learner and service: its first loss stays, and its batch ends once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from discreet.batch import Batch
from discreet.errors import DecisionClosed, LossConflict, UnknownDecision
from discreet.plan.plan import Plan
from discreet.types import NumpyArray


def refuse_other_loss(same: bool, word: str = "loss") -> None:
    """Raise unless the second loss of a slot is the ``same``; ``word`` is its name in the error."""
    if not same:
        raise LossConflict(
            f"{word} must equal the one already stored for that decision; it differs. "
            "The first one is kept."
        )


def unknown_decision() -> UnknownDecision:
    """Error for an id that was never returned here."""
    return UnknownDecision(
        "decision id must be one that decide returned here; this one is not. "
        "Send it unchanged, to the learner or service that returned it."
    )


def batch_over() -> DecisionClosed:
    """Error for a loss that comes after the end of its batch."""
    return DecisionClosed(
        "decision must belong to a batch under way; its batch is over, or not known any more. "
        "Nothing changed: drop the late loss. If losses often come so late, begin with a longer "
        "window."
    )


class Moment(NamedTuple):
    """Public moment: decisions made so far, and seconds by the clock of the window."""

    decisions: int
    seconds: float


ROWS = ("features", "losses", "actions", "counts", "control", "guardrails")
"""Arrays of a batch with a row per slot; the last two are None where the plan has none."""


class BatchSlots:
    """Slots ``start`` … ``start + size − 1``, taken in order; their losses come in any order.

    ``opened`` is when the clock that closes the batch started.
    """

    def __init__(self, plan: Plan, number: int, n_actions: int, opened: float = 0.0) -> None:
        self.number, self.opened = number, opened
        self.start, self.size = plan.schedule.start(number), plan.schedule.length(number)
        self.taken = self.unobserved = 0
        self.sealed: Moment | None = None
        self.closed = False  # by hand; the window decides otherwise
        self.features = np.empty((self.size, plan.features.p))
        self.losses = np.empty((self.size, n_actions))
        self.actions = np.empty(self.size, dtype=np.int64)
        self.counts = np.ones(self.size, dtype=bool)
        self.control = None if plan.control is None else np.zeros(self.size, dtype=bool)
        self.guardrails = None
        if plan.guardrails is not None:
            self.guardrails = np.full((self.size, len(plan.guardrails)), np.nan)

    def __repr__(self) -> str:
        return "BatchSlots(private)"

    @property
    def free(self) -> int:
        return self.size - self.taken

    @property
    def end(self) -> int:
        """Id after the last slot that is taken."""
        return self.start + self.taken

    def take(
        self,
        features: NumpyArray,
        actions: NumpyArray,
        counts: NumpyArray | None = None,
        control: NumpyArray | None = None,
    ) -> None:
        """Take as many slots as there are rows; the caller has counted them.

        Slots that do not count are void: they accept a loss like all others, and no fit reads it.
        """
        taken = slice(self.taken, self.taken + len(actions))
        self.features[taken] = features
        if counts is not None:
            self.counts[taken] = counts
            self.features[taken][~counts] = 0.0  # not needed, so not stored
        self.actions[taken] = actions
        if self.control is not None:
            self.control[taken] = control
        self.losses[taken] = np.nan
        self.taken += len(actions)
        self.unobserved += len(actions)

    def close_to_slots(self, sealed: Moment) -> None:
        """End the batch before it is full: slots that were not taken are no records of it."""
        self.size, self.sealed = self.taken, sealed
        for name, rows in self.rows().items():
            setattr(self, name, rows)

    def rows(self) -> dict[str, NumpyArray]:
        """Return the arrays of the slots that are taken, by name."""
        arrays = {name: getattr(self, name) for name in ROWS}
        return {name: rows[: self.taken] for name, rows in arrays.items() if rows is not None}

    def checked(
        self, ids: NumpyArray, losses: NumpyArray, guardrails: NumpyArray | None
    ) -> Callable[[], None]:
        """Return a call that writes these losses; raise if a slot has another loss already."""
        slots = ids - self.start
        rows = losses
        if losses.ndim == 1:
            rows = np.full((len(slots), self.losses.shape[1]), np.nan)
            rows[np.arange(len(slots)), self.actions[slots]] = losses
        known = self.losses[slots]
        observed = ~np.isnan(known).all(axis=-1)
        refuse_other_loss(np.array_equal(known[observed], rows[observed], equal_nan=True))
        if self.guardrails is not None and guardrails is not None:
            before, now = self.guardrails[slots][observed], guardrails[observed]
            refuse_other_loss(np.array_equal(before, now, equal_nan=True), "guardrails")

        def write() -> None:
            self.losses[slots] = rows
            if self.guardrails is not None and guardrails is not None:
                self.guardrails[slots] = guardrails
            self.unobserved -= int((~observed).sum())

        return write

    def observe_one(self, id: int, loss: float) -> None:
        """Check and write one loss of one decision; faster, since it uses no arrays."""
        slot = id - self.start
        place = slot, self.actions[slot]
        known = self.losses[place]
        if known == known:  # not NaN: observed before
            refuse_other_loss(known == loss)
            return
        self.losses[place] = loss
        self.unobserved -= 1

    def batch(self, missing: float | None) -> Batch:
        """Return the rows as a fit reads them."""
        losses, actions = self.losses, self.actions
        if not self.counts.all():
            # Privacy: reports of a person beyond their bound are in no fit, nor is their silence.
            # [docs/privacy/users.md, "Neighbours"]
            losses = np.where(self.counts[:, None], losses, np.nan)
            actions = np.where(self.counts, actions, -1)
        return batch_of(self.features, losses, actions, missing, self.control, self.guardrails)

    def forget(self) -> None:
        """Overwrite the rows before their memory is freed."""
        for name in ROWS:
            if (rows := getattr(self, name)) is not None:
                rows.fill(0)


def batch_of(
    features: NumpyArray,
    losses: NumpyArray,
    actions: NumpyArray,
    missing: float | None,
    control: NumpyArray | None = None,
    guardrails: NumpyArray | None = None,
) -> Batch:
    """Make a batch of slots. Losses (n, A) are NaN if they never came: such a slot takes the
    missing loss for its action, or is void. A slot with the action −1 is always void."""
    if missing is not None:
        losses = losses.copy()  # a failed release must leave the rows as they were
        silent = np.flatnonzero(np.isnan(losses).all(axis=-1) & (actions >= 0))
        losses[silent, actions[silent]] = missing
    return Batch(features, np.nan_to_num(losses, nan=0.0), ~np.isnan(losses), control, guardrails)
