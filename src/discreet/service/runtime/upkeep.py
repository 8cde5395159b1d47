"""Background tasks of a worker: releases that are due, erasure, refresh of the state."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from discreet.errors import NotReady
from discreet.releases.release import Release
from discreet.service.runtime import fit_process, release_transaction
from discreet.service.runtime.release_transaction import ReleaseRefused
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.secrets.vault import NAMES
from discreet.service.storage import journal
from discreet.service.storage.database import safe_name, step

Duty = Callable[[], Awaitable[object]]
TICK = 0.5
"""Seconds between two reads of the database: the delay until a worker sees a release or a key."""

NOTED, COUNTED = 120, 20
"""Ticks between two writes of which keys were used, and of how many decisions were answered."""
BREATH = 0.003
"""Seconds between two slices of deleted rows, in which decisions can be written. The same for every
slice: the time that it adds until the next release is public."""
QUIET, NAP = 10.0, 5.0
"""With many experiments, one without requests for ``QUIET`` seconds and without a release ahead is
refreshed every ``NAP`` seconds; the next request wakes it."""


class Upkeep:
    """Background tasks; ``once`` does everything that is due now.

    ``pace`` returns the seconds between two refreshes, where many experiments share a process.
    """

    def __init__(
        self,
        state: WorkerState,
        *,
        child: fit_process.FitChild | None = None,
        pace: Callable[[], float] | None = None,
    ) -> None:
        self._state, self._pace = state, pace
        self._fitter = None if child is None else fit_process.Fitter(state.settings, child)
        self._tasks: list[asyncio.Task[None]] = []
        self._erased = False
        self._reported: dict[str, str] = {}
        self._begun: tuple[dict[str, int], float] = ({}, 0.0)
        self._stopping = threading.Event()
        self._awake = asyncio.Event()
        self._waking = asyncio.Lock()

    def start(self) -> None:
        """Run the background tasks until ``stop``."""
        # A fit may take long; changes by other workers and operators are seen meanwhile, and the
        # clock of the open batch ticks.
        alone = (self._state.refresh, self.look, self.seal_by_clock, self.once, self.watch)
        duties: tuple[Duty, ...] = alone if self._pace is None else (self.round,)
        self._tasks = [asyncio.create_task(self._repeat(each)) for each in duties]
        self._tasks.append(asyncio.create_task(self._write_statistics()))

    async def stop(self) -> None:
        """Drop a fit that is under way: it is made again at the next start."""
        self._stopping.set()
        self._awake.set()
        ended = asyncio.gather(*self._tasks)
        while self._fitter and not ended.done():
            # Again and again: a task that had just begun a release starts the child once more.
            await asyncio.to_thread(self._fitter.close)
            await asyncio.wait([ended], timeout=0.1)
        await ended

    async def _repeat(self, duty: Duty) -> None:
        if self._pace is not None:  # the start has read everything; others want to start
            await self._rest()
        while not self._stopping.is_set():
            if not await self._tried(duty):  # after a release the next batch may be due already
                await self._rest()

    async def _tried(self, duty: Duty) -> object:
        try:
            return await duty()
        except Exception as error:
            # The kind of an error is public, its text may not be.
            if not self._stopping.is_set():
                self._state.log.failure("upkeep failed", kind=safe_name(error))
            return None

    async def round(self) -> object:
        """Run all duties in turn, where many experiments share a process."""
        for duty in (self.look, self.watch):
            await self._tried(duty)
        if not any(batch.state == "sealed" for batch in self._state.live):
            return await self.once()
        fit = asyncio.create_task(self.once())
        while not (await asyncio.wait([fit], timeout=TICK))[0]:
            for duty in (self._state.refresh, self.seal_by_clock, self.watch):
                await self._tried(duty)
        return await fit

    async def _rest(self) -> None:
        """Wait until the next refresh, or until the service stops."""
        tick = TICK
        if self._pace is not None:
            self._state.asleep = self._quiet()
            tick = NAP if self._state.asleep else max(TICK, self._pace())
            tick *= random.uniform(0.7, 1.0)  # so that not all refresh at once
        with suppress(TimeoutError):
            await asyncio.wait_for(self._awake.wait(), tick)

    def _quiet(self) -> bool:
        """Return whether there are no requests, no release ahead and no clock of a batch."""
        state = self._state
        clock = state.settings.plan.close_every is not None
        ahead = any(clock or batch.state == "sealed" for batch in state.live)
        return not ahead and time.perf_counter() - state.last_request > QUIET

    async def wake(self) -> None:
        """Refresh before the first request after a nap, and refresh often again."""
        async with self._waking:
            if self._state.asleep:
                with suppress(Exception):  # the request fails too, and reports it
                    await self._state.refresh()
                self._state.asleep = False
                self._awake.set()
                if not self._stopping.is_set():
                    self._awake.clear()

    async def _write_statistics(self) -> None:
        """Write the use of keys, and counts of decisions and failures."""
        for tick in itertools.count(1):
            await self._rest()
            if self._stopping.is_set():
                return
            self._state.log.write_counts()
            with suppress(Exception):  # other tasks fail too, and report it
                if tick % COUNTED == 0:
                    await self._state.store_traffic()
                if tick % NOTED == 0:
                    await self._state.store_key_use()

    async def watch(self) -> None:
        """Log when this worker becomes unable to decide, and when it is able again."""
        state = self._state
        await state.probe()
        faults, before = state.unready, self._reported.keys()
        if faults and faults.keys() != before:
            state.log.event("not ready", reasons=list(faults), kind=", ".join(faults.values()))
        elif before and not faults:
            state.log.event("ready")
        self._reported = faults

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise NotReady("service must be running to release; it is stopping. Start it again.")

    async def look(self) -> None:
        """Check whether somebody edited the experiment file."""
        if self._state.file is not None:
            await asyncio.to_thread(self._state.file.look)

    async def seal_by_clock(self) -> None:
        """Seal the open batch when its time is over, also without requests."""
        state = self._state
        if state.settings.plan.close_every is None or state.set_back is not None:
            return
        if await state.read(state.slots.clock_ticked):
            await state.write(state.slots.seal_by_clock)
            step("clock:committed")
            await state.refresh()

    async def once(self) -> bool:
        """Release what is due and erase what is over; True if a release was made."""
        state, made = self._state, False
        await self.seal_by_clock()
        if any(batch.state == "sealed" for batch in state.live):
            # A document that a dead process committed is confirmed before another one follows.
            await state.refresh()
            if self._fitter:
                await asyncio.to_thread(self._fitter.start)
            made = await self._release()
        else:
            state.refused = None
        await state.refresh()
        if made:
            place, seconds = self._begun[0], round(time.monotonic() - self._begun[1], 1)
            state.log.event("released", release=state.serving.newest, seconds=seconds, **place)
        # A key may outlive its batch if the process that released the batch died, or if the answer
        # to its COMMIT was lost.
        left = any(state.over(*place) for place in state.vault.batches())
        await self._forget_names()
        if made or left or not self._erased:
            await self.erase()
        return made

    async def _forget_names(self) -> None:
        """Destroy expired keys of names, then delete a slice of those names: a release that is due
        meanwhile does not wait for all of them."""
        state = self._state
        expired = state.names.expired
        for place in expired:
            await asyncio.to_thread(state.vault.destroy, *place, NAMES)
            step("names:key-destroyed")
        if expired:
            done = await state.write(partial(state.names.forget, place=expired[0]))
            self._erased = self._erased and not done

    async def _release(self) -> bool:
        state = self._state
        try:
            made = await asyncio.to_thread(self._publisher().release_next)
        except ReleaseRefused as refused:
            if refused.reason != state.refused:  # log it once, not with every attempt
                state.log.event("release refused", kind=refused.reason)
            state.refused = refused.reason
            if self._fitter:  # that process may be broken: start a new one
                await asyncio.to_thread(self._fitter.close)
            return False
        if made:
            state.refused = None
        return made

    async def erase(self) -> None:
        """Erase what is left of batches that are over; repeated until nothing is left."""
        state = self._state
        await state.read(partial(release_transaction.destroy_keys, state.vault))
        while (left := await state.read(journal.left_over)) is not None:
            await asyncio.to_thread(self._forget, *left)
        # Most of the work is done outside the writing thread, for which decisions wait.
        await asyncio.to_thread(state.database.prepare_erasure)
        self._erased = await asyncio.to_thread(state.writer.alone, state.database.erase)
        step("release:erased")

    def _forget(self, epoch: int, batch: int, size: int) -> None:
        """Delete the rows of a batch in slices, so that no decision waits for the whole batch."""
        state = self._state
        for first in range(0, size, journal.SLICE):
            slots = range(first, first + journal.SLICE)
            delete = partial(journal.forget_slots, epoch=epoch, batch=batch, slots=slots)
            state.writer.run(delete)
            step("release:some-deleted")
            self._stopping.wait(BREATH)
        state.writer.run(lambda c: journal.forget(c, epoch, batch))

    def _publisher(self) -> release_transaction.Publisher:
        state = self._state
        fit = self._fitter or partial(fit_process.fit, state.settings, state.database, state.vault)

        def logged_fit(epoch: int, batch: int, taken: int) -> Release:
            place = {"epoch": epoch, "batch": batch}
            if place != self._begun[0]:  # once, not with every attempt
                self._begun = (place, time.monotonic())
                state.log.event("release begun", **place)
            return fit(epoch, batch, taken)

        stores = state.settings, state.database, state.vault, state.anchor
        chain, commit = state.serving.chain, state.writer.run
        return release_transaction.Publisher(*stores, chain, logged_fit, commit, self._pause)
