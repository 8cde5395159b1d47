"""Slots that this process has leased from the database and may assign to requests."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from functools import partial

from discreet.errors import NotReady
from discreet.service.event_loop import running_loop
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.settings import STORING
from discreet.service.storage.batches import Lease, SlotRequest
from discreet.service.storage.database import step

RETRY = 0.25
"""Seconds until a worker that found no open batch queries the database again."""
LASTS, TIMES = 0.25, 16
"""After a block that lasted less than ``LASTS`` seconds the next block is twice as long, at most
``TIMES`` times the ``lease`` of the settings: under load few requests wait for a block. After any
other it has ``lease`` slots, or one where a clock ends batches: unused slots count as taken."""


class LeasedSlots:
    """One leased block at a time. Unused slots go back at a clean stop, and are void after a
    crash."""

    def __init__(self, state: WorkerState) -> None:
        self._state = state
        self._lease: Lease | None = None
        self._spare: list[tuple[Lease, int]] = []
        self._leasing = asyncio.Lock()
        self._idle_until = self._leased_at = -math.inf
        clock = state.settings.plan.close_every
        self._shortest = state.settings.lease if clock is None else 1
        self._length, self._waiting = self._shortest, 0

    async def take(self) -> tuple[Lease, int] | None:
        """Return a slot of the leased block, or of a new one; None while no batch is open."""
        while self._state.mode in STORING:
            if self._spare:
                return self._spare.pop()
            lease = self._lease
            if lease is not None and lease.free:
                if lease.release > self._state.serving.newest:
                    await self._read_release(lease.release)
                    continue
                return lease, lease.free.pop()
            loop = running_loop()
            if loop.time() < self._idle_until:
                return None
            self._waiting += 1
            try:
                async with self._leasing:
                    if self._lease is lease and loop.time() >= self._idle_until:
                        await self._lease_block(loop.time())
                    # Otherwise another request has leased a block meanwhile.
            finally:
                self._waiting -= 1
        return None

    async def _lease_block(self, now: float) -> None:
        state = self._state
        lasted, most = now - self._leased_at, TIMES * state.settings.lease
        self._length = self._shortest if lasted > LASTS else min(2 * self._length, most)
        self._leased_at = now
        wanted = SlotRequest(self._length, self._waiting)
        leased = await state.writer.write(state.slots.lease, wanted)
        step("lease:committed")
        if leased is None:
            self._idle_until = running_loop().time() + RETRY
        self._lease = leased

    async def _read_release(self, release: int) -> None:
        """Read the database again for the release that decides the batch of the lease."""
        await self._state.refresh()
        if release > self._state.serving.newest:
            raise NotReady(
                f"document {release} must be confirmed before it decides; it is not yet. Try again."
            )

    def put_back(self, lease: Lease, slot: int) -> None:
        """Return a slot to which nothing was written."""
        self._spare.append((lease, slot))

    def drop(self, lease: Lease) -> None:
        """Drop a lease whose batch is over."""
        if self._lease is lease:
            self._lease = None

    async def give_back(self) -> None:
        """Give back unused slots; afterwards this process assigns none."""
        left: dict[bytes, Lease] = {}
        for lease, slots in [(self._lease, None), *((each, [slot]) for each, slot in self._spare)]:
            if lease is not None:
                kept = left.setdefault(lease.nonce, replace(lease, free=[]))
                kept.free += lease.free if slots is None else slots
        self._lease, self._spare, self._idle_until = None, [], math.inf
        for lease in left.values():
            if lease.free:
                await self._state.write(partial(self._state.slots.give_back, lease=lease))
                step("return:committed")

    def look(self) -> None:
        """Drop slots of batches that assign none, and query the database at the next decision."""
        if self._idle_until < math.inf:
            self._idle_until = 0.0
        lease, fit = self._lease, self._state.assigns_slots
        if lease is not None and not fit(lease.epoch, lease.batch):
            self._lease = None
        self._spare = [each for each in self._spare if fit(each[0].epoch, each[0].batch)]
