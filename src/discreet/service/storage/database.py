"""Interface to the database, which SQLite and PostgreSQL implement; its tables; kill points.

SQL is written once, with ``?`` for parameters; attributes hold the few words in which the two
differ.
"""

from __future__ import annotations

import errno
import os
import signal
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
T = TypeVar("T")


class FileReplaced(StateClaimed):
    """The file that a process serves was replaced or removed."""


class Rows(Protocol):
    """Result of a statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    @property
    def rowcount(self) -> int: ...


class Connection(Protocol):
    """One statement at a time, outside a transaction unless one was begun."""

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows: ...

    def close(self) -> None: ...


class Commit(Protocol):
    """Runs an operation in the writing transaction of the process and returns its result."""

    def __call__(self, operation: Callable[[Connection], T]) -> T: ...


Bulk = Callable[[Connection, list[Any]], list[Any]]
"""Writes many items at once; returns one result per item."""


class Database(ABC):
    """Connections, transactions and the differences between dialects."""

    now: ClassVar[str]
    """SQL for the clock of the database, in seconds: the only clock that decides anything."""
    begin: ClassVar[str] = "BEGIN"
    """Begins a transaction."""
    lock: ClassVar[str]
    """Ends a SELECT whose rows are locked until the transaction ends."""
    claim: ClassVar[str]
    """Like ``lock``, but skips rows that another transaction holds."""
    share: ClassVar[str]
    """Ends a SELECT whose batches must keep their state, though their counters may change."""
    embedded: ClassVar[bool] = False
    """Whether this process does the work of a commit. One thread may then commit for several
    databases; with a database server each has a thread that waits."""
    lost: tuple[type[Exception], ...] = ()
    """Errors that mean a fault of the storage, not of the request."""

    place: str
    """Name of the database in errors; without a password."""
    remedy: ClassVar[str]
    """Advice in errors if the database cannot be used."""

    def full(self) -> bool:
        """Return whether the disk is full, if this process can see the disk."""
        return False

    @abstractmethod
    def connect(self) -> Connection:
        """Open a connection."""

    @abstractmethod
    def guard(self) -> AbstractContextManager[None]:
        """Hold a lock while a process serves; refuse a second process if only one may serve."""

    def connect_to_write(self) -> Connection:
        """Open the connection through which a process writes most rows."""
        return self.connect()

    @contextmanager
    def transaction(
        self,
        connection: Connection,
        *,
        synced: bool = True,  # noqa: ARG002
    ) -> Iterator[Connection]:
        """Commit everything inside, or nothing.

        The transaction is durable before others see it; if not ``synced``, it is durable once the
        file of ``unsynced`` has reached the disk.
        """
        connection.execute(self.begin)
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            self.roll_back(connection)
            raise

    def unsynced(self, connection: Connection) -> int | None:  # noqa: ARG002
        """Return the open file that must reach the disk before the writes of this connection are
        durable; None if they are, or if it was returned before."""
        return None

    def held_by_another(self, error: Exception) -> bool:  # noqa: ARG002
        """Return whether a transaction could not begin because another program writes."""
        return False

    def roll_back(self, connection: Connection) -> None:
        """End a failed transaction, even if the database has ended it already."""
        try:
            connection.execute("ROLLBACK")
        except self.lost:
            return

    @property
    def later(self) -> str:
        """SQL for the next time of the experiment: unlike the clock of the database, it never goes
        back."""
        return f"CASE WHEN clock > {self.now} THEN clock ELSE {self.now} END"

    def alone(self, connection: Connection) -> None:  # noqa: B027
        """Wait until no other transaction runs; does nothing if only one can."""

    def refuse_replaced(self) -> None:  # noqa: B027
        """Raise an error if the file that a process serves was replaced or removed."""

    def seen(self, moment: float) -> None:  # noqa: B027
        """Keep our clock from falling behind the latest stored moment."""

    def revived(self, connection: Connection) -> Connection:
        """Return the connection after an error, or a new one if it is broken."""
        return connection

    @abstractmethod
    def release(
        self,
        claim: Callable[[Connection], Claim | None],
        compute: Callable[[Claim], Made],
        write: Callable[[Connection, Claim, Made], bool],
        commit: Commit,
    ) -> bool:
        """Make one release as one transaction; return whether it was made.

        ``commit`` runs a function in the process's own writing transaction.
        """

    @abstractmethod
    def holds_experiment(self) -> bool:
        """Return whether the database holds an experiment; creates nothing."""

    def keep_private(self) -> None:  # noqa: B027
        """Let only the owner read the files, if the database has any."""

    @abstractmethod
    def back_up(self, target: Path) -> None:
        """Write a copy that only the owner may read, while others write; refused if it exists."""

    def prepare_erasure(self) -> None:  # noqa: B027
        """Do a part of the work of ``erase`` that does not block writers."""

    @abstractmethod
    def erase(self, connection: Connection) -> bool:
        """Remove all copies of deleted rows from the files that this process controls."""


VERSION = 1
"""Version of the tables; a database of another one is refused."""


def create_tables(database: Database, connection: Connection) -> None:
    """Create the tables of a new database; refuse one of another version."""
    with database.transaction(connection):
        database.alone(connection)
        connection.execute("CREATE TABLE IF NOT EXISTS versions (number INTEGER PRIMARY KEY)")
        found = connection.execute("SELECT max(number) FROM versions").fetchone()[0]
        if found not in (None, VERSION):
            raise StateClaimed(
                f"database must be of version {VERSION}; this one has {found}. Another version of "
                "discreet wrote it: use that version."
            )
        if found is None:
            text = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8")
            if not database.embedded:
                text = text.replace(" WITHOUT ROWID", "")
            for statement in text.split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO versions VALUES (?)", (VERSION,))


FULL = ("SQLITE_FULL", "ENOSPC", "EDQUOT", "53100")
"""Names of the error of a full disk; 53100 is the code of PostgreSQL."""


def safe_name(error: BaseException) -> str:
    """Return the name of an error without stored data: SQLITE_FULL, 53300, ENOSPC, KeyError.

    The text of an error may quote a statement, a row or a password; these names cannot.
    """
    for name in ("sqlite_errorname", "sqlstate"):
        if isinstance(found := getattr(error, name, None), str):
            return found
    number = error.errno if isinstance(error, OSError) else None
    return errno.errorcode.get(number or 0, type(error).__name__)


@contextmanager
def storage_errors(database: Database) -> Iterator[None]:
    """Turn storage errors of commands into one line with a remedy."""
    try:
        yield
    except database.lost as error:
        remedy = _FULL_DISK if safe_name(error) in FULL or database.full() else database.remedy
        raise InvalidInput(
            f"database must be usable; {database.place} is not ({_reason(error)}). {remedy}"
        ) from None
    except OSError as error:
        if safe_name(error) in FULL:
            raise InvalidInput(
                f"disk must have free space; {error.filename or 'that of the service'} is full "
                f"({safe_name(error)}). {_FULL_DISK}"
            ) from None
        if error.filename is None:
            raise
        raise InvalidInput(
            f"{error.filename} must be usable; it is not ({error.strerror}). Check that the folder "
            "exists, its owner, and that its disk is mounted for writing."
        ) from None


_FULL_DISK = (
    "Its disk is full: free some space and start again. Nothing is lost; restore no backup."
)


def _reason(error: Exception) -> str:
    """Return the name, or the reason why a server cannot be reached; never a password."""
    name = safe_name(error)
    if name != "OperationalError":
        return name
    lines = str(error).strip().splitlines() or [name]
    return lines[0].rpartition(" failed: ")[2]


def kill_at(text: str) -> None:
    """Set the step at which ``step`` kills this process: ``name``, or ``name@7`` for the seventh
    pass."""
    global _killed_at, _passes_left
    _killed_at, _, passes = text.partition("@")
    _passes_left = int(passes or 1)


_killed_at, _passes_left = "", 1
kill_at(os.environ.get("DISCREET_STEP", ""))


def step(name: str) -> None:
    """Mark a step at which a test can end the process, as a power cut would."""
    global _passes_left
    if name != _killed_at:
        return
    _passes_left -= 1
    if _passes_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
