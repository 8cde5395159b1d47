"""A lock on a file: held until the block ends, and gone with the process that held it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import StateClaimed

AGAIN = 0.05
"""Seconds between two tries."""


@contextmanager
def locked_file(
    path: Path, refusal: str, *, create: bool = False, shared: bool = False, patience: float = 0.0
) -> Iterator[None]:
    """Hold the file at ``path``; ``refusal`` is the error where another process holds it for longer
    than ``patience`` seconds. Those who hold it ``shared`` hold it together. A file that this
    ``create``s is closed to everybody but its owner: whoever may open it may hold it."""
    wanted = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    end = time.monotonic() + patience
    # A lock file of an earlier version may be open to others.
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
