"""The flags of ``serve``, ``keys`` and ``restore``."""

from __future__ import annotations

import argparse
from typing import Any

SERVE = """\
The first three commands of a new service:
  discreet serve --init
  discreet serve &
  curl http://127.0.0.1:8000/v1/decide -H "Authorization: Bearer KEY" \\
       --json '{"context": {"hour": 9, "device": "phone"}}'

KEY is printed by --init. With PostgreSQL (database = "postgresql://…") add --workers 4.
"""


def service_commands(command: Any, commands: Any) -> None:
    """``serve``, ``keys create|list|revoke`` and ``restore``."""
    serve = command(commands, "serve", "serve.serve", "private decisions over HTTP", SERVE)
    _config(serve)
    add = serve.add_argument
    add("--init", action="store_true", help="write an example, begin its experiment, print a key")
    add(
        "--anchor",
        metavar="FILE",
        help="with --init: where to note what was published, best on another disk "
        "(default: in this user's state folder)",
    )
    add("--host", metavar="HOST", help="where to listen (default: as the file says)")
    add("--port", type=int, metavar="PORT", help="(default: as the file says)")
    add("--workers", type=int, default=1, metavar="N", help="processes, with PostgreSQL")

    keys = command(commands, "keys", "", "create, list or revoke keys of a service")
    kinds = keys.add_subparsers(dest="kind", metavar="create|list|revoke", required=True)
    example = "example:\n  discreet keys create --scope decide --scope observe --label shop"
    create = command(kinds, "create", "keys.create", "a new key, printed once", example)
    create.add_argument(
        "--scope",
        action="append",
        required=True,
        metavar="SCOPE",
        help="decide, observe, ticket, release:read, audit or admin; may be repeated",
    )
    create.add_argument("--label", default="", metavar="TEXT", help="what it is for")
    listed = command(kinds, "list", "keys.list_", "all keys, without their secrets")
    revoked = command(kinds, "revoke", "keys.revoke", "a key stops working within a second")
    revoked.add_argument("id", metavar="ID", help="as discreet keys list shows it")
    for kind in (create, listed, revoked):
        _config(kind)

    text = (
        "Run it after the database was restored from a backup, with the service stopped. A new\n"
        "epoch begins, and every batch that was open or waiting is given up: releasing its rows\n"
        "could publish them with a second noise. Releases that the backup lacks are charged."
    )
    restore = command(commands, "restore", "restore.restore", "go on after a backup", text)
    _config(restore)
    restore.add_argument(
        "--anchor-lost",
        action="store_true",
        help="the anchor is gone for good, and nothing newer than the database was published",
    )


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        default="experiment.toml",
        metavar="FILE",
        help="settings of the service (default: experiment.toml)",
    )
