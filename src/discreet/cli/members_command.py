"""``discreet members list|invite|role|remove|passphrase``: people who use the dashboard."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from discreet.cli.command_line import Answer, Command, flag, table
from discreet.cli.keys_command import PLACE, opened
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.service.settings import ServerSettings
    from discreet.service.storage.database import Connection
    from discreet.service.storage.member_tables import MemberTables

TEXT = """\
A viewer reads all pages, an editor also changes experiments, an owner also manages members and
keys.

examples:
  discreet members invite --role owner
  discreet members invite --role viewer --experiment welcome --folder experiments
  discreet members role ada editor"""


def list_(args: argparse.Namespace) -> Answer:
    """List all members."""
    with _members(args) as (tables, connection, _):
        members = tables.listed(connection)
    rows = [
        [
            each.name,
            each.role,
            ", ".join(f"{role} of {name}" for name, role in sorted(each.grants.items())) or None,
            each.email or None,
            "changed after the backup: set the role again" if each.outdated else "",
        ]
        for each in members
    ]
    names = ("id", "name", "email", "role", "grants", "outdated", "sessions")
    document = [{name: getattr(each, name) for name in names} for each in members]
    header = ["name", "role", "for experiments", "e-mail", ""]
    return Answer({"members": document}, table(header, rows))


def invite(args: argparse.Namespace) -> Answer:
    """Print a one-time link."""
    link = invitation_link(args, args.role, args.expires_in, args.url)
    text = f"{link}\nSend it to one person; it works once, for {args.expires_in}."
    return Answer({"link": link}, text)


def invitation_link(
    args: argparse.Namespace, role: str = "owner", expires_in: str = "7d", url: str | None = None
) -> str:
    """Return a link with which one person becomes a member."""
    with _members(args) as (tables, connection, server):
        name = getattr(args, "experiment", "")
        invited = tables.change(
            connection, lambda c: tables.invite(c, role, name, expires_in=expires_in)
        )
    host, port = (getattr(args, part, None) or getattr(server, part) for part in ("host", "port"))
    base = url or f"http://{host}:{port}{server.prefix}"
    return f"{base.rstrip('/')}/ui/join?code={invited}"


def role(args: argparse.Namespace) -> Answer:
    """Give a member a role."""
    with _members(args) as (tables, connection, _):
        tables.change(
            connection, lambda c: tables.set_role(c, args.member, args.role, args.experiment)
        )
    where = f" of {args.experiment}" if args.experiment else ""
    return Answer({"role": args.role}, f"{args.member} has the role {args.role}{where}")


def remove(args: argparse.Namespace) -> Answer:
    """Remove a member."""
    with _members(args) as (tables, connection, _):
        tables.change(connection, lambda c: tables.remove(c, args.member))
    return Answer({"removed": args.member}, f"{args.member} is removed")


def passphrase(args: argparse.Namespace) -> Answer:
    """Set a passphrase; it is neither an argument nor printed."""
    with _members(args) as (tables, connection, _):
        from discreet.service.membership import check_passphrase, hashed

        member = tables.named(connection, args.member)
        hash = hashed(check_passphrase(_typed(), member.name, member.email))
        tables.change(connection, lambda c: tables.set_hash(c, member.id, hash))
    return Answer({"member": member.name}, f"{member.name} has a new passphrase")


def _typed() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass("New passphrase: ")
    if getpass.getpass("The same again: ") != first:
        raise InvalidInput("passphrase must be typed twice; the two differ. Start again.")
    return first


@contextmanager
def _members(
    args: argparse.Namespace,
) -> Iterator[tuple[MemberTables, Connection, ServerSettings]]:
    with opened(args) as (database, connection, vault, server):
        from discreet.service.runtime.experiment_folder import ExperimentFolder
        from discreet.service.storage.member_tables import MemberTables

        name = getattr(args, "experiment", "")
        if name and args.folder is None:
            raise InvalidInput(
                "--experiment must come with --folder; it came alone. Leave it out: an experiment "
                "that is served alone has members of its own."
            )
        if name:
            ExperimentFolder(args.folder).file(name)
        yield MemberTables(database, vault), connection, server


MEMBER = flag("member NAME", "name or e-mail address of the member")
GRANT = flag("--experiment NAME", "role for this experiment of the folder alone", "")
INVITE = (
    flag("--role ROLE", "owner, editor or viewer", required=True),
    flag("--expires-in TIME", "(default: 7d)", "7d"),
    flag("--url URL", "address of the service in the link"),
    *(GRANT, *PLACE),
)
ROLE = (MEMBER, flag("role ROLE", "owner, editor, viewer or none"), GRANT, *PLACE)
TYPED = "set a passphrase, typed twice or read from standard input"
KINDS = [
    Command("list", "list all members and their roles", list_, "", PLACE),
    Command("invite", "print a link with which one person can join", invite, "", INVITE),
    Command("role", "give a member another role", role, "", ROLE),
    Command(
        "remove", "remove a member, who is signed out everywhere", remove, "", [MEMBER, *PLACE]
    ),
    Command("passphrase", TYPED, passphrase, "", [MEMBER, *PLACE]),
]
COMMANDS = [Command("members", "people who use the dashboard", text=TEXT, kinds=KINDS)]
