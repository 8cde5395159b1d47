"""``discreet restore``: continue with a database from a backup."""

from __future__ import annotations

import argparse

from discreet.cli.command_line import Answer, Commands, command
from discreet.cli.serve_command import config_flag, need_extra

TEXT = """\
Run this command after the database was restored from a backup, while the service is stopped. A new
epoch begins. Every batch that was open or pending is deleted, since releasing its rows could
publish them with a second draw of noise. Releases that are missing in the backup are charged."""


def add(commands: Commands) -> None:
    """Add the flag for a lost anchor."""
    parser = command(
        commands, "restore", "continue after a database was restored from a backup", restore, TEXT
    )
    config_flag(parser)
    parser.add_argument(
        "--anchor-lost",
        action="store_true",
        help="the anchor is gone for good, and nothing newer than the database was published",
    )


def restore(args: argparse.Namespace) -> Answer:
    """Begin a new epoch; open batches are burned."""
    from discreet.service.runtime import lifecycle
    from discreet.service.settings import Settings
    from discreet.service.storage.database import storage_errors
    from discreet.service.storage.locations import open_database

    need_extra()
    settings = Settings.read(args.config)
    with storage_errors(open_database(settings)):
        made = lifecycle.restore(settings, anchor_lost=args.anchor_lost)
    lines = ["a new epoch has begun"]
    if made.burned:
        lines.append(f"burned: batch {_listed(made.burned)}")
    if made.charged:
        lines.append(f"charged, though the backup lacks it: document {_listed(made.charged)}")
    if made.charged and settings.unit == "user":
        lines.append(f"batches that every user counts as having entered: {len(made.charged)}")
    return Answer({"burned": made.burned, "charged": made.charged}, "; ".join(lines))


def _listed(numbers: list[int]) -> str:
    return ", ".join(str(number) for number in numbers)
