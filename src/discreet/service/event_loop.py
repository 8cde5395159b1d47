"""The event loop of this thread, for code that needs it several times per request."""

from __future__ import annotations

import asyncio
import threading

_thread = threading.local()


def running_loop() -> asyncio.AbstractEventLoop:
    """``asyncio.get_running_loop`` without its system call for the process id in Python 3.11."""
    loop: asyncio.AbstractEventLoop | None = getattr(_thread, "loop", None)
    if loop is None or not loop.is_running():
        loop = _thread.loop = asyncio.get_running_loop()
    return loop
