"""Tables of the database, created in steps: each step is a recorded function."""

from __future__ import annotations

import json

from discreet.errors import StateClaimed
from discreet.releases.canonical import canonical
from discreet.service.storage.database import Connection, Database


def tables(connection: Connection, database: Database) -> None:
    """Create the first tables; only records, answers, replies and names hold rows of people."""
    whole, blob, real = database.whole, database.blob, database.real
    place = f"epoch {whole} NOT NULL, batch {whole} NOT NULL"
    for table in (
        # One row: what never changes (the plan with its unit, as JSON), what may
        # change while the service runs, the latest moment that was seen, and when a backup was
        # restored.
        f"""experiment (one {whole} PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL,
            plan TEXT NOT NULL, epoch {whole} NOT NULL, mode TEXT NOT NULL,
            holdback {real} NOT NULL, serving {whole}, clock {real} NOT NULL, restored {real})""",
        # ``ended`` is set while the names of its requests are remembered.
        f"""batches (epoch {whole} NOT NULL, id {whole} NOT NULL, size {whole} NOT NULL,
            taken {whole} NOT NULL, state TEXT NOT NULL, release {whole} NOT NULL,
            opened {real} NOT NULL, sealed {real}, closes {real}, due {real}, ended {real},
            PRIMARY KEY (epoch, id))""",
        # Leases that assigned slots: only their decision ids can bring content.
        f"leases (nonce {blob} PRIMARY KEY, {place}) {database.clustered}",
        f"""records ({place}, slot {whole} NOT NULL, payload {blob} NOT NULL,
            PRIMARY KEY (epoch, batch, slot)) {database.clustered}""",
        # The first answer of a kind stays: an insert that conflicts changes nothing.
        f"""answers ({place}, slot {whole} NOT NULL, kind {whole} NOT NULL,
            payload {blob} NOT NULL,
            PRIMARY KEY (epoch, batch, slot, kind)) {database.clustered}""",
        f"""replies (name {blob} PRIMARY KEY, {place}, slot {whole} NOT NULL,
            payload {blob} NOT NULL, later {blob} NOT NULL) {database.clustered}""",
        # ``later`` of the replies of a batch that is over, until it is forgotten.
        f"""names ({place}, name {blob} NOT NULL,
            PRIMARY KEY (epoch, batch, name)) {database.clustered}""",
        # A batch is released once: this key, not a lock, is the guarantee.
        f"""documents (number {whole} PRIMARY KEY, kind TEXT NOT NULL, epoch {whole} NOT NULL,
            batch {whole}, digest TEXT NOT NULL, body {blob} NOT NULL, UNIQUE (epoch, batch))""",
        f"charges (number {whole} PRIMARY KEY, entry TEXT NOT NULL)",
        f"""keys (id TEXT PRIMARY KEY, hash TEXT NOT NULL, scopes TEXT NOT NULL,
            label TEXT NOT NULL, created {real} NOT NULL, revoked {real})""",
    ):
        connection.execute(f"CREATE TABLE {table}")
    connection.execute("CREATE INDEX leases_by_batch ON leases (epoch, batch)")
    connection.execute("CREATE INDEX replies_by_batch ON replies (epoch, batch, slot)")


def ended_sessions(connection: Connection, database: Database) -> None:
    """Add the time at which the dashboard's sessions of a key ended."""
    connection.execute(f"ALTER TABLE keys ADD COLUMN ended {database.real}")


def people(connection: Connection, database: Database) -> None:
    """Add counts of the slots of people, and which slots of batches under way count."""
    whole, blob = database.whole, database.blob
    counts = f"entered {whole} NOT NULL, last {whole} NOT NULL, records {whole} NOT NULL"
    connection.execute(
        f"CREATE TABLE people (person {blob} PRIMARY KEY, {counts}) {database.clustered}"
    )
    connection.execute(
        f"""CREATE TABLE handed (epoch {whole} NOT NULL, batch {whole} NOT NULL,
            slot {whole} NOT NULL, counts {whole} NOT NULL,
            PRIMARY KEY (epoch, batch, slot)) {database.clustered}"""
    )
    # Releases that backups lacked: any person may have been in each of them.
    connection.execute(f"ALTER TABLE experiment ADD COLUMN missed {whole} NOT NULL DEFAULT 0")
    # Earlier versions wrote a number of batches, which the unit "decision" left empty.
    for (text,) in connection.execute("SELECT plan FROM experiment").fetchall():
        fixed = json.loads(text)
        if fixed.get("max_batches", 0) is None:
            del fixed["max_batches"]
            plan = canonical(fixed).decode()
            connection.execute("UPDATE experiment SET plan = ?", (plan,))


def control_share(connection: Connection, database: Database) -> None:
    """Add which slots of people are in the control, which replaces the hold-back."""
    connection.execute("ALTER TABLE experiment DROP COLUMN holdback")
    connection.execute(f"ALTER TABLE handed ADD COLUMN control {database.whole} NOT NULL DEFAULT 0")


def returned_slots(connection: Connection, database: Database) -> None:
    """Add slots that a process leased and gave back, and expiry, rate limit and last use of keys.
    Processes of the older version may keep running."""
    whole, real = database.whole, database.real
    connection.execute(
        f"""CREATE TABLE returned (epoch {whole} NOT NULL, batch {whole} NOT NULL,
            slot {whole} NOT NULL, PRIMARY KEY (epoch, batch, slot)) {database.clustered}"""
    )
    for column in (f"expires {real}", f"rate {whole}", f"used {real}"):
        connection.execute(f"ALTER TABLE keys ADD COLUMN {column}")


def history(connection: Connection, database: Database) -> None:
    """Add the history of changes, filled from older tables, and decisions per hour."""
    whole, real = database.whole, database.real
    connection.execute(
        f"""CREATE TABLE changes (at {real} NOT NULL, what TEXT NOT NULL, who TEXT NOT NULL,
            document {whole}, details TEXT NOT NULL)"""
    )
    connection.execute(
        f"CREATE TABLE traffic (hour {whole} PRIMARY KEY, decisions {whole} NOT NULL)"
    )
    known = [
        (at, what, None, {"key": id})
        for id, created, revoked in connection.execute(
            "SELECT id, created, revoked FROM keys"
        ).fetchall()
        for at, what in ((created, "key created"), (revoked, "key revoked"))
        if at is not None
    ]
    known += [
        (due, "released", number, {"batch": batch})
        for due, number, batch in connection.execute(
            """SELECT batches.due, documents.number, documents.batch FROM documents
               JOIN batches ON batches.epoch = documents.epoch AND batches.id = documents.batch"""
        ).fetchall()
    ]
    for at, what, number, details in known:
        connection.execute(
            "INSERT INTO changes VALUES (?, ?, '', ?, ?)",
            (at, what, number, canonical(details).decode()),
        )


def members(connection: Connection, database: Database) -> None:
    """Add members, their roles for experiments, invitations and sessions. ``member_versions``
    counts changes, so that a restored backup is noticed. [member_tables.py]"""
    whole, real = database.whole, database.real
    for table in (
        f"""members (id TEXT PRIMARY KEY, name TEXT NOT NULL, login TEXT NOT NULL UNIQUE,
            email TEXT UNIQUE, hash TEXT NOT NULL, created {real} NOT NULL)""",
        # The role for the whole server has an empty experiment.
        """grants (member TEXT NOT NULL, experiment TEXT NOT NULL, role TEXT NOT NULL,
           PRIMARY KEY (member, experiment))""",
        f"""invitations (id TEXT PRIMARY KEY, role TEXT NOT NULL, experiment TEXT NOT NULL,
            member TEXT NOT NULL, created {real} NOT NULL, expires {real} NOT NULL)""",
        f"""sessions (id TEXT PRIMARY KEY, member TEXT NOT NULL, began {real} NOT NULL,
            way TEXT NOT NULL)""",
        f"member_versions (id TEXT PRIMARY KEY, version {whole} NOT NULL)",
    ):
        connection.execute(f"CREATE TABLE {table}")


def latest_decision(connection: Connection, database: Database) -> None:
    """Add the time of the latest decision of each hour."""
    connection.execute(f"ALTER TABLE traffic ADD COLUMN latest {database.real}")


MIGRATIONS = (
    *(tables, ended_sessions, people, control_share, returned_slots, history),
    *(members, latest_decision),
)


def migrate(database: Database, connection: Connection) -> None:
    """Bring a database up to date; refuse one that newer code wrote."""
    with database.transaction(connection):
        database.alone(connection)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS migrations (number {database.whole} PRIMARY KEY, "
            f"name TEXT NOT NULL, applied {database.real} NOT NULL)"
        )
        done = connection.execute("SELECT count(*), max(number) FROM migrations").fetchone()
        if (done[1] or 0) > len(MIGRATIONS):
            raise StateClaimed(
                f"database must be of version {len(MIGRATIONS)} or older; this has {done[1]}. "
                "A newer discreet wrote it: use that version."
            )
        for number, migration in enumerate(MIGRATIONS[done[0] :], start=done[0] + 1):
            migration(connection, database)
            connection.execute(
                f"INSERT INTO migrations VALUES (?, ?, {database.now})",
                (number, migration.__name__),
            )
