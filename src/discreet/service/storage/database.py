"""Interface to the database, which SQLite and PostgreSQL implement; its tables; kill points.

SQL is written once, with ``?`` for parameters; attributes hold the few words that differ.
"""

from __future__ import annotations

import errno
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import chain
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
    """Result of a statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    @property
    def rowcount(self) -> int: ...


class Connection(Protocol):
    """One statement at a time, outside a transaction unless one was begun."""

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows: ...

    def close(self) -> None: ...


Commit = Callable[[Callable[[Connection], Any]], Any]
"""Runs an operation in the writing transaction of the process and returns its result."""
Bulk = Callable[[Connection, list[Any]], list[Any]]
"""Writes many items at once; returns one result per item."""


class Database(ABC):
    """Connections, transactions and the differences between dialects."""

    now: ClassVar[str]
    """SQL for the clock of the database, in seconds: the only clock that decides anything."""
    begin: ClassVar[str] = "BEGIN"
    lock: ClassVar[str] = ""
    """Ends a SELECT whose rows are locked until the transaction ends."""
    claim: ClassVar[str] = ""
    """Like ``lock``, but skips rows that another transaction holds."""
    share: ClassVar[str] = ""
    """Ends a SELECT whose batches must keep their state, though their counters may change."""
    find_table: ClassVar[str]
    """Selects the name of the table of the experiment, or NULL."""
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

    def insert_accepted(
        self,
        connection: Connection,  # noqa: ARG002
        table: str,  # noqa: ARG002
        rows: Sequence[tuple[Any, ...]],  # noqa: ARG002
        head: tuple[int, str] | None,  # noqa: ARG002
    ) -> tuple[set[tuple[int, int, bytes]], int] | None:
        """Insert rows of leases that accept content, in a transaction of one statement.

        A row ends with the nonce of its lease. Returns these leases and how many rows are new;
        None if the database does not wait for answers, so that several statements are as fast.
        """
        return None

    def unsynced(self, connection: Connection) -> int | None:  # noqa: ARG002
        """Return the open file that must reach the disk before the writes of this connection are
        durable; None if they are, or if it was returned before."""
        return None

    def held_by_another(self, error: Exception) -> bool:  # noqa: ARG002
        """Return whether a transaction could not begin because another program writes."""
        return False

    def roll_back(self, connection: Connection) -> None:
        """End a failed transaction, even if the database has ended it already."""
        with suppress(*self.lost):
            connection.execute("ROLLBACK")

    @property
    def later(self) -> str:
        """SQL for the next time of the experiment, which never goes back."""
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

    def release(
        self,
        claim: Callable[[Connection], Claim | None],
        compute: Callable[[Claim], Made],
        write: Callable[[Connection, Claim, Made], bool],
        commit: Commit,
    ) -> bool:
        """Make one release; return whether it was made.

        A file has one lock, and decisions must not wait for a fit. So ``commit``, the process's
        own writing transaction, makes the claim, after every answer that came in time; the window
        is over, so the rows do not change any more. State and keys are checked again when the
        release is written. On a server the claimed row stays locked, and other workers skip it.
        """
        if self.embedded:
            claimed = commit(claim)
            if claimed is None:
                return False
            made = compute(claimed)
            return bool(commit(lambda connection: write(connection, claimed, made)))
        with closing(self.connect()) as connection, self.transaction(connection):
            claimed = claim(connection)
            return claimed is not None and write(connection, claimed, compute(claimed))

    def holds_experiment(self) -> bool:
        """Return whether the database holds an experiment; creates nothing."""
        with closing(self.connect()) as connection:
            found = connection.execute(self.find_table).fetchone()[0]
            return bool(found and connection.execute("SELECT 1 FROM experiment").fetchone())

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
                f"database must be of version {VERSION}; got {found}. Use the version of discreet "
                "that wrote it."
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
    kinds: tuple[type[Exception], ...] = (*database.lost, OSError)
    try:
        yield
    except kinds as error:
        name, place = safe_name(error), f"database must be usable; {database.place}"
        reason, remedy = name, database.remedy
        if isinstance(error, OSError):
            if name not in FULL and error.filename is None:
                raise
            place = f"{error.filename or 'disk'} must be usable; it"
            remedy = "Check that the folder exists, its owner, and that its disk can be written."
            reason = name if name in FULL else error.strerror or name
        elif name == "OperationalError":  # a server cannot be reached; never with a password
            reason = str(error).strip().partition("\n")[0].rpartition(" failed: ")[2] or name
        if name in FULL or database.full():
            remedy = "Its disk is full: free some space. Nothing is lost; restore no backup."
        raise InvalidInput(f"{place} is not ({reason}). {remedy}") from None


def insert(
    connection: Connection, table: str, rows: Sequence[Sequence[object]], conflict: str = ""
) -> Rows:
    """Insert rows with one statement."""
    return connection.execute(
        f"INSERT INTO {table} VALUES {marks(rows)} {conflict}", [*chain.from_iterable(rows)]
    )


def marks(rows: Sequence[Sequence[object]]) -> str:
    """Return SQL for the parameters of rows."""
    return ", ".join([f"({', '.join('?' for _ in rows[0])})"] * len(rows))


def kill_at(text: str) -> None:
    """Set the step at which ``step`` kills this process; ``name@7`` is its seventh pass."""
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
