"""SQLite database: one file, one serving process, and a clock that never jumps."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sqlite3
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from discreet.service.secrets.vault import locked_file
from discreet.service.storage.database import PATIENCE, Connection, Database, FileReplaced


class Clock:
    """Seconds since 1970, monotonic inside a process and never before ``seen``.

    Setting the system clock while the service runs does not move a release.
    """

    def __init__(self, seen: float = 0.0) -> None:
        self._offset = max(time.time(), seen) - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset


ROOM = 2**16
"""Bytes of free space that a start needs at least."""


class _Writing(sqlite3.Connection):
    """A connection whose commits may reach the disk together with those of others.

    With synchronous=NORMAL others may see a commit before the commit thread has synced the
    write-ahead log.
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
    # One process serves and one thread of it writes: this is all the locking needed.
    begin = "BEGIN IMMEDIATE"
    find_table = "SELECT max(name) FROM sqlite_master WHERE name = 'experiment'"
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
        for setting in (*settings, f"busy_timeout={int(patience * 1000)}"):
            connection.execute(f"PRAGMA {setting}")
        connection.create_function("discreet_now", 0, lambda: self.clock.now())
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
        found = None
        with suppress(FileNotFoundError):
            found = self.path.stat()
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

    def holds_experiment(self) -> bool:
        if not self.path.exists():
            os.stat(self.path.parent)  # a missing folder is an error, and not made
            return False
        return super().holds_experiment()

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
_MOST = 256
"""Files of one call."""
_NUMBERS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}
"""System calls that set up and destroy a context, submit requests and get their events.
[Linux, include/uapi/asm-generic/unistd.h, syscall_64.tbl]"""
_FDSYNC = 3
_REQUEST = struct.Struct("<QIIHhIQQqQII")
"""``struct iocb``: its number first, the operation and the file as fourth and sixth."""
_EVENT = struct.Struct("<QQqq")
"""``struct io_event``: number of the request, its address, the result."""


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

    def sync(self, files: list[int]) -> list[OSError | None]:
        """Return, for each open file, None if all writes to it are durable, or the error."""
        found: list[OSError | None] = []
        while len(found) < len(files):
            some = files[len(found) : len(found) + _MOST]
            done = self._at_once(some) if len(some) > 1 and self._began() else []
            # A call may take fewer than it was given, or none: these are synced one by one.
            found += done + [_alone(file) for file in some[len(done) :]]
        return found

    def close(self) -> None:
        """Free the memory of the kernel."""
        if self._context is not None:
            self._call(1, self._context)
        self._numbers = self._context = None

    def _call(self, place: int, *given: object) -> int:
        assert self._numbers is not None
        return int(self._syscall(self._numbers[place], *given))

    def _began(self) -> bool:
        """Set up the call when two files are synced first: most processes have one file."""
        if self._numbers is None or self._context is not None:
            return self._numbers is not None
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._context = ctypes.c_ulong(0)
        if self._call(0, _MOST, ctypes.byref(self._context)) != 0:
            self._numbers = self._context = None  # a sandbox may forbid it
            return False
        self._requests = ctypes.create_string_buffer(_MOST * _REQUEST.size)
        first = ctypes.addressof(self._requests)
        places = range(first, first + len(self._requests) - 1, _REQUEST.size)
        self._listed = (ctypes.c_void_p * _MOST)(*places)
        self._events = ctypes.create_string_buffer(_MOST * _EVENT.size)
        return True

    def _at_once(self, files: list[int]) -> list[OSError | None]:
        """Sync files in one call; return the results of as many as the call accepted."""
        for place, file in enumerate(files):
            request = (place, 0, 0, _FDSYNC, 0, file, 0, 0, 0, 0, 0, 0)
            _REQUEST.pack_into(self._requests, place * _REQUEST.size, *request)
        taken = self._call(2, self._context, ctypes.c_long(len(files)), self._listed)
        found: list[OSError | None] = [None] * max(taken, 0)
        left = len(found)
        while left > 0:
            some = ctypes.c_long(left)
            ended = self._call(3, self._context, some, some, self._events, None)
            if ended < 0 and ctypes.get_errno() != errno.EINTR:
                # It is unknown which of them failed, and later calls might return these events.
                broken = ctypes.get_errno()
                self.close()
                return [OSError(broken, os.strerror(broken))] * len(found)
            for place in range(max(ended, 0)):
                number, _, result, _ = _EVENT.unpack_from(self._events, place * _EVENT.size)
                found[number] = None if result >= 0 else OSError(-result, os.strerror(-result))
            left -= max(ended, 0)
        return found


def _alone(file: int) -> OSError | None:
    try:
        _to_disk(file)
    except OSError as error:
        return error
    return None
