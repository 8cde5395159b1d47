"""Store of private rows until their release, which is one atomic step.

``Store.release`` is the single place where private rows become a public release: ledger
entry, release and deletion of the rows appear together or not at all.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from discreet.batch import Batch
from discreet.batches.batch_slots import BatchSlots, Moment, batch_over, unknown_decision
from discreet.batches.users import PeopleRegistry
from discreet.design.control import slots_in_control
from discreet.design.schedule import WAITING, Window, may_open, seconds_now, tick
from discreet.errors import InvalidInput, NotReady
from discreet.plan.plan import Plan
from discreet.privacy.ledger import Ledger
from discreet.releases.catalogue import ActionChange
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.types import NumpyArray
from discreet.validate import one_of

Fit = Callable[[Batch, Released, Ledger], tuple[Release, Ledger]]


class MemoryStore:
    """Batches of numbered slots in memory: one that is open, and those that wait for losses.

    A decision takes the next slot by count, so later events can only change what is *in* a slot.
    Slot numbers continue through all batches and serve as ids. ``batches`` are under way, the
    oldest first; all but the last are sealed. ``fit`` releases them in that order. Where the
    schedule has a clock, it closes the open batch; the numbers of slots that were not taken stay
    unused.
    """

    def __init__(
        self,
        plan: Plan,
        ledger: Ledger,
        fit: Fit,
        *,
        waiting: str = "pipeline",
        window: int | str | None = 1_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.plan, self.fit, self._clock = plan, fit, clock
        self.waiting, self.window = one_of("waiting", waiting, WAITING), Window(window)
        self.on_last_answer, self._every = plan.releases_on_last_answer, plan.schedule.seconds
        often = plan.participation
        self.people = None if often is None else PeopleRegistry(often)
        self.decisions, self.seconds = 0, 0.0
        self.begin_after(plan.nothing_released(), ledger)

    def __repr__(self) -> str:
        return "MemoryStore(private)"

    def begin_after(self, released: Released, ledger: Ledger) -> None:
        """Open the batch that follows these releases; nothing else is under way."""
        self.released, self.ledger = released, ledger
        self.batches = self._with_room([], len(released.items), 0, self.now().seconds)

    def _with_room(
        self, batches: list[BatchSlots], last: int, rows: int, opened: float
    ) -> list[BatchSlots]:
        """Return these batches and new ones after number ``last``, as the rules allow, until one
        slot more is free than there are rows; their clock runs from the moment ``opened``."""
        schedule, batches = self.plan.schedule, list(batches)
        free = batches[-1].free if batches else 0
        while free <= rows and may_open(self.waiting, len(batches)) and schedule.fitted(last + 1):
            last += 1
            batches.append(BatchSlots(self.plan, last, self.released.blocks(last), opened))
            free += batches[-1].size
        return batches

    @property
    def open_number(self) -> int:
        """Number of the batch that takes the next slot, as far as is known."""
        return self.batches[-1].number if self.batches else len(self.released.items) + 1

    @property
    def next_empty(self) -> int:
        """Number of the first batch of which no slot is taken."""
        return self.open_number + bool(self.batches and self.batches[-1].taken)

    def change_actions(self, change: ActionChange) -> None:
        """Publish a change; an open batch without a slot taken gets columns for new actions."""
        self.released = self.released.changed(change)
        if self.batches and not self.batches[-1].taken:
            batch = self.batches[-1]
            batch.losses = np.empty((batch.size, self.released.blocks(batch.number)))

    def now(self) -> Moment:
        """Return the public moment by which batches and windows end; a clock that is set back
        shows the old time."""
        if self._every is not None or self.window.seconds is not None:
            self.seconds = max(self.seconds, seconds_now(self._clock))
        return Moment(self.decisions, self.seconds)

    def seal_by_clock(self) -> None:
        """Close the open batch to slots if its time is up, and open the next one."""
        if self._every is None or not self.batches or self.batches[-1].sealed is not None:
            return
        now, batch = self.now(), self.batches[-1]
        batch.opened, closed = tick(self._every, batch.opened, batch.taken, now.seconds)
        if closed:
            self.close_to_slots(Moment(now.decisions, batch.opened))

    def close_to_slots(self, sealed: Moment) -> None:
        """End the open batch at that moment, and open the next one if others may wait."""
        batch = self.batches[-1]
        batch.close_to_slots(sealed)
        self.batches = self._with_room(self.batches, batch.number, 0, sealed.seconds)
        self.seal_by_clock()  # the new batch is empty: its clock runs from the newest tick

    def over(self, batch: BatchSlots, coming: int = 0) -> bool:
        """Return whether a batch accepts no more losses: it was closed, or its window is over when
        ``coming`` more decisions are made."""
        if batch.closed or batch.sealed is None:
            return batch.closed
        now = self.now()
        decisions = now.decisions + coming - batch.sealed.decisions
        return self.window.over(decisions, now.seconds - batch.sealed.seconds)

    def ready(self, coming: int = 0) -> bool:
        """Return whether the oldest batch is sealed and its waiting is over: by public counts and
        clocks, or, with ``on_last_answer``, because all its losses have come.

        Privacy: a release that waits for the last answer makes silence public.
        [docs/privacy/transcript.md, "Silence"]
        """
        self.seal_by_clock()
        oldest = self.batches[0] if self.batches else None
        if oldest is None or oldest.sealed is None:
            return False
        if self.on_last_answer and oldest.unobserved == 0:
            return True
        return self.over(oldest, coming)

    @property
    def end(self) -> int:
        """Id of the next slot."""
        if self.batches:
            return self.batches[-1].end
        return self.plan.schedule.start(len(self.released.items) + 1)

    def _slots_for(self, rows: int, opened: float) -> list[tuple[BatchSlots, slice]]:
        """Batches, and those of the next decisions that take slots of each."""
        last = self.batches[-1].number if self.batches else len(self.released.items)
        done, parts = 0, []
        for batch in self._with_room(self.batches, last, rows, opened):
            count = min(batch.free, rows - done)
            parts.append((batch, slice(done, done + count)))
            done += count
        return parts

    def coming(self, rows: int) -> NumpyArray:
        """Return the ids (n,) that ``take`` will give so many decisions, −1 without a slot."""
        ids = np.full(rows, -1, dtype=np.int64)
        for batch, part in self._slots_for(rows, self.seconds):
            ids[part] = np.arange(batch.end, batch.end + part.stop - part.start)
        return ids

    def in_control(self, share: float, rows: int, users: list[str] | None) -> NumpyArray:
        """Mask of the next decisions that are of the control: by slot, or by person."""
        if self.people is not None and users is not None:
            return self.people.in_control(users, share)
        return slots_in_control(share, self.plan.schedule, self.coming(rows))

    def take(
        self,
        features: NumpyArray,
        actions: NumpyArray,
        users: Sequence[str | None] = (),
        control: NumpyArray | None = None,
    ) -> NumpyArray:
        """Take slots for as many decisions as find one; return ids (n,), −1 without a slot.

        Void slots change nothing that is returned here or later. ``control`` (n,) marks the
        decisions of the control, where the plan has one. The clock does not tick in here: the
        caller calls ``seal_by_clock`` before.
        """
        rows, first = len(actions), self.end
        if self.batches and rows < self.batches[-1].free:  # the usual call: nothing is sealed
            self._fill(self.batches[-1], features, actions, users, control)
            self.decisions += rows
            return np.arange(first, first + rows)
        ids = self.coming(rows)
        sealed = Moment(self.decisions + rows, self.now().seconds)
        parts = self._slots_for(rows, sealed.seconds)  # before any row is written
        for batch, part in parts:
            if part.start < part.stop:
                own = None if control is None else control[part]
                self._fill(batch, features[part], actions[part], users[part], own)
                batch.sealed = None if batch.free else sealed
        self.batches, self.decisions = [batch for batch, _ in parts], sealed.decisions
        return ids

    def _fill(
        self,
        batch: BatchSlots,
        features: NumpyArray,
        actions: NumpyArray,
        users: Sequence[str | None],
        control: NumpyArray | None,
    ) -> None:
        counts = None if self.people is None else self.people.hand_out(users, batch.number)
        batch.take(features, actions, counts, control)

    def observe(
        self, ids: NumpyArray, losses: NumpyArray, guardrails: NumpyArray | None = None
    ) -> None:
        """Store losses (n,) of the chosen actions, or (n, A) of all, and guardrails (n, k); after
        an error, none."""
        stored = ids != -1  # decisions without a slot have no loss to store
        ids, losses = ids[stored], losses[stored]
        guardrails = None if guardrails is None else guardrails[stored]
        if not ids.size:
            return
        self.seal_by_clock()
        self._refuse_unknown_or_past(ids.min(), ids.max())
        found = [(batch, (ids >= batch.start) & (ids < batch.end)) for batch in self.batches]
        parts = [(batch, inside) for batch, inside in found if inside.any()]
        if sum(int(inside.sum()) for _, inside in parts) < ids.size:
            raise unknown_decision()  # a slot that was not taken before its batch was closed
        if any(self.over(batch) for batch, _ in parts):
            raise batch_over()
        if np.unique(ids).size != ids.size:
            raise InvalidInput(
                "decision ids must be distinct in one call; some repeat. Report each id once."
            )
        checked = []
        for batch, inside in parts:
            own = None if guardrails is None else guardrails[inside]
            checked.append(batch.checked(ids[inside], losses[inside], own))
        for write in checked:  # nothing is written before everything was checked
            write()

    def observe_one(self, id: int, loss: float) -> None:
        """Store one loss of one decision; faster, since it uses no arrays."""
        if id == -1:
            return
        self.seal_by_clock()
        self._refuse_unknown_or_past(id, id)
        batch = self.batches[-1]
        if id < batch.start:
            places = bisect_right(self.batches, id, key=attrgetter("start"))
            batch = self.batches[places - 1]
        if id >= batch.end:
            raise unknown_decision()  # a slot that was not taken before its batch was closed
        if self.over(batch):
            raise batch_over()
        batch.observe_one(id, loss)

    def _refuse_unknown_or_past(self, lowest: int, highest: int) -> None:
        if highest >= self.end or lowest < 0:
            raise unknown_decision()
        if not self.batches or lowest < self.batches[0].start:
            raise batch_over()

    def close(self) -> None:
        """Declare losses that the oldest sealed batch still lacks missing."""
        self.seal_by_clock()
        if not self.batches or self.batches[0].sealed is None:
            raise NotReady(
                "batch must be sealed before it is closed; slots are still free. "
                "Go on deciding: a batch is closed by count, never by who answered."
            )
        self.batches[0].closed = True

    def release(self, coming: int = 0) -> Release:
        """Fit the oldest batch, publish, charge and delete its rows in one step; an error changes
        nothing, and the other batches are never touched."""
        if not self.ready(coming):
            raise self._not_ready()
        oldest, others = self.batches[0], self.batches[1:]
        missing = self.plan.missing_loss
        release, ledger = self.fit(oldest.batch(missing), self.released, self.ledger)
        last, now = others[-1].number if others else oldest.number, self.now().seconds
        batches = self._with_room(others, last, 0, now)
        self.released, self.ledger = self.released.add(release), ledger
        self.batches = batches
        oldest.forget()
        return release

    def _not_ready(self) -> NotReady:
        """Error that names why nothing is released; free slots are public."""
        if not self.batches:
            state, why = "under way", "the horizon is reached. Make a plan with a longer horizon."
        elif self.batches[0].sealed is None:
            state, why = "full", "slots are still free. Go on deciding."
        elif not self.on_last_answer:  # the same words for all answers
            state, why = "closed", "its window is not over. Go on deciding, or call close()."
        else:
            state, why = "full, with all losses,", "this one lacks some. Observe them, or close()."
        return NotReady(f"batch must be {state} to be released; {why}")

    def release_ready(self, coming: int) -> None:
        """Release what is ready when ``coming`` more decisions are made, the oldest first."""
        while self.ready(coming):
            self.release(coming)
