"""Compares the experiment file with what is served. An edit takes effect only after a restart."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from discreet.errors import CorruptRelease, InvalidInput
from discreet.service.logs import Log
from discreet.service.settings import Settings, differing
from discreet.toml_files import read_toml


class ExperimentFile:
    """Whether the file still says what is served. It reports keys only: a value may be a password.

    ``differs`` lists the keys whose values have changed; ``readable`` is False if the file is
    missing, or if no service could start from it.
    """

    def __init__(self, path: Path, settings: Settings, log: Log) -> None:
        self._path, self._settings, self._log = path, settings, log
        self._seen: tuple[int, ...] | None = None
        self._beside = files_named(path)
        self.differs: list[str] = []
        self.readable = True

    def look(self) -> None:
        """Compare the file if it was written to, and log what has changed."""
        seen = self._stamp()
        if seen == self._seen:
            return
        told = (self.readable, self.differs)
        try:
            now = Settings.read(self._path)
            self.readable, self.differs = True, differing(self._settings.said, now.said)
        except (InvalidInput, CorruptRelease):  # the latter of a prior's file
            self.readable, self.differs = False, []
        beside = files_named(self._path)  # where others are named now, look once more
        self._seen, self._beside = (seen if beside == self._beside else None), beside
        if (self.readable, self.differs) == told:
            return
        if not self.readable:
            self._log.event("experiment file unreadable")
        elif self.differs:
            self._log.event("experiment file differs", keys=self.differs)
        else:
            self._log.event("experiment file as served")

    def _stamp(self) -> tuple[int, ...]:
        """Changes with every write, even if the write sets the time of the file back."""
        stamp: tuple[int, ...] = ()
        for path in (self._path, *self._beside):
            with suppress(OSError):
                found = path.stat()
                stamp += found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        return stamp


def files_named(path: Path) -> list[Path]:
    """The files that an experiment file names as parts of its plan: items, and a prior."""
    try:
        plan = read_toml(path, "experiment")["plan"]
        actions = plan.get("actions")
        items = actions.get("items") if isinstance(actions, dict) else None
        return [path.parent / each for each in (items, plan.get("prior")) if isinstance(each, str)]
    except (InvalidInput, LookupError, AttributeError):
        return []
