"""``discreet keys create|list|revoke``: who may ask a service for what."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from discreet.cli.answer import Answer, table


def create(args: argparse.Namespace) -> Answer:
    """A new key; its text is printed and kept nowhere."""
    from discreet.service.storage import api_keys

    with _database(args.config) as (database, connection), database.transaction(connection):
        text, key = api_keys.create(database, connection, args.scope, args.label)
    said = f"key {key.id} for {' '.join(args.scope)}, shown this once:\n{text}"
    return Answer(key.shown() | {"key": text}, said)


def list_(args: argparse.Namespace) -> Answer:
    """All keys, without their secrets."""
    from discreet.service.storage import api_keys

    with _database(args.config) as (_, connection):
        keys = [key.shown() for key in api_keys.listed(connection)]
    rows = [
        [key["id"], "revoked" if key["revoked"] else "valid", " ".join(key["scopes"]), key["label"]]
        for key in keys
    ]
    return Answer({"keys": keys}, "\n".join(table(["id", "state", "scopes", "label"], rows)))


def revoke(args: argparse.Namespace) -> Answer:
    """A key stops working."""
    from discreet.service.storage import api_keys

    with _database(args.config) as (database, connection), database.transaction(connection):
        key = api_keys.revoke(database, connection, args.id)
    return Answer(key.shown(), f"key {key.id} is revoked")


@contextmanager
def _database(config: str) -> Iterator[tuple[Any, Any]]:
    from discreet.cli.serve_command import need_extra
    from discreet.service.settings import Settings
    from discreet.service.storage.locations import open_database
    from discreet.service.storage.migrations import migrate

    need_extra()
    database = open_database(Settings.read(config))
    with closing(database.connect()) as connection:
        migrate(database, connection)
        yield database, connection
