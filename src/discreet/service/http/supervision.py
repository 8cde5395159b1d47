"""Workers end with the process that supervises them.

If they went on after it was killed, they would hold the port, and nobody could start the service.
"""

from __future__ import annotations

import os
import signal
import threading
import time

LOOK = 0.1
"""Seconds between two looks at the supervisor."""


def end_with(supervisor: int) -> None:
    """End this process as an operator would, as soon as its supervisor is gone."""
    threading.Thread(target=_watch, args=(supervisor,), name="supervision", daemon=True).start()


def _watch(supervisor: int) -> None:
    while os.getppid() == supervisor:  # an orphan has another parent
        time.sleep(LOOK)
    os.kill(os.getpid(), signal.SIGTERM)
