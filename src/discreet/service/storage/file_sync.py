"""Synchronisation of many files to the disk in one system call.

``os.fdatasync`` takes one file, and a thread for each file waits for the interpreter after every
call. Linux takes a list of files in one call (io_submit, since 4.18) and syncs them side by side.
Python does not wrap it, so it is called by number, on processors whose numbers are listed here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from typing import Any, NamedTuple

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
