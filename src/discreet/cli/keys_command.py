"""``discreet keys create|list|revoke``: API keys of a service."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from discreet.cli.command_line import Answer, Command, flag, table
from discreet.cli.flags import CONFIG, SERVICE_FOLDER, need_extra, service_settings
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.service.secrets.vault import Vault
    from discreet.service.settings import ServerSettings
    from discreet.service.storage.database import Connection, Database


def create(args: argparse.Namespace) -> Answer:
    """Create a key; its text is printed and not stored."""
    from discreet.service.storage import api_keys

    known = api_keys.SCOPES if args.folder is None else (api_keys.SERVER,)
    scopes = args.scope or (() if args.folder is None else known)
    if not scopes:
        raise InvalidInput(f"--scope must be given; it is missing. Choose of {', '.join(known)}.")
    given = {"expires_in": args.expires_in, "rate": args.rate, "known": known}
    with opened(args) as (database, connection, *_), database.transaction(connection):
        text, key = api_keys.create(database, connection, scopes, args.label, **given)
    words = f"key {key.id} for {' '.join(scopes)}, shown this once:\n{text}"
    return Answer(key.shown() | {"key": text}, words)


def list_(args: argparse.Namespace) -> Answer:
    """List all keys, without their secrets."""
    from discreet.service.storage import api_keys

    with opened(args) as (database, connection, *_):
        keys = [key.shown() for key in api_keys.listed(database, connection)]
    rows = [
        [
            key["id"],
            "revoked" if key["revoked"] else "expired" if key["expired"] else "valid",
            " ".join(key["scopes"]),
            _day(key["expires"]) or "revoked",
            _day(key["used"]) or "never",
            key["label"],
        ]
        for key in keys
    ]
    header = ["id", "state", "scopes", "works until", "last used", "label"]
    return Answer({"keys": keys}, table(header, rows))


def _day(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d", time.gmtime(moment))


def revoke(args: argparse.Namespace) -> Answer:
    """Revoke a key."""
    from discreet.service.storage import api_keys

    with opened(args) as (database, connection, *_), database.transaction(connection):
        key = api_keys.revoke(database, connection, args.id)
    return Answer(key.shown(), f"key {key.id} is revoked")


@contextmanager
def opened(
    args: argparse.Namespace,
) -> Iterator[tuple[Database, Connection, Vault, ServerSettings]]:
    """Open the database of a server or an experiment; yield also its vault and server settings."""
    need_extra()
    from discreet.service.secrets.vault import Vault
    from discreet.service.settings import ServerSettings
    from discreet.service.storage.api_keys import DATABASE, VAULT
    from discreet.service.storage.database import create_tables, storage_errors
    from discreet.service.storage.locations import open_database
    from discreet.service.storage.sqlite import Sqlite

    database: Database
    if args.folder is not None:
        server = ServerSettings.read(args.folder)
        database, vault = Sqlite(server.folder / DATABASE), Vault(server.folder / VAULT)
    else:
        settings = service_settings(args)
        server, vault = settings.server, Vault(settings.place(settings.vault))
        database = open_database(settings)
    with storage_errors(database), closing(database.connect()) as connection:
        create_tables(database, connection)
        yield database, connection, vault, server


PLACE = (CONFIG, SERVICE_FOLDER)
SCOPES = "decide, observe, ticket, release:read, audit or admin; may be repeated"
CREATE = (
    flag("--scope SCOPE", SCOPES, action="append"),
    flag("--label TEXT", "description of the key", ""),
    flag("--expires-in TIME", "lifetime, such as 90d (default: unlimited)"),
    flag("--rate N", "requests per second instead of rate_limit", int),
    *PLACE,
)
ID = flag("id ID", "id of the key, from discreet keys list")
EXAMPLE = "example:\n  discreet keys create --scope decide --scope observe --label shop"
KINDS = [
    Command("create", "create a key and print it once", create, EXAMPLE, CREATE),
    Command("list", "list all keys, without their secrets", list_, "", PLACE),
    Command("revoke", "revoke a key; it stops working within a second", revoke, "", [ID, *PLACE]),
]
COMMANDS = [Command("keys", "create, list or revoke keys of a service", kinds=KINDS)]
