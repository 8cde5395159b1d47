"""Faults of storage: a safe name for logs, and one line with a remedy for commands."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import InvalidInput
from discreet.service.storage.database import Database

FULL = ("SQLITE_FULL", "ENOSPC", "EDQUOT", "53100")
"""Names of the error that a disk is full; 53100 is PostgreSQL's."""


def safe_name(error: BaseException) -> str:
    """What went wrong, without a word of what was stored: SQLITE_FULL, 53300, ENOSPC, KeyError.

    The text of an error may quote a statement, a row or a password; these names cannot.
    """
    for name in ("sqlite_errorname", "sqlstate"):
        if isinstance(found := getattr(error, name, None), str):
            return found
    number = error.errno if isinstance(error, OSError) else None
    return errno.errorcode.get(number or 0, type(error).__name__)


@contextmanager
def in_one_line(database: Database) -> Iterator[None]:
    """Turns faults of storage into errors that say what to do, before anything is served."""
    try:
        yield
    except database.lost as error:
        remedy = _ROOM if safe_name(error) in FULL or database.full() else database.remedy
        raise InvalidInput(
            f"database must be usable; {database.place} is not ({_told(error)}). {remedy}"
        ) from None
    except OSError as error:
        if safe_name(error) in FULL:
            raise InvalidInput(
                f"disk must have room; {error.filename or 'that of the service'} is full "
                f"({safe_name(error)}). {_ROOM}"
            ) from None
        if error.filename is None:
            raise
        raise InvalidInput(
            f"{error.filename} must be usable; it is not ({error.strerror}). Check that the folder "
            "exists, that its disk is mounted for writing, and whose it is."
        ) from None


_ROOM = "Its disk is full: make room, and start again. Nothing is lost; restore no backup."


def _told(error: Exception) -> str:
    """The name, and of a server that cannot be reached also why; never a password."""
    name = safe_name(error)
    if name != "OperationalError":
        return name
    lines = str(error).strip().splitlines() or [name]
    return lines[0].rpartition(" failed: ")[2]
