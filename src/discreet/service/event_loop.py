"""The event loop of this thread, for what asks for it several times a request."""

from __future__ import annotations

import asyncio
import threading

_thread = threading.local()


def running_loop() -> asyncio.AbstractEventLoop:
    """``asyncio.get_running_loop``, which in Python 3.11 asks the kernel who we are each time."""
    loop: asyncio.AbstractEventLoop | None = getattr(_thread, "loop", None)
    if loop is None or not loop.is_running():
        loop = _thread.loop = asyncio.get_running_loop()
    return loop
