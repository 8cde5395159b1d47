"""What the service needs of a database; SQLite and PostgreSQL provide it.

SQL is written once, with ``?`` for parameters; attributes hold the few words in which the two
differ.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from discreet.errors import InvalidInput, StateClaimed

PATIENCE = 10.0
"""Seconds to wait for another program that writes to the same database, such as discreet keys."""

Claim = TypeVar("Claim")
Made = TypeVar("Made")


class FileReplaced(StateClaimed):
    """The file that a process serves was replaced or removed."""


class Rows(Protocol):
    """The answer to a statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """One statement at a time, outside a transaction unless one was begun."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Rows: ...

    def close(self) -> None: ...


Bulk = Callable[[Connection, list[Any]], list[Any]]
"""Writes many items at once; returns one result per item."""


class Database(ABC):
    """Connections, transactions and the differences between dialects."""

    now: ClassVar[str]
    """SQL for the clock of the database, in seconds: the only clock that decides anything."""
    whole: ClassVar[str]
    blob: ClassVar[str]
    real: ClassVar[str]
    clustered: ClassVar[str]
    """Words of CREATE TABLE."""
    begin: ClassVar[str] = "BEGIN"
    """Begins a transaction."""
    lock: ClassVar[str]
    """Ends a SELECT whose rows nobody else may change before the transaction ends."""
    claim: ClassVar[str]
    """Like ``lock``, but skips rows that another transaction holds."""
    share: ClassVar[str]
    """Ends a SELECT whose batches must keep their state, though their counters may change."""
    embedded: ClassVar[bool] = False
    """Whether this process does the work of a commit. A thread may then commit for several; for a
    server it waits, and several waits are best side by side."""
    lost: tuple[type[Exception], ...] = ()
    """Errors that mean a fault of the storage, not of the request."""

    place: str
    """Where it is, in errors; without a password."""
    remedy: ClassVar[str]
    """What to do if it cannot be used."""

    def full(self) -> bool:
        """Whether the disk has no room, where this process can see the disk."""
        return False

    @abstractmethod
    def connect(self) -> Connection:
        """A new connection."""

    @abstractmethod
    def guard(self) -> AbstractContextManager[None]:
        """Held while a process serves; refuses a second process if only one may serve."""

    def connect_to_write(self) -> Connection:
        """The connection of a process through which most rows are written."""
        return self.connect()

    @contextmanager
    def transaction(
        self,
        connection: Connection,
        *,
        synced: bool = True,  # noqa: ARG002
    ) -> Iterator[Connection]:
        """Everything inside happens, or nothing does.

        It is durable before others see it; if not ``synced``, it may be so only once the file of
        ``unsynced`` has reached the disk.
        """
        connection.execute(self.begin)
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            self.roll_back(connection)
            raise

    def unsynced(self, connection: Connection) -> int | None:  # noqa: ARG002
        """The open file that must reach the disk before what this connection wrote is durable; None
        if all of it is, or if it was asked before."""
        return None

    def held_by_another(self, error: Exception) -> bool:  # noqa: ARG002
        """Whether a transaction could not begin since another program writes."""
        return False

    def roll_back(self, connection: Connection) -> None:
        """End a failed transaction, even if the database has ended it already."""
        try:
            connection.execute("ROLLBACK")
        except self.lost:
            return

    @property
    def later(self) -> str:
        """SQL for what the clock of the experiment shows next: it never goes back, though that of
        the database may."""
        return f"CASE WHEN clock > {self.now} THEN clock ELSE {self.now} END"

    def alone(self, connection: Connection) -> None:  # noqa: B027
        """Wait until no other transaction runs; does nothing if only one can."""

    def refuse_replaced(self) -> None:  # noqa: B027
        """Refuse to go on if the file that a process serves is not at its place any more."""

    def seen(self, moment: float) -> None:  # noqa: B027
        """Keep our clock from falling behind the latest stored moment."""

    def revived(self, connection: Connection) -> Connection:
        """The connection after an error, or a new one in its place."""
        return connection

    @abstractmethod
    def release(
        self,
        claim: Callable[[Connection], Claim | None],
        compute: Callable[[Claim], Made],
        write: Callable[[Connection, Claim, Made], bool],
        commit: Callable[[Callable[[Connection], Any]], Any],
    ) -> bool:
        """One release as one transaction; whether it was made.

        ``commit`` runs a function in the process's own writing transaction.
        """

    @abstractmethod
    def holds_experiment(self) -> bool:
        """Whether an experiment has begun here; makes nothing."""

    def keep_private(self) -> None:  # noqa: B027
        """Let only the owner read the files, if the database has any."""

    @abstractmethod
    def back_up(self, target: Path) -> None:
        """Write a copy that only the owner may read, while others write; refused if it exists."""

    def prepare_erasure(self) -> None:  # noqa: B027
        """Do what ``erase`` can be spared, while others write."""

    @abstractmethod
    def erase(self, connection: Connection) -> bool:
        """Leave no copy of deleted rows in the files that this process controls."""


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
def storage_errors(database: Database) -> Iterator[None]:
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
