"""``discreet keys`` and ``discreet members``: programs and people that use a service."""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from discreet.cli import command_line as cli
from discreet.errors import InvalidInput
from discreet.service.membership import check_passphrase, hashed
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.secrets.vault import Vault
from discreet.service.settings import ServerSettings, Settings
from discreet.service.storage import api_keys
from discreet.service.storage.api_keys import DATABASE, VAULT
from discreet.service.storage.database import Connection, Database, create_tables, storage_errors
from discreet.service.storage.locations import open_database
from discreet.service.storage.member_tables import MemberTables
from discreet.service.storage.sqlite import Sqlite

PLACE = (cli.CONFIG, cli.SERVICE_FOLDER)
SCOPES = "decide, observe, ticket, release:read, audit or admin; may be repeated"
MEMBER = cli.flag("member NAME", "name or e-mail address of the member")
GRANT = cli.flag("--experiment NAME", "role for this experiment of the folder alone", "")


@cli.command(
    "keys create",
    cli.flag("--scope SCOPE", SCOPES, action="append"),
    cli.flag("--label TEXT", "description of the key", ""),
    cli.flag("--expires-in TIME", "lifetime, such as 90d (default: unlimited)"),
    cli.flag("--rate N", "requests per second instead of rate_limit", int),
    *PLACE,
)
def create(args: cli.Args) -> cli.Answer:
    """Create a key; its text is printed and not stored."""
    known = api_keys.SCOPES if args.folder is None else (api_keys.SERVER,)
    scopes = args.scope or (() if args.folder is None else known)
    if not scopes:
        raise InvalidInput(f"--scope must be given; it is missing. Choose of {', '.join(known)}.")
    given = {"expires_in": args.expires_in, "rate": args.rate, "known": known}
    with opened(args) as (database, connection, *_), database.transaction(connection):
        text, key = api_keys.create(database, connection, scopes, args.label, **given)
    words = f"key {key.id} for {' '.join(scopes)}, shown this once:\n{text}"
    return cli.Answer(key.shown() | {"key": text}, words)


@cli.command("keys list", *PLACE)
def keys(args: cli.Args) -> cli.Answer:
    """List all keys, without their secrets."""
    with opened(args) as (database, connection, *_):
        known = [key.shown() for key in api_keys.listed(database, connection)]
    rows = [
        [
            key["id"],
            "revoked" if key["revoked"] else "expired" if key["expired"] else "valid",
            " ".join(key["scopes"]),
            _day(key["expires"]) or "revoked",
            _day(key["used"]) or "never",
            key["label"],
        ]
        for key in known
    ]
    header = ["id", "state", "scopes", "works until", "last used", "label"]
    return cli.Answer({"keys": known}, cli.table(header, rows))


def _day(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d", time.gmtime(moment))


@cli.command("keys revoke", cli.flag("id ID", "id of the key, from discreet keys list"), *PLACE)
def revoke(args: cli.Args) -> cli.Answer:
    """Revoke a key."""
    with opened(args) as (database, connection, *_), database.transaction(connection):
        key = api_keys.revoke(database, connection, args.id)
    return cli.Answer(key.shown(), f"key {key.id} is revoked")


@contextmanager
def opened(args: cli.Args) -> Iterator[tuple[Database, Connection, Vault, ServerSettings]]:
    """Open the database of a server or an experiment; yield also its vault and server settings."""
    database: Database
    if args.folder is not None:
        server = ServerSettings.read(args.folder)
        database, vault = Sqlite(server.folder / DATABASE), Vault(server.folder / VAULT)
    else:
        settings = Settings.read(args.config)
        server, vault = settings.server, Vault(settings.place(settings.vault))
        database = open_database(settings)
    with storage_errors(database), closing(database.connect()) as connection:
        create_tables(database, connection)
        yield database, connection, vault, server


@cli.command("members list", *PLACE)
def members(args: cli.Args) -> cli.Answer:
    """List all members."""
    with _members(args) as (tables, connection, _):
        known = tables.listed(connection)
    rows = [
        [
            each.name,
            each.role,
            ", ".join(f"{role} of {name}" for name, role in sorted(each.grants.items())) or None,
            each.email or None,
            "changed after the backup: set the role again" if each.outdated else "",
        ]
        for each in known
    ]
    names = ("id", "name", "email", "role", "grants", "outdated", "sessions")
    document = [{name: getattr(each, name) for name in names} for each in known]
    header = ["name", "role", "for experiments", "e-mail", ""]
    return cli.Answer({"members": document}, cli.table(header, rows))


@cli.command(
    "members invite",
    cli.flag("--role ROLE", "owner, editor or viewer", required=True),
    cli.flag("--expires-in TIME", "(default: 7d)", "7d"),
    cli.flag("--url URL", "address of the service in the link"),
    GRANT,
    *PLACE,
)
def invite(args: cli.Args) -> cli.Answer:
    """Print a one-time link."""
    link = invitation_link(args, args.role, args.expires_in, args.url)
    text = f"{link}\nSend it to one person; it works once, for {args.expires_in}."
    return cli.Answer({"link": link}, text)


def invitation_link(
    args: cli.Args, role: str = "owner", expires_in: str = "7d", url: str | None = None
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


@cli.command(
    "members role", MEMBER, cli.flag("role ROLE", "owner, editor, viewer or none"), GRANT, *PLACE
)
def role(args: cli.Args) -> cli.Answer:
    """Give a member a role."""
    with _members(args) as (tables, connection, _):
        tables.change(
            connection, lambda c: tables.set_role(c, args.member, args.role, args.experiment)
        )
    where = f" of {args.experiment}" if args.experiment else ""
    return cli.Answer({"role": args.role}, f"{args.member} has the role {args.role}{where}")


@cli.command("members remove", MEMBER, *PLACE)
def remove(args: cli.Args) -> cli.Answer:
    """Remove a member."""
    with _members(args) as (tables, connection, _):
        tables.change(connection, lambda c: tables.remove(c, args.member))
    return cli.Answer({"removed": args.member}, f"{args.member} is removed")


@cli.command("members passphrase", MEMBER, *PLACE)
def passphrase(args: cli.Args) -> cli.Answer:
    """Set a passphrase; it is neither an argument nor printed."""
    with _members(args) as (tables, connection, _):
        member = tables.named(connection, args.member)
        hash = hashed(check_passphrase(_typed(), member.name, member.email))
        tables.change(connection, lambda c: tables.set_hash(c, member.id, hash))
    return cli.Answer({"member": member.name}, f"{member.name} has a new passphrase")


def _typed() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass("New passphrase: ")
    if getpass.getpass("The same again: ") != first:
        raise InvalidInput("passphrase must be typed twice; the two differ. Start again.")
    return first


@contextmanager
def _members(args: cli.Args) -> Iterator[tuple[MemberTables, Connection, ServerSettings]]:
    with opened(args) as (database, connection, vault, server):
        name = getattr(args, "experiment", "")
        if name and args.folder is None:
            raise InvalidInput(
                "--experiment must come with --folder; it came alone. Leave it out: an experiment "
                "that is served alone has members of its own."
            )
        if name:
            ExperimentFolder(args.folder).file(name)
        yield MemberTables(database, vault), connection, server
