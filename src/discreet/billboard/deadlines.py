"""Deadlines: whoever asks waits so long and no longer, whatever name servers or networks do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from discreet.errors import InvalidInput, ServiceError

T = TypeVar("T")
THREADS = 32
"""Requests under way at once; more wait for a thread, and their time runs meanwhile."""


class Deadline:
    """Runs requests in threads and gives up waiting after ``seconds``; None waits for the end."""

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not seconds > 0.0:
            raise InvalidInput(
                f"deadline must be a positive number of seconds; got {seconds!r}. "
                "Write deadline=0.2, or None to wait as long as the retries last."
            )
        self._seconds = seconds
        self._threads = _pool()

    def wait(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises; ServiceError if it is not done in time."""
        if self._seconds is None:
            return work()
        future = self._threads.submit(work)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            future.cancel()
            raise self._late() from None

    async def wait_async(self, work: Callable[[], T]) -> T:
        """The same for coroutines: other tasks go on meanwhile."""
        future = asyncio.wrap_future(self._threads.submit(work))
        try:
            return await asyncio.wait_for(future, self._seconds)
        except TimeoutError:
            raise self._late() from None

    def close(self) -> None:
        """End idle threads; what is under way ends by itself, and the next request starts one."""
        threads, self._threads = self._threads, _pool()
        threads.shutdown(wait=False, cancel_futures=True)

    def _late(self) -> ServiceError:
        return ServiceError(
            f"service must answer within the deadline of {self._seconds:g} seconds; it did not. "
            "Show a fallback action, or raise the deadline."
        )


def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "discreet-client")  # starts no thread yet
