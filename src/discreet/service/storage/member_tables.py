"""Members, roles, invitations and sessions, and a record of withdrawn rights in the vault.

The tables are in ``server.db`` of a folder of experiments, or in the database of an experiment that
is served alone. Passphrases are stored as hashes of argon2, and codes of invitations as SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from discreet.design.schedule import seconds_of
from discreet.errors import InvalidInput, ServiceError
from discreet.service.secrets.vault import Vault, locked_file, replace_file
from discreet.service.storage.database import PATIENCE, Connection, Database
from discreet.service.storage.document_table import note_change
from discreet.validate import one_of

T = TypeVar("T")
NONE = "none"
ROLES = (NONE, "viewer", "editor", "owner")
"""From no rights to all: a viewer reads, an editor also changes experiments, an owner also manages
members and keys."""
SESSION_SECONDS = 8 * 3600
"""Seconds that a session of the dashboard lasts."""
INVITED_FOR = "7d"
RECORD = "members.json"
"""File in the vault with the number of changes to each member, and of ended sessions and used
invitations under an empty name. A database with smaller numbers comes from a backup."""


@dataclass(frozen=True)
class Member:
    """Person who signs in; ``role`` is for the whole server, ``grants`` are for experiments."""

    id: str
    name: str
    email: str
    hash: str = field(repr=False)
    role: str
    grants: Mapping[str, str]
    outdated: bool
    """Whether a later change to this member is missing, because a backup was restored."""
    sessions: int

    def role_at(self, experiment: str) -> str:
        """Return the role for an experiment, or for the server if it is empty."""
        return max(self.role, self.grants.get(experiment, NONE), key=ROLES.index)

    @property
    def author(self) -> str:
        """Id and name, for the history; logs contain the id alone."""
        return f"{self.id} {self.name}"


class Invitation(NamedTuple):
    """One-time link; with ``member`` it sets a new passphrase for that member."""

    id: str
    role: str
    experiment: str
    member: str
    created: float
    expires: float


class SignedIn(NamedTuple):
    """Session of a member; ``way`` is ``passphrase``, ``invitation`` or ``single sign-on``."""

    id: str
    began: float
    way: str


def folded(text: str) -> str:
    """Return the form of a name or an e-mail address in which it must be unique."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def checked_name(text: str) -> str:
    """Return a name without spaces around it; refuse one that could not be read on a page."""
    name = unicodedata.normalize("NFC", text).strip()
    if not (1 <= len(name) <= 64 and name.isprintable()):
        raise InvalidInput("name must be 1 to 64 characters on one line; it is not. Shorten it.")
    return name


def _checked_email(text: str) -> str | None:
    email = folded(text)
    if email and not (re.fullmatch(r"[^@\s]{1,64}@[^@\s]{1,190}", email) and email.isprintable()):
        raise InvalidInput("e-mail must be an address such as ada@example.org; it is not.")
    return email or None


class MemberTables:
    """Operations on the tables; those that write run inside ``change``, or inside a transaction
    between ``begin_change`` and ``record``."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self.database, self._vault = database, vault

    def _recorded(self) -> dict[str, int]:
        path = self._vault.folder / RECORD
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def _stored(self, connection: Connection) -> dict[str, int]:
        return dict(connection.execute("SELECT id, version FROM member_versions").fetchall())

    def _outdated(self, connection: Connection) -> set[str]:
        """Return the members, or the empty name, of which the database lacks changes."""
        stored = self._stored(connection)
        return {id for id, version in self._recorded().items() if stored.get(id, 0) < version}

    def _count(self, connection: Connection, id: str = "") -> None:
        """Count a change to a member, or without ``id`` an end of sessions or invitations."""
        known = max(self._recorded().get(id, 0), self._stored(connection).get(id, 0))
        connection.execute(
            """INSERT INTO member_versions VALUES (?, ?)
               ON CONFLICT (id) DO UPDATE SET version = excluded.version""",
            (id, known + 1),
        )

    def begin_change(self, connection: Connection) -> None:
        """Delete sessions and invitations that a restored backup brought back, and old ones."""
        now = self.database.now
        if "" in self._outdated(connection):
            connection.execute("DELETE FROM sessions")
            connection.execute("DELETE FROM invitations")
            self._count(connection)
        connection.execute(f"DELETE FROM sessions WHERE began < {now} - ?", (SESSION_SECONDS,))
        connection.execute(f"DELETE FROM invitations WHERE expires < {now}")

    def change(self, connection: Connection, operation: Callable[[Connection], T]) -> T:
        """Run an operation in a transaction, and record its changes in the vault."""
        with self.database.transaction(connection):
            self.begin_change(connection)
            made = operation(connection)
        self.record(connection)
        return made

    def record(self, connection: Connection) -> None:
        """Write the committed numbers to the vault, where no backup sets them back."""
        stored, path = self._stored(connection), self._vault.folder / RECORD
        if all(self._recorded().get(id, 0) >= version for id, version in stored.items()):
            return
        refusal = f"{path} must be free; another process writes it. Try again."
        lock = path.with_suffix(".lock")
        with locked_file(lock, refusal, create=True, patience=PATIENCE):
            known = self._recorded()
            newest = {id: max(stored.get(id, 0), known.get(id, 0)) for id in stored | known}
            replace_file(path, json.dumps(newest).encode())

    def _note(self, connection: Connection, what: str, author: str, *details: str) -> None:
        """Add a change to the history; ``details`` are the member, the role and the experiment."""
        named = dict(zip(("member", "role", "experiment"), details, strict=False))
        note_change(self.database, connection, what, author, document=None, **named)

    def listed(self, connection: Connection) -> list[Member]:
        """Return all members by name."""
        grants: dict[str, dict[str, str]] = {}
        roles = "SELECT member, experiment, role FROM grants WHERE role <> 'none'"
        for id, experiment, role in connection.execute(roles).fetchall():
            grants.setdefault(id, {})[experiment] = role
        outdated = self._outdated(connection)
        rows = connection.execute(
            """SELECT id, name, coalesce(email, ''), hash, (SELECT count(*) FROM sessions
               WHERE sessions.member = members.id) FROM members ORDER BY login"""
        ).fetchall()
        return [
            Member(id, name, email, hash, own.pop("", NONE), own, id in outdated, sessions)
            for id, name, email, hash, sessions in rows
            for own in [grants.get(id, {})]
        ]

    def find(self, connection: Connection, text: str) -> Member | None:
        """Return the member with this id, name or e-mail address."""
        wanted = folded(text)
        for each in self.listed(connection):
            if wanted and wanted in (each.id, folded(each.name), each.email):
                return each
        return None

    def named(self, connection: Connection, text: str) -> Member:
        """Return a member, or raise an error that lists nobody."""
        if found := self.find(connection, text):
            return found
        raise InvalidInput(
            f"member must be a name or an e-mail address of a member; got {text[:64]!r}. "
            "Invite them first."
        )

    def add(
        self,
        connection: Connection,
        name: str,
        email: str,
        hash: str,
        role: str,
        experiment: str = "",
    ) -> Member:
        """Add a member with a role; without a hash only a proxy signs in."""
        name, address, id = checked_name(name), _checked_email(email), f"m_{secrets.token_hex(6)}"
        for text in filter(None, (name, address)):
            if self.find(connection, text):
                raise InvalidInput(f"{text} must be new; a member has it already. Choose another.")
        connection.execute(
            f"INSERT INTO members VALUES (?, ?, ?, ?, ?, {self.database.now})",
            (id, name, folded(name), address, hash),
        )
        self._note(connection, "member joined", f"{id} {name}", name)
        return self.set_role(connection, id, role, experiment, f"{id} {name}")

    def set_role(
        self, connection: Connection, id: str, role: str, experiment: str = "", author: str = ""
    ) -> Member:
        """Give a role for the server or one experiment; sessions end if rights are withdrawn."""
        one_of("role", role, ROLES)
        member = self.named(connection, id)
        before = member.grants.get(experiment, NONE) if experiment else member.role
        if not experiment and role != "owner":
            self._refuse_last(connection, member)
        connection.execute(
            """INSERT INTO grants VALUES (?, ?, ?)
               ON CONFLICT (member, experiment) DO UPDATE SET role = excluded.role""",
            (member.id, experiment, role),
        )
        self._count(connection, member.id)
        if ROLES.index(role) < ROLES.index(before):
            self.end_sessions(connection, member.id)
        self._note(connection, "role changed", author, member.name, role, experiment)
        return self.named(connection, member.id)

    def _refuse_last(self, connection: Connection, member: Member) -> None:
        owners = "SELECT member FROM grants WHERE experiment = '' AND role = 'owner'"
        rows = connection.execute(f"{owners} {self.database.lock}").fetchall()
        known = {row[0] for row in rows} - self._outdated(connection)
        if known == {member.id}:
            raise InvalidInput(
                f"server must have an owner; {member.name} is the last one. Make somebody else "
                "an owner first."
            )

    def remove(self, connection: Connection, id: str, author: str = "") -> None:
        """Remove a member with all roles, sessions and open invitations."""
        member = self.named(connection, id)
        self._refuse_last(connection, member)
        self.end_sessions(connection, member.id)
        for place in ("grants WHERE member", "invitations WHERE member", "members WHERE id"):
            connection.execute(f"DELETE FROM {place} = ?", (member.id,))
        self._count(connection, member.id)
        self._note(connection, "member removed", author, member.name)

    def set_hash(self, connection: Connection, id: str, hash: str, author: str = "") -> None:
        """Set the hash of a new passphrase; all sessions of the member end."""
        member = self.named(connection, id)
        self.rehash(connection, member.id, hash)
        self.end_sessions(connection, member.id)
        self._count(connection, member.id)
        self._note(connection, "passphrase set", author, member.name)

    def rehash(self, connection: Connection, id: str, hash: str) -> None:
        """Replace the hash of the same passphrase."""
        connection.execute("UPDATE members SET hash = ? WHERE id = ?", (hash, id))

    def invite(
        self,
        connection: Connection,
        role: str,
        experiment: str = "",
        *,
        member: str = "",
        expires_in: str = INVITED_FOR,
        author: str = "",
    ) -> str:
        """Return the code of a new invitation, which is shown once."""
        one_of("role", role, ROLES)
        lasts = seconds_of("expires_in", expires_in)
        code, now = secrets.token_urlsafe(32), self.database.now
        connection.execute(
            f"INSERT INTO invitations VALUES (?, ?, ?, ?, {now}, {now} + ?)",
            (_digest(code), role, experiment, member, lasts),
        )
        name = self.named(connection, member).name if member else ""
        what = "passphrase link" if member else "invited"
        self._note(connection, what, author, name, role, experiment)
        return code

    def invitations(self, connection: Connection) -> list[Invitation]:
        """Return all invitations that can be used, the newest first."""
        if "" in self._outdated(connection):
            return []
        rows = connection.execute(
            f"SELECT * FROM invitations WHERE expires >= {self.database.now} ORDER BY created DESC"
        ).fetchall()
        return [Invitation(*row) for row in rows]

    def invitation(self, connection: Connection, code: str) -> Invitation:
        """Return the invitation of a code, or raise an error if it was used or is too old."""
        for each in self.invitations(connection):
            if each.id == _digest(code):
                return each
        raise _over()

    def withdraw(self, connection: Connection, id: str) -> bool:
        """Delete an invitation; return whether it was there."""
        gone = connection.execute("DELETE FROM invitations WHERE id = ? RETURNING id", (id,))
        self._count(connection)
        return gone.fetchone() is not None

    def join(self, connection: Connection, code: str, name: str, email: str, hash: str) -> Member:
        """Use an invitation: add a member, or set the passphrase of the member that it names."""
        invitation = self.invitation(connection, code)
        if not self.withdraw(connection, invitation.id):  # used at the same moment
            raise _over()
        if invitation.member:
            member = self.named(connection, invitation.member)
            self.set_hash(connection, member.id, hash, member.author)
            return self.named(connection, member.id)
        return self.add(connection, name, email, hash, invitation.role, invitation.experiment)

    def begin_session(self, connection: Connection, member: str, way: str) -> str:
        """Begin a session of a member and return its id."""
        id = secrets.token_urlsafe(24)
        connection.execute(
            f"INSERT INTO sessions VALUES (?, ?, {self.database.now}, ?)", (id, member, way)
        )
        return id

    def session_member(self, connection: Connection, id: str) -> Member | None:
        """Return the member of a session; None if the session or the rights have ended."""
        row = connection.execute(
            f"SELECT member FROM sessions WHERE id = ? AND began >= {self.database.now} - ?",
            (id, SESSION_SECONDS),
        ).fetchone()
        if row is None or "" in self._outdated(connection):
            return None
        same = (each for each in self.listed(connection) if each.id == row[0] and not each.outdated)
        return next(same, None)

    def sessions(self, connection: Connection, member: str) -> list[SignedIn]:
        """Return the sessions of a member, the newest first."""
        rows = connection.execute(
            f"""SELECT id, began, way FROM sessions WHERE member = ?
                AND began >= {self.database.now} - ? ORDER BY began DESC""",
            (member, SESSION_SECONDS),
        ).fetchall()
        return [SignedIn(*row) for row in rows]

    def end_sessions(self, connection: Connection, member: str, only: str = "") -> None:
        """End all sessions of a member, or only one of them."""
        connection.execute(
            "DELETE FROM sessions WHERE member = ? AND (id = ? OR ? = '')", (member, only, only)
        )
        self._count(connection)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def _over() -> ServiceError:
    return ServiceError(
        "This link was used before, was withdrawn, or is too old. Ask an owner for a new one.",
        status=410,
        code="invitation_over",
    )
