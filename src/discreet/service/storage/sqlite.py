"""SQLite database: one file, one serving process, and a clock that never jumps."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from discreet.service.secrets.vault import locked_file
from discreet.service.storage.database import (
    PATIENCE,
    Claim,
    Commit,
    Connection,
    Database,
    FileReplaced,
    Made,
)


class Clock:
    """Seconds since 1970, monotonic inside a process and never before ``seen``.

    Setting the system clock while the service runs does not move a release. After a restart the
    clock continues from the latest moment in the database, or later.
    """

    def __init__(self, seen: float = 0.0) -> None:
        self._offset = max(time.time(), seen) - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset


ROOM = 2**16
"""Bytes of free space that a start needs at least."""


class _Writing(sqlite3.Connection):
    """A connection whose commits may reach the disk later, and together with others.

    With synchronous=NORMAL a commit is in the write-ahead log, which the commit thread syncs before
    it answers. Unlike with synchronous=FULL, others may see the commit before it is durable.
    """

    log: int | None = None
    level, unsynced = "FULL", False

    def set_level(self, level: str) -> None:
        if level != self.level:
            self.execute(f"PRAGMA synchronous={level}")
            self.level = level

    def close(self) -> None:
        if self.log is not None:
            os.close(self.log)
            self.log = None
        super().close()


class Sqlite(Database):
    """File in WAL mode; every commit reaches the disk before it is answered."""

    now = "discreet_now()"
    # One process serves and one thread of it writes: BEGIN IMMEDIATE is all the locking needed.
    lock = claim = share = ""
    begin = "BEGIN IMMEDIATE"
    embedded = True
    lost = (sqlite3.Error,)
    remedy = (
        "Name a file that discreet made, or a new one, in a folder that this user may write to; "
        "a damaged file is replaced by a backup, with discreet restore."
    )

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, str(path)
        self.clock = Clock()
        self._guarded = False
        self._file: tuple[int, int] | None = None
        """Device and number of the file that this process serves."""

    def full(self) -> bool:
        # SQLite does not always say so: its shared memory has an error of its own.
        with suppress(OSError):
            found = os.statvfs(self.path.parent)
            return found.f_bavail * found.f_frsize < ROOM
        return False

    def connect(self) -> Connection:
        return self._connected(sqlite3.Connection, PATIENCE)

    def connect_to_write(self) -> Connection:
        # It may write for other databases too, so it waits for no other program, but tries again.
        return self._connected(_Writing, 0)

    def _connected(self, kind: type[sqlite3.Connection], patience: float) -> sqlite3.Connection:
        self.refuse_replaced()
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        connection = sqlite3.connect(
            self.path,
            isolation_level=None,
            check_same_thread=False,
            timeout=PATIENCE,
            factory=kind,
        )
        if self._guarded and self._file is None:
            found = self.path.stat()
            self._file = found.st_dev, found.st_ino
        # Deleted content is overwritten; what is committed survives a power cut. Little is read
        # twice, so a cache of 512 KiB is enough.
        settings = "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "cache_size=-512"
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
        connection.create_function("discreet_now", 0, lambda: self.clock.now())
        connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
        return connection

    @contextmanager
    def transaction(self, connection: Connection, *, synced: bool = True) -> Iterator[Connection]:
        if isinstance(connection, _Writing):
            self.refuse_replaced()
            connection.set_level("FULL" if synced else "NORMAL")
        with super().transaction(connection):
            yield connection
        if isinstance(connection, _Writing) and not synced:
            if connection.log is None:
                connection.log = os.open(f"{self.path}-wal", os.O_RDWR)
            connection.unsynced = True

    def unsynced(self, connection: Connection) -> int | None:
        if not isinstance(connection, _Writing) or not connection.unsynced:
            return None
        connection.unsynced = False
        return connection.log

    def held_by_another(self, error: Exception) -> bool:
        return getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")

    def refuse_replaced(self) -> None:
        # What this process has open stays open without a name, and ends with the process.
        if self._file is None:
            return
        try:
            found = self.path.stat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._file:
            raise FileReplaced(
                f"database must stay the file that the service opened; {self.path} was replaced or "
                "removed. Put that file back; or stop the service, put the right one in place, and "
                "run discreet restore."
            )

    def seen(self, moment: float) -> None:
        self.clock = Clock(moment)

    @contextmanager
    def guard(self) -> Iterator[None]:
        refusal = (
            f"{self.path} must be served by one process; another one holds it. "
            "Stop that one first, or use PostgreSQL and --workers."
        )
        with locked_file(Path(f"{self.path}.lock"), refusal, create=True):
            self._guarded = True
            try:
                yield
            finally:
                self._guarded, self._file = False, None

    def release(
        self,
        claim: Callable[[Connection], Claim | None],
        compute: Callable[[Claim], Made],
        write: Callable[[Connection, Claim, Made], bool],
        commit: Commit,
    ) -> bool:
        # The file has one lock, and decisions must not wait for a fit. The writing thread makes the
        # claim, after every answer that came in time; the window is over, so the rows do not change
        # any more. State and keys are checked again when the release is written.
        claimed = commit(claim)
        if claimed is None:
            return False
        made = compute(claimed)
        return bool(commit(lambda connection: write(connection, claimed, made)))

    def holds_experiment(self) -> bool:
        if not self.path.exists():
            os.stat(self.path.parent)  # a missing folder is an error, and not made
            return False
        with closing(self.connect()) as connection:
            table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'experiment'"
            found = connection.execute(table).fetchone()
            return bool(found and connection.execute("SELECT 1 FROM experiment").fetchone())

    def keep_private(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            path = Path(f"{self.path}{suffix}")
            if path.exists():
                path.chmod(0o600)

    def back_up(self, target: Path) -> None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made before anything is in it, so that it never has another mode.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(self.connect()) as connection:
            connection.execute("VACUUM INTO ?", (str(target),))

    def prepare_erasure(self) -> None:
        # A passive checkpoint blocks no writer, and leaves little of the log.
        with closing(self.connect()) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def erase(self, connection: Connection) -> bool:
        # An open reader keeps old pages in the log, and decisions must not wait for it. Then this
        # returns False, and upkeep tries again.
        patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            connection.execute(f"PRAGMA busy_timeout = {patience}")
        return not busy


_to_disk = getattr(os, "fdatasync", os.fsync)
_FDSYNC = 3
_MOST = 256
"""Files of one call."""


class _Numbers(NamedTuple):
    """Numbers of system calls. [Linux, include/uapi/asm-generic/unistd.h, syscall_64.tbl]"""

    setup: int
    destroy: int
    submit: int
    getevents: int


_NUMBERS = {
    "x86_64": _Numbers(setup=206, destroy=207, submit=209, getevents=208),
    "aarch64": _Numbers(setup=0, destroy=1, submit=2, getevents=4),
}


class _Request(ctypes.Structure):
    """``struct iocb`` of a little-endian machine."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("file", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("event_file", ctypes.c_uint32),
    )


class _Event(ctypes.Structure):
    """``struct io_event``."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("request", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("more", ctypes.c_int64),
    )


class FileSync:
    """Synchronises files for one thread, one by one where the call is missing or refused.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     FileSync().sync([file.fileno(), file.fileno()])
    [None, None]
    """

    def __init__(self, *, together: bool = True) -> None:
        known = together and sys.platform == "linux"
        self._numbers = _NUMBERS.get(platform.machine()) if known else None
        self._context: ctypes.c_ulong | None = None
        self._call: Any = ctypes.CDLL(None, use_errno=True).syscall if self._numbers else None

    def _begin(self, numbers: _Numbers) -> None:
        """Set up the call when two files are synced first: most processes have one file."""
        self._context = ctypes.c_ulong(0)
        if self._call(numbers.setup, _MOST, ctypes.byref(self._context)) != 0:
            self._numbers = self._context = None  # a sandbox may forbid it
            return
        self._requests = (_Request * _MOST)()
        for place, request in enumerate(self._requests):
            request.opcode, request.data = _FDSYNC, place
        listed = [ctypes.pointer(request) for request in self._requests]
        self._listed = (ctypes.POINTER(_Request) * _MOST)(*listed)
        self._events = (_Event * _MOST)()

    def sync(self, files: list[int]) -> list[OSError | None]:
        """Return, for each open file, None if all writes to it are durable, or the error."""
        found: list[OSError | None] = []
        while len(found) < len(files):
            some = files[len(found) : len(found) + _MOST]
            done = self._at_once(some) if len(some) > 1 else []
            # A call may take fewer than it was given, or none: these are synced one by one.
            found += done + [_alone(file) for file in some[len(done) :]]
        return found

    def close(self) -> None:
        """Free the memory of the kernel."""
        if self._numbers is not None and self._context is not None:
            self._call(self._numbers.destroy, self._context)
        self._numbers = self._context = None

    def _at_once(self, files: list[int]) -> list[OSError | None]:
        """Sync files in one call; return the results of as many as the call accepted."""
        if self._numbers is not None and self._context is None:
            self._begin(self._numbers)
        if self._numbers is None:
            return []
        for request, file in zip(self._requests, files, strict=False):
            request.file = file
        count = ctypes.c_long(len(files))
        taken = self._call(self._numbers.submit, self._context, count, self._listed)
        found: list[OSError | None] = [None] * max(taken, 0)
        left = len(found)
        while left > 0:
            some = ctypes.c_long(left)
            ended = self._call(
                self._numbers.getevents, self._context, some, some, self._events, None
            )
            if ended < 0 and ctypes.get_errno() != errno.EINTR:
                # It is unknown which of them failed, and later calls might return these events.
                broken = ctypes.get_errno()
                self.close()
                return [OSError(broken, os.strerror(broken))] * len(found)
            for event in self._events[: max(ended, 0)]:
                if event.result < 0:
                    number = -event.result
                    found[event.data] = OSError(number, os.strerror(number))
            left -= max(ended, 0)
        return found


def _alone(file: int) -> OSError | None:
    try:
        _to_disk(file)
    except OSError as error:
        return error
    return None
