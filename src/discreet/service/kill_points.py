"""Named steps at which a test can end the process, as a power cut would."""

from __future__ import annotations

import os
import signal

_NAME, _, _PASS = os.environ.get("DISCREET_STEP", "").partition("@")
_left = int(_PASS or 1)


def step(name: str) -> None:
    """Kill this process if DISCREET_STEP is ``name`` (or ``name@7``, at the seventh pass)."""
    global _left
    if name != _NAME:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
