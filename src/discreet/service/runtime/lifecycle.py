"""Life cycle of an experiment: creation, checks before serving, restore, and final erasure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from discreet.client.documents import genesis, public_key, restore_document
from discreet.errors import CorruptRelease, InvalidInput, NotReady, StateClaimed
from discreet.releases.canonical import canonical
from discreet.service.experiment_file import changed_keys, named_files
from discreet.service.logs import Log
from discreet.service.runtime.release_transaction import burn, destroy_keys, finish
from discreet.service.secrets.vault import NAMES, Vault
from discreet.service.settings import ENDED, Settings
from discreet.service.storage import api_keys, document_table, journal
from discreet.service.storage.anchor import Anchor, AnchorContent, AnchorMark, behind
from discreet.service.storage.batches import under_way
from discreet.service.storage.database import Connection, Database, create_tables, step
from discreet.service.storage.journal import forget
from discreet.service.storage.locations import anchor_of, open_database

NOT_EMPTY = (
    "database must be empty for a new experiment; it already holds an experiment. Serve it with "
    "discreet serve, or name another database."
)


class PlanDiffers(StateClaimed):
    """The file differs from document 0; ``keys`` are the settings that differ."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        super().__init__(
            f"{', '.join(keys)} must stay as the experiment began; the file differs. Undo the "
            "edit, or begin a new experiment with another database: a plan never changes."
        )


def check_new(settings: Settings) -> None:
    """Refuse to create an experiment in place of another, before anything is written."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    if database.holds_experiment():
        raise StateClaimed(NOT_EMPTY)
    vault.check_modes()
    anchor = anchor_of(settings)
    known = anchor.path.read_bytes() if anchor.path.is_file() else b""
    mine = settings.anchor is None  # otherwise the file names the anchor, which is checked below
    if vault.batches() or vault.batches(NAMES) or (mine and b'"confirmed"' in known):
        raise StateClaimed(
            f"vault must be new for a new experiment; {vault.folder} holds secrets of another. "
            "Name another folder: vault = '…'."
        )
    if known:
        anchor.check_new()


def begin(settings: Settings, by: str = "") -> str:
    """Create tables, secrets, document 0, anchor and an admin key; return the text of the key."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    vault.create()
    anchor = anchor_of(settings)
    document = genesis(settings.plan, settings.experiment, public_key(vault.signing))
    with closing(database.connect()) as connection:
        create_tables(database, connection)
        with database.transaction(connection):
            if connection.execute("SELECT 1 FROM experiment").fetchone():
                raise StateClaimed(NOT_EMPTY)
            connection.execute(
                f"INSERT INTO experiment VALUES (1, ?, ?, 1, ?, NULL, {database.now}, NULL, 0)",
                (settings.experiment, _plan(settings), settings.mode),
            )
            mark = document_table.append(connection, document, vault.signing)
            document_table.note_change(database, connection, "begun", by, document=mark.number)
            text, _ = api_keys.create(database, connection, ["admin"], "first key")
            anchor.create()
            anchor.intend(mark)
    anchor.confirm([(mark.number, mark.digest)])
    return text


def check(settings: Settings, database: Database, connection: Connection, anchor: Anchor) -> None:
    """Refuse to serve a database that ``check_stored`` refuses, or whose log is missing."""
    check_stored(settings, database, connection, anchor)
    if awaits_log(settings, connection):
        raise NotReady(
            f"log must be imported before the service starts; the plan announces "
            f"{settings.plan.imported:,} rows. Run discreet import experiment.toml --log FILE."
        )


def change_mode(database: Database, connection: Connection, mode: str, by: str = "") -> None:
    """Set the mode for all workers; an ended experiment stays ended."""
    if connection.execute("SELECT mode FROM experiment").fetchone()[0] == ENDED:
        if mode == ENDED:
            return
        raise InvalidInput(
            f"mode must stay {ENDED!r} once an experiment was ended; got {mode!r}. Begin a new "
            "experiment: what this one learned can be its prior."
        )
    connection.execute("UPDATE experiment SET mode = ?", (mode,))
    document_table.note_change(database, connection, "mode changed", by, value=mode)


def awaits_log(settings: Settings, connection: Connection) -> bool:
    """Return whether the plan announces a log, and nothing was stored or published so far.

    Privacy: after a restore the log may be in releases that the backup lacks, so it is not
    imported again: noise would be added to its rows a second time.
    [docs/privacy/service.md, "One fit for each batch"]
    """
    if settings.plan.imported is None:
        return False
    found = connection.execute(
        "SELECT 1 FROM batches UNION SELECT 1 FROM documents WHERE number > 0"
    ).fetchone()
    return found is None


def check_stored(
    settings: Settings, database: Database, connection: Connection, anchor: Anchor
) -> None:
    """Refuse a database that is empty, has another plan, or contradicts its anchor."""
    create_tables(database, connection)
    row = connection.execute("SELECT plan, clock FROM experiment").fetchone()
    if row is None:
        raise StateClaimed(
            "database must hold an experiment; this database holds none. "
            "Begin it with discreet serve --init --config FILE."
        )
    if row[0] != _plan(settings):
        raise PlanDiffers(changed_keys(json.loads(row[0]), settings.fixed))
    database.seen(float(row[1]))
    with locked_anchor(anchor) as book:  # other workers wait with their commits and confirmations
        compare(book, document_table.committed(connection))


@contextmanager
def locked_anchor(anchor: Anchor) -> Iterator[AnchorContent]:
    """Lock the anchor and yield its content; an error if it cannot be read."""
    try:
        with anchor.held() as book:
            yield book
    except OSError as error:
        raise StateClaimed(
            f"anchor must be at {anchor.path}; it cannot be read there ({error.strerror}). "
            "Bring its disk back, or name its place: anchor = '…'."
        ) from None


def compare(book: AnchorContent, documents: list[tuple[int, str]]) -> None:
    """Refuse documents without the newest confirmed one, or with one unknown to the anchor."""
    pending, known = book.pending, documents
    if pending is not None and documents[-1:] == [(pending.number, pending.digest)]:
        # It was committed, and is confirmed next. If it is a restore, the one before is lost.
        known = documents[:-1]
    elif any((mark.number, mark.digest) not in documents for mark in book.confirmed[-1:]):
        raise behind()
    unknown = [number for number, digest in known if not book.holds(number, digest)]
    if unknown:
        raise StateClaimed(
            f"document {unknown[0]} must be one that the anchor confirms; the anchor does not know "
            "it. The anchor is older than the database, or belongs to another experiment: name the "
            "right anchor, or run discreet restore."
        )


@dataclass(frozen=True)
class Restored:
    """Batches that were burned, and lost documents whose releases are still charged."""

    burned: list[int]
    charged: list[int]


def restore(settings: Settings, *, anchor_lost: bool = False) -> Restored:
    """Begin a new epoch: batches under way are burned, lost releases are charged.

    ``anchor_lost`` makes a new anchor from the database, for an anchor that is lost for good.
    """
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    anchor = anchor_of(settings)
    database.keep_private()  # a copied file may have another mode
    with database.guard(), closing(database.connect()) as connection:
        create_tables(database, connection)
        with database.transaction(connection):
            row = connection.execute(
                f"SELECT plan, clock FROM experiment {database.lock}"
            ).fetchone()
            if row is None or row[0] != _plan(settings):
                raise StateClaimed(
                    "database must hold the experiment of this file; it holds another or none. "
                    "Name the database that was restored."
                )
            database.seen(float(row[1]))
            if anchor_lost:
                anchor.create()
            newest = _reconcile(anchor, connection)
            charged = _charge_lost(anchor, connection)
            burned = under_way(connection)
            document = restore_document(
                document_table.newest(connection),
                epoch=newest.epoch + 1,
                number=newest.number + 1,
                previous=newest.digest,
                burned=[batch.id for batch in burned],
            )
            mark = document_table.append(connection, document, vault.signing)
            for batch in burned:
                finish(database, connection, batch, "burned")
                forget(connection, batch.epoch, batch.id)
            connection.execute("DELETE FROM replies")
            # Privacy: the table of people may lack people who are in a lost release, so all people
            # count as having entered it. [docs/privacy/users.md, "Counts must not be forgotten"]
            # Requests since the backup are unknown. For ``remember`` seconds a request with an
            # Idempotency-Key may be one of them, and takes no slot. [idempotency.py]
            connection.execute(
                f"""UPDATE experiment SET epoch = ?, serving = NULL, restored = {database.now},
                    missed = missed + ?""",
                (mark.epoch, len(charged)),
            )
            document_table.note_change(database, connection, "restored", document=mark.number)
            step("restore:before-commit")
            anchor.intend(mark)
            step("restore:intended")
        step("restore:committed")
        anchor.confirm([(mark.number, mark.digest)])
        step("restore:anchored")
        destroy_keys(vault, connection)
        remembered = connection.execute("SELECT epoch, id FROM batches WHERE ended IS NOT NULL")
        for place in set(vault.batches(NAMES)) - {tuple(row) for row in remembered.fetchall()}:
            vault.destroy(*place, NAMES)
        database.erase(connection)
    return Restored([batch.id for batch in burned], charged)


def _reconcile(anchor: Anchor, connection: Connection) -> AnchorMark:
    """Make database and anchor agree on every document; return the newest confirmed one."""
    for number, digest in document_table.committed(connection):
        with locked_anchor(anchor) as book:
            pending, meant = book.pending, [mark.digest for mark in book.intents]
        if book.holds(number, digest):
            continue
        if pending is not None and (pending.number, pending.digest) == (number, digest):
            anchor.confirm([(number, digest)])
        elif digest in meant:  # never shown: another document took its number
            _drop(connection, number)
        elif number >= len(book.confirmed):  # an older anchor: this may have been served
            _enter(anchor, connection, range(len(book.confirmed), number + 1))
        else:
            raise StateClaimed(
                f"document {number} must be the one that the anchor confirms; the anchor confirms "
                "another. Name the anchor of this database, or begin a new experiment."
            )
    with locked_anchor(anchor) as book:
        return book.confirmed[-1]


def _drop(connection: Connection, number: int) -> None:
    """Delete a document that was never shown; its batch is burned with those under way."""
    row = connection.execute(
        "SELECT epoch, batch FROM documents WHERE number = ?", (number,)
    ).fetchone()
    for table in ("documents WHERE number", "charges WHERE number", "changes WHERE document"):
        connection.execute(f"DELETE FROM {table} = ?", (number,))
    connection.execute("UPDATE batches SET state = 'sealed' WHERE epoch = ? AND id = ?", tuple(row))


def _enter(anchor: Anchor, connection: Connection, numbers: range) -> None:
    """Add documents that the anchor does not know; some of them may have been lost."""
    epoch = 1
    for number in numbers:
        found = connection.execute(
            """SELECT epoch, digest, batch, entry FROM documents LEFT JOIN charges USING (number)
               WHERE number = ?""",
            (number,),
        ).fetchone()
        epoch, digest, batch, paid = found or (epoch, "lost", None, None)
        mark = AnchorMark(epoch, number, digest, batch, json.loads(paid) if paid else None)
        anchor.intend(mark)
        anchor.confirm([(number, digest)])


def _charge_lost(anchor: Anchor, connection: Connection) -> list[int]:
    """Charge every published release that the ledger lacks; return their numbers."""
    # Privacy: a lost release was published, so everyone who may be in it is charged for it.
    # [docs/privacy/service.md, "One fit for each batch"]
    known = {row[0] for row in connection.execute("SELECT number FROM charges").fetchall()}
    with locked_anchor(anchor) as book:
        lost = [mark for mark in book.confirmed if mark.charge and mark.number not in known]
    for mark in lost:
        document_table.charge(connection, mark.number, mark.charge or {})
    return [mark.number for mark in lost]


def _plan(settings: Settings) -> str:
    """Return the settings that never change, as the experiment table stores them."""
    return canonical(settings.fixed).decode()


def refuse_under_way(connection: Connection) -> None:
    """Refuse to archive an experiment with stored rows that are not released."""
    waiting = [batch.id for batch in under_way(connection)]
    if waiting:
        raise InvalidInput(
            f"experiment must have no batch under way to be archived; it has {len(waiting)}, the "
            f"first is batch {waiting[0]}. End it and wait for its releases, or burn what is "
            "stored and not released."
        )


def close_down(settings: Settings, *, burn_waiting: bool, by: str = "") -> None:
    """Erase all rows and keys of an experiment that is not served; with ``burn_waiting`` also of
    batches that wait for their release. The history records it."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    anchor = anchor_of(settings)
    with closing(database.connect()) as connection:
        # A document that a dead process committed is confirmed before another one follows.
        anchor.confirm(document_table.committed(connection))
        if not burn_waiting:
            refuse_under_way(connection)
        for batch in under_way(connection):
            with database.transaction(connection):
                burn(database, connection, vault, anchor, batch.id, by)
            anchor.confirm(document_table.committed(connection))
        destroy_keys(vault, connection)
        while (left := journal.left_over(connection)) is not None:
            with database.transaction(connection):
                journal.forget(connection, *left[:2])
        for place in vault.batches(NAMES):  # no request can come again
            vault.destroy(*place, NAMES)
        with database.transaction(connection):
            connection.execute("DELETE FROM names")
            connection.execute("UPDATE batches SET ended = NULL")
            document_table.note_change(database, connection, "archived", by)
        database.erase(connection)


class ExperimentFile:
    """Comparison of the experiment file with the settings that are served.

    An edit takes effect only after a restart. ``differs`` lists the keys whose values have changed,
    never the values: one may be a password. ``readable`` is False if the file is missing, or if no
    service could start from it.
    """

    def __init__(self, path: Path, settings: Settings, log: Log) -> None:
        self._path, self._settings, self._log = path, settings, log
        self._seen: tuple[int, ...] | None = None
        self._named = named_files(path)
        self.differs: list[str] = []
        self.readable = True

    def look(self) -> None:
        """Compare the file if it was written to, and log what has changed."""
        seen = self._stamp()
        if seen == self._seen:
            return
        before = (self.readable, self.differs)
        try:
            now = Settings.read(self._path)
            self.readable, self.differs = True, changed_keys(self._settings.values, now.values)
        except (InvalidInput, CorruptRelease):  # the latter for the file of a prior
            self.readable, self.differs = False, []
        named = named_files(self._path)  # if the file names others now, compare once more
        self._seen, self._named = (seen if named == self._named else None), named
        if (self.readable, self.differs) == before:
            return
        if not self.readable:
            self._log.event("experiment file unreadable")
        elif self.differs:
            self._log.event("experiment file differs", keys=self.differs)
        else:
            self._log.event("experiment file as served")

    def _stamp(self) -> tuple[int, ...]:
        """Return a value that changes with every write, even if the file's time is set back."""
        stamp: tuple[int, ...] = ()
        for path in (self._path, *self._named):
            with suppress(OSError):
                found = path.stat()
                stamp += found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        return stamp
