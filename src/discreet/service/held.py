"""The slots that this process may hand out, and where it gets more."""

from __future__ import annotations

import asyncio

from discreet.service.batches import Lease
from discreet.service.state import State
from discreet.service.steps import step

ASK_AGAIN = 0.25
"""Seconds until a worker that was told of no open batch asks the database again."""


class HeldSlots:
    """One leased block at a time; what is left of it when the process ends is void."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lease: Lease | None = None
        self._spare: list[tuple[Lease, int]] = []
        self._leasing = asyncio.Lock()
        self._idle_until = 0.0

    async def take(self) -> tuple[Lease, int] | None:
        """A slot of the leased block, or of a new one; None while no batch is open."""
        loop = asyncio.get_running_loop()
        while True:
            if self._spare:
                return self._spare.pop()
            lease = self._lease
            if lease is not None and lease.free:
                return lease, lease.free.pop()
            if self._state.mode == "frozen" or loop.time() < self._idle_until:
                return None
            async with self._leasing:
                if self._lease is lease and loop.time() >= self._idle_until:
                    await self._ask()
                # Otherwise somebody else has asked meanwhile.

    async def _ask(self) -> None:
        state = self._state
        leased = await state.writer.write(state.slots.lease, None)
        step("lease:committed")
        if leased is None:
            self._idle_until = asyncio.get_running_loop().time() + ASK_AGAIN
        elif leased.release > state.serving.newest:
            await state.refresh()  # this worker has not heard of that release yet
        self._lease = leased

    def put_back(self, lease: Lease, slot: int) -> None:
        """A slot in which nothing was written."""
        self._spare.append((lease, slot))

    def drop(self, lease: Lease) -> None:
        """The batch of a lease is over."""
        if self._lease is lease:
            self._lease = None

    def look(self) -> None:
        """Forget slots of batches that are over, and ask the database at the next decision."""
        self._idle_until = 0.0
        lease, over = self._lease, self._state.over
        if lease is not None and over(lease.epoch, lease.batch):
            self._lease = None
        self._spare = [each for each in self._spare if not over(each[0].epoch, each[0].batch)]
