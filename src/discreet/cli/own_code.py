"""``--import``: the one way to name code of users, for the person who types the command."""

from __future__ import annotations

import argparse


def import_flag(parser: argparse.ArgumentParser) -> None:
    """For commands that may meet policies and oracles that are not built in."""
    parser.add_argument(
        "--import",
        action="append",
        dest="imports",
        metavar="MODULE",
        help="import it first: it registers policies or oracles; may be repeated",
    )


def import_modules(args: argparse.Namespace) -> None:
    """Import what the flag names, before a document is read."""
    for name in getattr(args, "imports", None) or ():
        from discreet.registry import import_module

        import_module(name)
