"""Helpers for the event loop: the running loop, and calls that several requests share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_thread = threading.local()


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop without the system call that Python 3.11 makes each time."""
    loop: asyncio.AbstractEventLoop | None = getattr(_thread, "loop", None)
    if loop is None or not loop.is_running():
        loop = _thread.loop = asyncio.get_running_loop()
    return loop


Item = TypeVar("Item")
Made = TypeVar("Made")


class SharedCalls(Generic[Item, Made]):
    """Joins work of concurrent requests: ``work`` is called once for many items.

    Each caller gets the result or the exception of its item.

    Items wait for the end of this turn of the event loop. While there are ``others``, they wait
    until ``pause`` seconds after the last call: under load more items share a call.
    """

    def __init__(
        self,
        work: Callable[[list[Item]], Sequence[Made | Exception]],
        *,
        pause: float = 0.0,
        others: Callable[[], bool] = lambda: False,
    ) -> None:
        self._work, self._pause, self._others = work, pause, others
        self._waiting: list[tuple[Item, asyncio.Future[Made]]] = []
        self._next = 0.0

    def __call__(self, item: Item) -> asyncio.Future[Made]:
        """Return a future for the result of ``work`` for this item."""
        loop = running_loop()
        if not self._waiting:
            wait = self._next - loop.time() if self._others() else 0.0
            if wait > 0:
                loop.call_later(wait, self._do, loop)
            else:
                loop.call_soon(self._do, loop)
        done: asyncio.Future[Made] = loop.create_future()
        self._waiting.append((item, done))
        return done

    def _do(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            made = self._work([item for item, _ in waiting])
        except Exception as error:
            made = [error] * len(waiting)
        for (_, done), one in zip(waiting, made, strict=True):
            if done.done():  # its request was cancelled
                continue
            if isinstance(one, Exception):
                done.set_exception(one)
            else:
                done.set_result(one)
        self._next = loop.time() + self._pause
