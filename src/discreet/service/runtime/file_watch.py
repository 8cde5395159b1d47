"""The experiment file while it is served: looked at, compared, and not obeyed before a restart."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import InvalidInput
from discreet.service import logs
from discreet.service.settings import Settings, differing


class ExperimentFile:
    """Whether the file still says what is served. Keys are told, values never: one is a password.

    ``differs`` are the keys whose values are others now; ``readable`` is False for a file that is
    gone, or that no service could start from.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path, self._settings = path, settings
        self._seen: tuple[int, ...] | None = None
        self.differs: list[str] = []
        self.readable = True

    def look(self) -> None:
        """Compare the file if it was touched, and tell the log of what is new."""
        seen = self._stamp()
        if seen == self._seen:
            return
        told = (self.readable, self.differs)
        try:
            now = Settings.read(self._path)
            self.readable, self.differs = True, differing(self._settings.said, now.said)
        except InvalidInput:
            self.readable, self.differs = False, []
        self._seen = seen
        if (self.readable, self.differs) == told:
            return
        if not self.readable:
            logs.event("experiment file unreadable")
        elif self.differs:
            logs.event("experiment file differs", keys=self.differs)
        else:
            logs.event("experiment file as served")

    def _stamp(self) -> tuple[int, ...]:
        """Changes with every write, also with one that sets the time of the file back."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
