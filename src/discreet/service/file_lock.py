"""A lock on a file: held until the block ends, and gone with the process that held it."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import StateClaimed

AGAIN = 0.05
"""Seconds between two tries."""


@contextmanager
def held(
    path: Path, refusal: str, *, mode: str = "rb", shared: bool = False, patience: float = 0.0
) -> Iterator[None]:
    """Hold the file at ``path``; ``refusal`` is the error where another process holds it for longer
    than ``patience`` seconds. Those who hold it ``shared`` hold it together."""
    wanted = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    end = time.monotonic() + patience
    with path.open(mode) as file:
        while True:
            try:
                fcntl.flock(file, wanted)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise StateClaimed(refusal) from None
            time.sleep(AGAIN)
        yield
