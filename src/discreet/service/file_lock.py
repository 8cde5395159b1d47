"""Lock on a file, released when the block or the process ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import StateClaimed

AGAIN = 0.05
"""Seconds between two attempts."""


@contextmanager
def locked_file(
    path: Path, refusal: str, *, create: bool = False, shared: bool = False, patience: float = 0.0
) -> Iterator[None]:
    """Lock the file at ``path``; ``refusal`` is the error if another process holds the lock for
    longer than ``patience`` seconds. Several processes may hold a ``shared`` lock. With ``create``
    a missing file is created, readable by its owner only: a user who may open it may lock it."""
    wanted = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    end = time.monotonic() + patience
    # A lock file of an earlier version may be readable by others.
    flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
    with os.fdopen(os.open(path, flags, 0o600), "rb") as file:
        if create:
            os.fchmod(file.fileno(), 0o600)
        while True:
            try:
                fcntl.flock(file, wanted)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise StateClaimed(refusal) from None
            time.sleep(AGAIN)
        yield
