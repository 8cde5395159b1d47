"""What was published last, kept outside the database, so that an old copy of it is noticed.

A database that is behind its anchor was restored from a backup: going on would draw a second
noise on rows that were released already.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from discreet.errors import StateClaimed


@dataclass(frozen=True, order=True)
class Mark:
    """A document that was published: its epoch, number and digest."""

    epoch: int
    number: int
    digest: str


class Anchor:
    """An append-only file of marks, one a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._newest: Mark | None = None

    def newest(self) -> Mark | None:
        """The last mark; a line that was cut short by a crash does not count."""
        try:
            return _last(self.path.read_bytes())
        except FileNotFoundError:
            return None

    def ensure(self, mark: Mark) -> None:
        """The mark is in the file when this returns; a second history is refused."""
        if self._newest is not None and mark == self._newest:
            return
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            content = file.read()
            last = _last(content)
            if last is None or (last.epoch, last.number) < (mark.epoch, mark.number):
                torn = b"\n" if content and not content.endswith(b"\n") else b""
                file.write(torn + json.dumps(asdict(mark)).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            elif (last.epoch, last.number) == (mark.epoch, mark.number) and last != mark:
                raise StateClaimed(
                    f"document {mark.number} must be the one that the anchor names; it is another. "
                    "The database was restored from a backup: run discreet restore."
                )
        self._newest = mark


def _last(content: bytes) -> Mark | None:
    whole = content[: content.rfind(b"\n") + 1]
    for line in reversed(whole.splitlines()):
        try:
            return Mark(**json.loads(line))
        except (ValueError, TypeError):
            continue  # torn by a crash, and followed by a whole line
    return None
